"""The safety net under following: everything of ours in a cluster, listed completely, and what should not be there any more found."""

import logging
import uuid
from collections.abc import Iterable, Sequence

from clusters import connections
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import KubeError, NotServed
from clusters.kube.resources import EVENTS, JOBS, PODGROUPS, PODS, PYTORCHJOBS, Resource
from clusters.models import Cluster
from clusters.tasks import alone, answered, chunks, failed
from console.celery import step
from workloads import journal, manifests
from workloads.models import Desired, Workload
from workloads.observed import Object, part, slim
from workloads.states import TERMINAL
from workloads.tasks import objects
from workloads.tasks.ending import is_to_be_tidied, remove, stop, tidy

log = logging.getLogger(__name__)


@step
def poll_all() -> None:
    """Ask for a poll of every cluster that answers."""
    for cluster_id in Cluster.objects.filter(unreachable_since=None).values_list("pk", flat=True):
        poll.soon(str(cluster_id))


@step
def poll(cluster_id: str) -> None:
    """Whatever the rows say of a cluster's objects -> what is there now, and nothing that is not.

    Objects of workloads that are wanted stopped or deleted, left by a launch that was overtaken, are asked to be removed.
    A poll of the cluster that is running already is enough. Where the cluster does not answer, its row says so.
    """
    with alone("poll", cluster_id) as mine:
        cluster = Cluster.objects.filter(pk=cluster_id).first() if mine else None
        if cluster is None:
            return
        try:
            _poll(connections.client(cluster), cluster)
        except KubeError as error:
            failed(cluster.pk, error)
        else:
            answered(cluster.pk)


def _poll(client: Client, cluster: Cluster) -> None:
    jobs = [*_listed(client, cluster, "job", PYTORCHJOBS, of=("PyTorchJob",)), *_listed(client, cluster, "job", JOBS, of=("Job",))]
    pods = _listed(client, cluster, "pod", PODS)
    _listed(client, cluster, "podgroup", PODGROUPS, labels="")
    for page in calls.list_all(client, EVENTS, expired="go on"):
        # That an event is gone is no news: the history keeps it.
        journal.observed(cluster.pk, [journal.Seen("event", each) for each in page.items])
    _remove_strays(_workloads([*jobs, *pods]))
    _tidy_up(_workloads(pod for pod in pods if part(pod, "status").get("phase") in ("Succeeded", "Failed")))


def _listed(
    client: Client, cluster: Cluster, kind: journal.Kind, resource: Resource, *, labels: str | None = None, of: Sequence[str] = ()
) -> list[Object]:
    """Take in all objects of a kind, without what nobody reads: a large cluster's would not fit in memory."""
    before = journal.known(cluster.pk, kind, of=of)
    found: list[Object] = []
    try:
        for page in calls.list_all(client, resource, labels=manifests.selector() if labels is None else labels):
            if page.first:
                found = []
            found += [slim(_named(each, resource)) for each in page.items]
    except NotServed:
        # Nothing has vanished for that: an API server that is starting, or a proxy before it, may not know the kind for a moment.
        return []
    journal.listed(cluster.pk, kind, found, before=before)
    return found


def _named(obj: Object, resource: Resource) -> Object:
    # The items of a list of a built-in kind do not say what they are, and a status depends on it.
    return {"kind": "Job", "apiVersion": resource.api_version, **obj} if resource == JOBS else obj


def _workloads(found: Iterable[Object]) -> set[uuid.UUID]:
    """The workloads that objects carry the ids of."""
    return {workload for each in found if (workload := objects.workload_of(each)) is not None}


def _remove_strays(there: set[uuid.UUID]) -> None:
    """Ask for the end of what is in the cluster and wanted at rest."""
    for part_ in chunks(sorted(there)):
        rows = Workload.objects.filter(pk__in=part_).exclude(desired=Desired.RUNNING).exclude(status__in=TERMINAL)
        for workload_id, desired in rows.values_list("pk", "desired"):
            (remove if desired == Desired.DELETED else stop).soon(str(workload_id))


def _tidy_up(finished: set[uuid.UUID]) -> None:
    """Ask for the removal of finished pods where that is the workload's policy."""
    for part_ in chunks(sorted(finished)):
        for workload in Workload.objects.filter(pk__in=part_, status__in=TERMINAL).only("spec", "status"):
            if is_to_be_tidied(workload):
                tidy.soon(str(workload.pk))
