"""The step that brings a workload's objects into its cluster, once, however often it is done."""

import logging
from functools import partial

from clusters import project_provisioning
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Conflict, Gone, NotServed, Rejected
from clusters.kube.resources import Resource
from console.celery import step
from workloads import journal, manifests, specs, workload_manifests
from workloads.job_kinds import is_served
from workloads.kube_objects import Object, clean_text, nested_dict, nested_list
from workloads.models import Desired, Workload
from workloads.states import STARTING
from workloads.tasks import objects
from workloads.tasks.reconciliation import reconcile
from workloads.tasks.retrying import RetryLater, describe_refusal, find_workload, run_step
from workloads.tasks.teardown import remove, stop

log = logging.getLogger(__name__)

REMOVAL_RECHECK_SECONDS = 1.0
"""Seconds until one looks again whether what an earlier attempt left is gone."""
RECONCILE_SECONDS = 1.0
"""Seconds after which what became of a launch is looked at, should nobody have told."""


class LaunchRefused(Exception):
    """It cannot be launched as it is; the text is for the person."""


@step
def launch(workload_id: str, tries: int | None = None) -> None:
    """Creating or Resuming, and wanted running -> its objects are in the cluster; or Failed, with
    what the cluster has against them.

    Where that cannot be done now it stays as it was, with its trouble, and is tried again. In any
    other state nothing is done. What exists already under the name and is of this attempt was made
    by a step before: that is how it may run twice or die anywhere.
    """
    workload = find_workload(workload_id, tries)
    if (
        workload is None
        or workload.desired != Desired.RUNNING
        or workload.status not in STARTING
        or workload.job_uid
    ):
        return
    try:
        run_step(launch, workload, partial(_launch_workload, workload))
    except (LaunchRefused, Rejected) as error:
        journal.record_refusal(workload.pk, workload.attempt, describe_error(error, workload))


def describe_error(error: Exception, workload: Workload) -> str:
    """Why it was refused, with what to do about it."""
    if isinstance(error, NotServed):
        target = manifests.get_target(workload.job_kind)
        return (
            f"The cluster {workload.cluster.name} does not serve {target.kind} objects "
            f"({target.api_version}). Ask its administrator to "
            f"install {target.operator}, then run the workload again."
        )
    return clean_text(describe_refusal(error) if isinstance(error, Rejected) else error, 2000)


def _launch_workload(workload: Workload, client: Client) -> None:
    wanted = _build_objects(workload)
    if workload.project.synced_at is None:
        _provision_project(workload)
    try:
        made = [_ensure_object(client, workload, each) for each in wanted]
    except Gone:
        # The only thing that a new object can miss is its namespace: somebody removed it.
        _provision_project(workload)
        try:
            made = [_ensure_object(client, workload, each) for each in wanted]
        except Gone:
            raise RetryLater(
                f"The namespace {objects.namespace_of(workload)} is not there."
            ) from None
    if _is_overtaken(workload):
        return
    journal.record_launch(workload.pk, workload.attempt, made[-1])
    reconcile.enqueue_after(RECONCILE_SECONDS, str(workload.pk))


def _build_objects(workload: Workload) -> list[Object]:
    try:
        return workload_manifests.build_for_workload(workload)
    except (specs.UnreadableSpec, manifests.CannotBuild) as error:
        raise LaunchRefused(
            f"This version of Muster cannot launch what is stored: {error}. Submit it anew."
        ) from error


def _provision_project(workload: Workload) -> None:
    project = workload.project
    project_provisioning.provision_project(project)
    project.refresh_from_db(fields=["synced_at", "sync_error"])
    if project.sync_error:
        raise RetryLater(
            f"The project {project.name} is not ready in the cluster: {project.sync_error}"
        )


