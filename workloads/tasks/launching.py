"""The step that creates a workload's objects in its cluster, once, however often it runs."""

import logging
import re
from functools import partial

from clusters import project_provisioning
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Conflict, Gone, NotServed, Rejected
from clusters.kube.resources import Resource
from console.celery import step
from workloads import journal, manifests, specs, workload_manifests
from workloads.kube_objects import Object, clean_text, nested_dict, nested_list
from workloads.models import Desired, Workload
from workloads.states import STARTING
from workloads.tasks import objects
from workloads.tasks.reconciliation import reconcile
from workloads.tasks.retrying import RetryLater, describe_refusal, find_workload, run_step
from workloads.tasks.teardown import remove, stop

log = logging.getLogger(__name__)

REMOVAL_RECHECK_SECONDS = 1.0
"""Seconds until the next check whether an earlier attempt's objects are gone."""
RECONCILE_SECONDS = 1.0
"""Seconds after which a launch is reconciled, in case no follower reported it."""
FORBIDDEN_TRIES = 6
"""How often a launch that our rights do not permit is tried again, with growing delays: about a
minute.
"""
FORBIDDEN_TEXT = "Muster may not launch it in the cluster at the moment:"
_FORBIDDEN = re.compile(r'forbidden: (User ".*" cannot |not yet ready to handle request)')
"""How an API server says that our credentials lack a right, or that it is still starting."""


class LaunchRefused(Exception):
    """The workload cannot be launched as it is; the text is for the person."""


@step
def launch(workload_id: str, tries: int | None = None) -> None:
    """Create the objects of a starting workload, or mark it Failed with the reason.

    Where that is impossible now, the workload stays as it is, with its trouble, and is tried again.
    In any other state nothing is done. An object of this attempt that already exists under the name
    was made by an earlier run of the step: therefore it may run twice or die anywhere.
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
        run_step(launch, workload, partial(_launch_unless_forbidden, workload))
    except (LaunchRefused, Rejected) as error:
        journal.record_refusal(workload.pk, workload.attempt, describe_error(error, workload))


def describe_error(error: Exception, workload: Workload) -> str:
    """Describe why the launch was refused, and what to do about it."""
    if isinstance(error, NotServed):
        target = objects.job_resource_of(workload)
        return (
            f"The cluster {workload.cluster.name} does not serve {target.kind} objects "
            f"({target.api_version}). Ask its administrator to "
            f"install {target.operator}, then run the workload again."
        )
    return clean_text(describe_refusal(error) if isinstance(error, Rejected) else error, 2000)


def _launch_unless_forbidden(workload: Workload, client: Client) -> None:
    """Launch the workload; raise RetryLater while a missing right may still appear.

    An API server that has just started refuses everything until its rules are loaded. Quotas and
    webhooks answer 403 as well: they have decided.
    """
    try:
        _launch_workload(workload, client)
    except Rejected as error:
        if error.status != 403 or not _FORBIDDEN.search(error.message):
            raise
        if not workload.trouble.startswith(FORBIDDEN_TEXT):
            # Tries that failed before, while the cluster was away, are not counted.
            Workload.objects.filter(pk=workload.pk, tries=workload.tries).update(tries=0)
            workload.tries = 0
        elif workload.tries >= FORBIDDEN_TRIES:
            raise
        raise RetryLater(
            f"{FORBIDDEN_TEXT} {error.message} It is tried again for about a minute, for a cluster "
            "that has just started says so, too."
        ) from error


def _launch_workload(workload: Workload, client: Client) -> None:
    wanted_objects = _build_objects(workload)
    if workload.project.synced_at is None:
        _provision_project(workload)
    try:
        created = [_ensure_object(client, workload, each) for each in wanted_objects]
    except Gone:
        # "Not found" on creation means the namespace: somebody removed it.
        _provision_project(workload)
        try:
            created = [_ensure_object(client, workload, each) for each in wanted_objects]
        except Gone:
            raise RetryLater(
                f"The namespace {objects.namespace_of(workload)} is not there."
            ) from None
    if _is_overtaken(workload):
        return
    journal.record_launch(workload.pk, workload.attempt, created[-1])
    reconcile.enqueue_after(RECONCILE_SECONDS, str(workload.pk))


def _build_objects(workload: Workload) -> list[Object]:
    try:
        return workload_manifests.build_for_launch(workload)
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
    """Return the object in the cluster, created now or by an earlier run of the step.

    Raises LaunchRefused when the name is somebody else's.
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
        existing = _find_object(client, resource, name, namespace)
        if existing is None:
            raise RetryLater("What had its name in the cluster has just gone.", 0) from None
    except Rejected as error:
        if (
            isinstance(error, NotServed)
            and workload.cluster.can.known
            and workload.cluster.can.serves(resource.key)
        ):
            # A starting API server says so too. If the kind is gone indeed, the next heartbeat
            # updates the capabilities.
            raise RetryLater(
                f"The cluster does not serve objects of kind {wanted['kind']} at the moment."
            ) from error
        # The API server checks quotas before names: the object of an earlier run counts against its
        # own repetition.
        existing = _find_object_after_refusal(error, client, resource, name, namespace)
        if existing is None or not objects.is_object_of(existing, workload):
            raise
    if not objects.is_object_of(existing, workload):
        _remove_deleted_holder(existing, workload)
        raise LaunchRefused(_describe_name_taken(existing, wanted["kind"], namespace))
    if objects.parse_attempt(existing) < objects.parse_attempt(wanted):
        _remove_older_object(client, workload, resource, existing)
    if objects.is_being_deleted(existing):
        raise RetryLater(
            f"Its {wanted['kind']} is being removed from the cluster; it is made anew after that.",
            REMOVAL_RECHECK_SECONDS,
        )
    return existing


def _find_object(client: Client, resource: Resource, name: str, namespace: str) -> Object | None:
    try:
        return calls.get(client, resource, name, namespace=namespace)
    except (Gone, NotServed):
        return None


def _find_object_after_refusal(
    refusal: Rejected, client: Client, resource: Resource, name: str, namespace: str
) -> Object | None:
    """Return the object that has the name though creating it was refused.

    Raises RetryLater where reading is refused too: an earlier run may have created it.
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
    """Raise RetryLater where a deleted workload of ours still holds the name.

    Its launch was so late that it came after the deletion.
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
        owner = (
            "It belongs to another workload of Muster, "
            f"{clean_text(labels.get(manifests.WORKLOAD), 60)}."
        )
    else:
        by = f" by {writers[0]}" if writers else ""
        owner = (
            f"It was made{by} at {clean_text(metadata.get('creationTimestamp'), 40)}, and not by "
            "Muster."
        )
    name = clean_text(metadata.get("name"), 80)
    return (
        f"A {kind} named {name} is in the namespace {namespace} already. {owner} Give this "
        f"workload another name, or remove that {kind}."
    )


def _is_overtaken(workload: Workload) -> bool:
    """Return whether something else is wanted by now than when the step began.

    If so, the step for that is requested, which cleans up.
    """
    current = Workload.objects.filter(pk=workload.pk).values_list("desired", "attempt").first()
    if current == (Desired.RUNNING, workload.attempt):
        return False
    wanted = current[0] if current else Desired.DELETED
    {Desired.STOPPED.value: stop, Desired.DELETED.value: remove, Desired.RUNNING.value: launch}[
        wanted
    ].enqueue(str(workload.pk))
    log.info("workload %s changed while it was launched: %s is wanted", workload.pk, wanted)
    return True
