"""The safety net under following: everything of ours in a cluster, listed completely, and what
should not be there any more found.
"""

import itertools
import logging
import uuid
from collections.abc import Callable, Iterable, Sequence

from clusters import connections
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import KubeError, NotServed, Rejected
from clusters.kube.resources import EVENTS, PODGROUPS, PODS, Resource
from clusters.models import Cluster
from clusters.tasks import alone, answered, chunks, failed
from console.celery import step
from workloads import journal, manifests
from workloads.jobkinds import job_resources, serves
from workloads.models import Desired, Workload
from workloads.observed import Object, part
from workloads.slimming import SLIMMING
from workloads.states import TERMINAL
from workloads.tasks import objects
from workloads.tasks.ending import lets_finished_go, lets_running_go, remove, stop, tidy

log = logging.getLogger(__name__)


@step
def poll_all() -> None:
    """Ask for a poll of every cluster that answers."""
    for cluster_id in (
        Cluster.objects.in_use().filter(unreachable_since=None).values_list("pk", flat=True)
    ):
        poll.soon(str(cluster_id))


@step
def poll(cluster_id: str) -> None:
    """Whatever the rows say of a cluster's objects -> what is there now, and nothing that is not.

    Objects of workloads that are wanted stopped or deleted, left by a launch that was overtaken,
    are asked to be removed. A poll of the cluster that is running already is enough. Where the
    cluster does not answer, its row says so.
    """
    with alone("poll", cluster_id) as mine:
        cluster = Cluster.objects.in_use().filter(pk=cluster_id).first() if mine else None
        if cluster is None:
            return
        try:
            refusals = _Poll(connections.client(cluster), cluster).done()
        except KubeError as error:
            failed(cluster.pk, error)
        else:
            answered(cluster.pk)
            for refusal in refusals[:1]:
                failed(cluster.pk, refusal)


class _Poll:
    """One poll of one cluster. What it does not let us list is left out, and the rest is done."""

    def __init__(self, client: Client, cluster: Cluster) -> None:
        self._client = client
        self._cluster = cluster
        self._refusals: list[Rejected] = []
        self._ours: set[uuid.UUID] = set()
        """The workloads of which there is something."""
        self._finished: set[uuid.UUID] = set()
        """Those with pods that have ended."""
        self._running: set[uuid.UUID] = set()
        """Those with pods that have not."""

    def done(self) -> Sequence[Rejected]:
        """Do it; the answer is what was refused. Raises KubeError where the cluster is not there,
        or does not answer as one.
        """
        can = self._cluster.can
        for kind, resource in job_resources(can):
            self._list("job", resource, kind)
        self._list("pod", PODS)
        if serves(can, PODGROUPS):
            self._list("podgroup", PODGROUPS, labels="")
        self._events()
        _remove_strays(self._ours)
        _tidy_up(self._finished, lets_finished_go)
        _tidy_up(self._running, lets_running_go)
        return self._refusals

    def _list(
        self, kind: journal.Kind, resource: Resource, of: str = "", labels: str | None = None
    ) -> None:
        """Take in all objects of a kind, page by page: a large cluster's would not fit in
        memory.
        """
        listing = journal.Listing(self._cluster.pk, kind, (of,) if of else ())
        ours: set[uuid.UUID] = set()
        try:
            pages = calls.list_all(
                self._client,
                resource,
                labels=manifests.selector() if labels is None else labels,
                decoder=SLIMMING,
            )
            for page in pages:
                if page.first:
                    listing.again()
                # Of what cannot be read it is known at least that it is there.
                stubs = [
                    {"metadata": {"namespace": each.namespace, "name": each.name, "uid": each.uid}}
                    for each in page.unreadable
                ]
                listing.page([*(_named(each, of, resource) for each in page.items), *stubs])
                ours |= _workloads(page.items)
                if kind == "pod":
                    ended = [
                        part(each, "status").get("phase") in ("Succeeded", "Failed")
                        for each in page.items
                    ]
                    self._finished |= _workloads(itertools.compress(page.items, ended))
                    self._running |= _workloads(
                        each for each, has in zip(page.items, ended, strict=True) if not has
                    )
        except NotServed:
            # Nothing has vanished for that: an API server that is starting, or a proxy before it,
            # may not know the kind for a moment.
            return
        except Rejected as error:
            self._refused(resource, error)
            return
        listing.end()
        self._ours |= ours

    def _events(self) -> None:
        try:
            for page in calls.list_all(self._client, EVENTS, expired="go on"):
                # That an event is gone is no news: the history keeps it.
                journal.observed(
                    self._cluster.pk, [journal.Seen("event", each) for each in page.items]
                )
        except Rejected as error:
            self._refused(EVENTS, error)

    def _refused(self, resource: Resource, error: Rejected) -> None:
        log.warning(
            "cluster %s: %s cannot be listed: %s", self._cluster.pk, resource.plural, error.message
        )
        self._refusals.append(error)


def _named(obj: Object, kind: str, resource: Resource) -> Object:
    """The items of a list may not say what they are, and of a job a status depends on it."""
    if kind and "kind" not in obj:
        obj |= {"kind": kind, "apiVersion": resource.api_version}
    return obj


def _workloads(found: Iterable[Object]) -> set[uuid.UUID]:
    """The workloads that objects carry the ids of."""
    return {workload for each in found if (workload := objects.workload_of(each)) is not None}


def _remove_strays(there: set[uuid.UUID]) -> None:
    """Ask for the end of what is in the cluster and wanted at rest."""
    for part_ in chunks(sorted(there)):
        rows = (
            Workload.objects.filter(pk__in=part_)
            .exclude(desired=Desired.RUNNING)
            .exclude(status__in=TERMINAL)
        )
        for workload_id, desired in rows.values_list("pk", "desired"):
            (remove if desired == Desired.DELETED else stop).soon(str(workload_id))


def _tidy_up(found: set[uuid.UUID], is_due: Callable[[Workload], bool]) -> None:
    """Ask for the removal of the pods of what has ended, where they are to go."""
    for part_ in chunks(sorted(found)):
        for workload in Workload.objects.filter(pk__in=part_, status__in=TERMINAL).only(
            "spec", "status", "ended_at"
        ):
            if is_due(workload):
                tidy.soon(str(workload.pk))
