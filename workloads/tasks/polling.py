"""The safety net under following: a complete listing of our objects in a cluster.

It also finds objects that should not be there any more.
"""

import itertools
import logging
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from clusters import connections
from clusters.job_kinds import list_served_kinds
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import KubeError, NotServed, Rejected
from clusters.kube.resources import EVENTS, PODGROUPS, PODS, Resource
from clusters.models import Cluster
from clusters.tasks import (
    REFUSAL_RECHECK_SECONDS,
    REFUSAL_RECHECKS,
    claim_task,
    is_forbidden,
    record_answer,
    record_failure,
)
from console.celery import Step, step
from console.chunks import split_chunks
from workloads import journal, manifests
from workloads.kube_objects import Object, nested_dict
from workloads.models import Desired, Workload
from workloads.slimming import EVENT_DECODER, SLIMMING_DECODER
from workloads.states import TERMINAL
from workloads.tasks import objects
from workloads.tasks.teardown import (
    remove,
    should_remove_data_workers,
    should_remove_finished_pods,
    should_remove_running_pods,
    stop,
    tidy,
    tidy_data,
)

log = logging.getLogger(__name__)

LEFT_OUT_EXPLANATION = (
    f"A workload keeps {journal.MAX_EVENTS:,} events of an attempt. The cluster has them for an "
    "hour."
)


@step
def poll_all() -> None:
    """Request a poll of every cluster that answers."""
    for cluster_id in (
        Cluster.objects.in_use().filter(unreachable_since=None).values_list("pk", flat=True)
    ):
        poll.enqueue(str(cluster_id))


@step
def poll(cluster_id: str, rechecks: int = 0) -> None:
    """Record everything that is in the cluster now, and that nothing else is.

    Requests the removal of objects of stopped or deleted workloads that an overtaken launch left.
    Does nothing while another poll of the cluster runs. Where the cluster does not answer, its row
    says so. `rechecks` is how often it refused every kind in a row.
    """
    with claim_task("poll", cluster_id) as mine:
        cluster = Cluster.objects.in_use().filter(pk=cluster_id).first() if mine else None
        if cluster is None:
            return
        try:
            current = _Poll(connections.get_client(cluster), cluster)
            refusals = current.run()
        except KubeError as error:
            record_failure(cluster.pk, error)
            return
        if (
            refusals
            and rechecks < REFUSAL_RECHECKS
            and not current.has_listed
            and all(map(is_forbidden, refusals))
        ):
            # Nothing is recorded yet: an answer would hide a refusal that has lasted for long.
            poll.enqueue_after(REFUSAL_RECHECK_SECONDS, cluster_id, rechecks + 1)
            return
        record_answer(cluster.pk)
        for refusal in refusals[:1]:
            record_failure(cluster.pk, refusal)


