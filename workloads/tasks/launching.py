"""The step that brings a workload's objects into its cluster, once, however often it is done."""

import logging
from functools import partial

from clusters import provision
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Conflict, Gone, NotServed, Rejected
from clusters.kube.resources import Resource
from console.celery import step
from workloads import blueprint, journal, manifests, specs
from workloads.jobkinds import serves
from workloads.models import Desired, Workload
from workloads.observed import Object, listed, part, plain
from workloads.states import STARTING
from workloads.tasks import objects
from workloads.tasks.ending import remove, stop
from workloads.tasks.looking import reconcile
from workloads.tasks.trying import Later, attempted, found, refusal

log = logging.getLogger(__name__)

GOING = 1.0
"""Seconds until one looks again whether what an earlier attempt left is gone."""
SOON = 1.0
"""Seconds after which what became of a launch is looked at, should nobody have told."""


class Refused(Exception):
    """It cannot be launched as it is; the text is for the person."""


@step
def launch(workload_id: str, tries: int | None = None) -> None:
    """Creating or Resuming, and wanted running -> its objects are in the cluster; or Failed, with
    what the cluster has against them.

    Where that cannot be done now it stays as it was, with its trouble, and is tried again. In any
    other state nothing is done. What exists already under the name and is of this attempt was made
    by a step before: that is how it may run twice or die anywhere.
    """
    workload = found(workload_id, tries)
    if (
        workload is None
        or workload.desired != Desired.RUNNING
        or workload.status not in STARTING
        or workload.job_uid
    ):
        return
    try:
        attempted(launch, workload, partial(_launch, workload))
    except (Refused, Rejected) as error:
        journal.refused(workload.pk, workload.attempt, error_text(error, workload))


def error_text(error: Exception, workload: Workload) -> str:
    """Why it was refused, with what to do about it."""
    if isinstance(error, NotServed):
        target = manifests.of_kind(workload.job_kind)
        return (
            f"The cluster {workload.cluster.name} does not serve {target.kind} objects "
            f"({target.api_version}). Ask its administrator to "
            f"install {target.operator}, then run the workload again."
        )
    return plain(refusal(error) if isinstance(error, Rejected) else error, 2000)


def _launch(workload: Workload, client: Client) -> None:
    wanted = _built(workload)
    if workload.project.synced_at is None:
        _provision(workload)
    try:
        made = [_ensured(client, workload, each) for each in wanted]
    except Gone:
        # The only thing that a new object can miss is its namespace: somebody removed it.
        _provision(workload)
        try:
            made = [_ensured(client, workload, each) for each in wanted]
        except Gone:
            raise Later(f"The namespace {objects.namespace_of(workload)} is not there.") from None
    if _is_overtaken(workload):
        return
    journal.launched(workload.pk, workload.attempt, made[-1])
    reconcile.later(SOON, str(workload.pk))


def _built(workload: Workload) -> list[Object]:
    try:
        return blueprint.of_workload(workload)
    except (specs.BadSpec, manifests.CannotBuild) as error:
        raise Refused(
            f"This version of Muster cannot launch what is stored: {error}. Submit it anew."
        ) from error


def _provision(workload: Workload) -> None:
    project = workload.project
    provision.project(project)
    project.refresh_from_db(fields=["synced_at", "sync_error"])
    if project.sync_error:
        raise Later(f"The project {project.name} is not ready in the cluster: {project.sync_error}")


def _ensured(client: Client, workload: Workload, wanted: Object) -> Object:
    """The object as the cluster has it: made now, or by a step before. Raises Refused when the name
    is somebody else's.
    """
    resource, name, namespace = (
        objects.resource_for(wanted),
        wanted["metadata"]["name"],
        wanted["metadata"]["namespace"],
    )
    try:
        return calls.create(client, resource, wanted, namespace=namespace)
    except Conflict as error:
        if not error.already_exists:
            raise
        there = _there(client, resource, name, namespace)
        if there is None:
            raise Later("What had its name in the cluster has just gone.", 0) from None
    except Rejected as error:
        if (
            isinstance(error, NotServed)
            and workload.cluster.can.known
            and serves(workload.cluster.can, resource)
        ):
            # As an API server says that is starting. Should it be so, the next heartbeat knows.
            raise Later(
                f"The cluster does not serve objects of kind {wanted['kind']} at the moment."
            ) from error
        # Limits are looked at before names: what a step before has made counts against itself.
        there = _after(error, client, resource, name, namespace)
        if there is None or not objects.is_of(there, workload):
            raise
    if not objects.is_of(there, workload):
        _pass_on(there, workload)
        raise Refused(_taken(there, wanted["kind"], namespace))
    if objects.attempt_of(there) < objects.attempt_of(wanted):
        _make_way(client, workload, resource, there)
    if objects.is_going(there):
        raise Later(
            f"Its {wanted['kind']} is being removed from the cluster; it is made anew after that.",
            GOING,
        )
    return there


def _there(client: Client, resource: Resource, name: str, namespace: str) -> Object | None:
    try:
        return calls.get(client, resource, name, namespace=namespace)
    except (Gone, NotServed):
        return None


def _after(
    refusal_: Rejected, client: Client, resource: Resource, name: str, namespace: str
) -> Object | None:
    """What has the name though it may not be created. Raises Later where that is refused too: a
    step before may have made it.
    """
    try:
        return _there(client, resource, name, namespace)
    except Rejected:
        raise Later(refusal(refusal_)) from refusal_


def _make_way(client: Client, workload: Workload, resource: Resource, there: Object) -> None:
    if not objects.is_going(there):
        objects.keep_logs(workload)
        objects.delete(client, resource, there)
    raise Later("What its attempt before left in the cluster is being removed.", GOING)


def _pass_on(there: Object, workload: Workload) -> None:
    """Raises Later where the name's holder is a deleted workload of ours, whose launch was so late
    that it came after the deletion.
    """
    holder = objects.workload_of(there)
    if (
        holder
        and Workload.objects.filter(
            pk=holder, project=workload.project, desired=Desired.DELETED
        ).exists()
    ):
        remove.soon(str(holder))
        raise Later(
            "What a deleted workload of the same name left in the cluster is being removed.", GOING
        )


def _taken(there: Object, kind: str, namespace: str) -> str:
    metadata = part(there, "metadata")
    labels = part(metadata, "labels")
    writers = [
        plain(each.get("manager"), 60)
        for each in listed(metadata, "managedFields")
        if each.get("manager")
    ]
    if labels.get(manifests.MANAGED_BY) == manifests.MUSTER:
        whose = (
            "It belongs to another workload of Muster, "
            f"{plain(labels.get(manifests.WORKLOAD), 60)}."
        )
    else:
        by = f" by {writers[0]}" if writers else ""
        whose = (
            f"It was made{by} at {plain(metadata.get('creationTimestamp'), 40)}, and not by Muster."
        )
    name = plain(metadata.get("name"), 80)
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
    ].soon(str(workload.pk))
    log.info("workload %s changed while it was launched: %s is wanted", workload.pk, wanted)
    return True