def _ensure_object(client: Client, workload: Workload, wanted: Object) -> Object:
    """The object as the cluster has it: made now, or by a step before. Raises Refused when the name
    is somebody else's.
    """
    resource, name, namespace = (
        objects.resource_of_manifest(wanted),
        wanted["metadata"]["name"],
        wanted["metadata"]["namespace"],
    )
    try:
        return calls.create(client, resource, wanted, namespace=namespace)
    except Conflict as error:
        if not error.already_exists:
            raise
        there = _find_object(client, resource, name, namespace)
        if there is None:
            raise RetryLater("What had its name in the cluster has just gone.", 0) from None
    except Rejected as error:
        if (
            isinstance(error, NotServed)
            and workload.cluster.can.known
            and is_served(workload.cluster.can, resource)
        ):
            # As an API server says that is starting. Should it be so, the next heartbeat knows.
            raise RetryLater(
                f"The cluster does not serve objects of kind {wanted['kind']} at the moment."
            ) from error
        # Limits are looked at before names: what a step before has made counts against itself.
        there = _find_object_after_refusal(error, client, resource, name, namespace)
        if there is None or not objects.is_object_of(there, workload):
            raise
    if not objects.is_object_of(there, workload):
        _remove_deleted_holder(there, workload)
        raise LaunchRefused(_describe_name_taken(there, wanted["kind"], namespace))
    if objects.parse_attempt(there) < objects.parse_attempt(wanted):
        _remove_older_object(client, workload, resource, there)
    if objects.is_being_deleted(there):
        raise RetryLater(
            f"Its {wanted['kind']} is being removed from the cluster; it is made anew after that.",
            REMOVAL_RECHECK_SECONDS,
        )
    return there


def _find_object(client: Client, resource: Resource, name: str, namespace: str) -> Object | None:
    try:
        return calls.get(client, resource, name, namespace=namespace)
    except (Gone, NotServed):
        return None


def _find_object_after_refusal(
    refusal: Rejected, client: Client, resource: Resource, name: str, namespace: str
) -> Object | None:
    """What has the name though it may not be created. Raises Later where that is refused too: a
    step before may have made it.
    """
    try:
        return _find_object(client, resource, name, namespace)
    except Rejected:
        raise RetryLater(describe_refusal(refusal)) from refusal


def _remove_older_object(
    client: Client, workload: Workload, resource: Resource, existing: Object
) -> None:
    if not objects.is_being_deleted(existing):
        objects.wait_for_logs(workload)
        objects.delete_object(client, resource, existing)
    raise RetryLater(
        "What its attempt before left in the cluster is being removed.", REMOVAL_RECHECK_SECONDS
    )


def _remove_deleted_holder(existing: Object, workload: Workload) -> None:
    """Raises Later where the name's holder is a deleted workload of ours, whose launch was so late
    that it came after the deletion.
    """
    holder = objects.find_workload_id(existing)
    if (
        holder
        and Workload.objects.filter(
            pk=holder, project=workload.project, desired=Desired.DELETED
        ).exists()
    ):
        remove.enqueue(str(holder))
        raise RetryLater(
            "What a deleted workload of the same name left in the cluster is being removed.",
            REMOVAL_RECHECK_SECONDS,
        )


def _describe_name_taken(existing: Object, kind: str, namespace: str) -> str:
    metadata = nested_dict(existing, "metadata")
    labels = nested_dict(metadata, "labels")
    writers = [
        clean_text(each.get("manager"), 60)
        for each in nested_list(metadata, "managedFields")
        if each.get("manager")
    ]
    if labels.get(manifests.MANAGED_BY) == manifests.MUSTER:
        whose = (
            "It belongs to another workload of Muster, "
            f"{clean_text(labels.get(manifests.WORKLOAD), 60)}."
        )
    else:
        by = f" by {writers[0]}" if writers else ""
        whose = (
            f"It was made{by} at {clean_text(metadata.get('creationTimestamp'), 40)}, and not by "
            "Muster."
        )
    name = clean_text(metadata.get("name"), 80)
    return (
        f"A {kind} named {name} is in the namespace {namespace} already. {whose} Give this "
        f"workload another name, or remove that {kind}."
    )


def _is_overtaken(workload: Workload) -> bool:
    """Whether something else is wanted by now than when the step began; then the step for that is
    asked for, which clears up.
    """
    now = Workload.objects.filter(pk=workload.pk).values_list("desired", "attempt").first()
    if now == (Desired.RUNNING, workload.attempt):
        return False
    wanted = now[0] if now else Desired.DELETED
    {Desired.STOPPED.value: stop, Desired.DELETED.value: remove, Desired.RUNNING.value: launch}[
        wanted
    ].enqueue(str(workload.pk))
    log.info("workload %s changed while it was launched: %s is wanted", workload.pk, wanted)
    return True