class _Poll:
    """One poll of one cluster. Kinds that it refuses to list are left out."""

    def __init__(self, client: Client, cluster: Cluster) -> None:
        self._client = client
        self._cluster = cluster
        self._refusals: list[Rejected] = []
        self.has_listed = False
        """Whether the cluster let at least one kind be listed."""
        self._present_ids: set[uuid.UUID] = set()
        """Ids of the workloads that have objects in the cluster."""
        self._ids_with_finished_pods: set[uuid.UUID] = set()
        """Ids of those with pods that have ended."""
        self._ids_with_running_pods: set[uuid.UUID] = set()
        """Ids of those with pods that have not ended."""
        self._ids_with_data_workers: set[uuid.UUID] = set()
        """Ids of those with a batch Job of data workers."""

    def run(self) -> Sequence[Rejected]:
        """Run the poll. Return the refusals.

        Raises KubeError where the cluster is not there, or does not answer as one.
        """
        can = self._cluster.can
        for each in list_served_kinds(can):
            self._poll_kind("job", each, each.kind)
        self._poll_kind("pod", PODS)
        if can.serves(PODGROUPS.key):
            self._poll_kind("podgroup", PODGROUPS, labels="")
        self._poll_events()
        _request_stray_removal(self._present_ids)
        _request_tidying(self._ids_with_finished_pods, should_remove_finished_pods)
        _request_tidying(self._ids_with_running_pods, should_remove_running_pods)
        _request_tidying(self._ids_with_data_workers, should_remove_data_workers, tidy_data)
        return self._refusals

    def _poll_kind(
        self, kind: journal.Kind, resource: Resource, job_kind: str = "", labels: str | None = None
    ) -> None:
        """Record all objects of a kind, page by page.

        A large cluster's would not fit in memory.
        """
        listing = journal.Listing(self._cluster.pk, kind, (job_kind,) if job_kind else ())
        present_ids: set[uuid.UUID] = set()
        try:
            pages = calls.list_all(
                self._client,
                resource,
                labels=manifests.build_selector() if labels is None else labels,
                decoder=SLIMMING_DECODER,
            )
            for page in pages:
                if page.first:
                    listing.restart()
                # Of what cannot be read it is known at least that it is there.
                stubs = [
                    {"metadata": {"namespace": each.namespace, "name": each.name, "uid": each.uid}}
                    for each in page.unreadable
                ]
                listing.add_page(
                    [*(_add_kind(each, job_kind, resource) for each in page.items), *stubs]
                )
                present_ids |= _collect_workload_ids(page.items)
                if kind == "job":
                    self._ids_with_data_workers |= _collect_workload_ids(
                        filter(objects.is_of_data_workers, page.items)
                    )
                if kind == "pod":
                    ended = [
                        nested_dict(each, "status").get("phase") in ("Succeeded", "Failed")
                        for each in page.items
                    ]
                    self._ids_with_finished_pods |= _collect_workload_ids(
                        itertools.compress(page.items, ended)
                    )
                    self._ids_with_running_pods |= _collect_workload_ids(
                        each for each, has in zip(page.items, ended, strict=True) if not has
                    )
        except NotServed:
            # Nothing has vanished for that: an API server that is starting, or a proxy before it,
            # may not know the kind for a moment.
            return
        except Rejected as error:
            self._record_refusal(resource, error)
            return
        listing.finish()
        self.has_listed = True
        self._present_ids |= present_ids

    def _poll_events(self) -> None:
        """Record the events of workloads, as many as a history keeps."""
        names = journal.WorkloadNames(self._cluster.pk)
        allowances = journal.EventAllowances(self._cluster.pk, names)
        left_out: Counter[journal.Subject] = Counter()
        try:
            for page in calls.list_all(
                self._client, EVENTS, expired="go on", decoder=EVENT_DECODER
            ):
                names.refresh()
                events = [each for each in page.items if names.find_workload(each)]
                kept_events, refused = allowances.select_events(events)
                left_out += refused
                # That an event is gone is no news: the history keeps it.
                journal.record_observations(
                    self._cluster.pk, [journal.Observation("event", each) for each in kept_events]
                )
            if left_out:
                # The next poll, and whoever follows, leave the same events out again.
                journal.record_left_out_events(
                    self._cluster.pk, left_out, LEFT_OUT_EXPLANATION, may_repeat=True
                )
        except Rejected as error:
            self._record_refusal(EVENTS, error)
        else:
            self.has_listed = True

    def _record_refusal(self, resource: Resource, error: Rejected) -> None:
        log.warning(
            "cluster %s: %s cannot be listed: %s", self._cluster.pk, resource.plural, error.message
        )
        self._refusals.append(error)


def _add_kind(obj: Object, kind: str, resource: Resource) -> Object:
    """Set the kind of a listed object that lacks it: a job's status depends on it."""
    if kind and "kind" not in obj:
        obj |= {"kind": kind, "apiVersion": resource.api_version}
    return obj


def _collect_workload_ids(kube_objects: Iterable[Object]) -> set[uuid.UUID]:
    """Return the ids of the workloads that these objects carry."""
    return {
        workload
        for each in kube_objects
        if (workload := objects.find_workload_id(each)) is not None
    }


def _request_stray_removal(present_ids: set[uuid.UUID]) -> None:
    """Request the removal of objects in the cluster whose workloads are to be at rest."""
    for chunk in split_chunks(sorted(present_ids)):
        rows = (
            Workload.objects.filter(pk__in=chunk)
            .exclude(desired=Desired.RUNNING)
            .exclude(status__in=TERMINAL)
        )
        for workload_id, desired in rows.values_list("pk", "desired"):
            (remove if desired == Desired.DELETED else stop).enqueue(str(workload_id))


def _request_tidying(
    workload_ids: set[uuid.UUID], is_due: Callable[[Workload], bool], removal_step: Step = tidy
) -> None:
    """Request the removal of the pods of ended workloads, where they are to go."""
    for chunk in split_chunks(sorted(workload_ids)):
        for workload in Workload.objects.filter(pk__in=chunk, status__in=TERMINAL).only(
            "spec", "status", "ended_at", "data_workers"
        ):
            if is_due(workload):
                removal_step.enqueue(str(workload.pk))
