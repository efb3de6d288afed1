"""The workloads that a batch concerns, as they are and as they will be."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec
from django.db.models import F, Q, TextField
from django.db.models.functions import Cast
from django.utils import timezone

from workloads.journal.cluster_events import ClusterEvent
from workloads.journal.observed_objects import ObservedObject
from workloads.kube_objects import KeptObject, Object
from workloads.models import Attempt, Pod, Workload

_DEFERRED_FIELDS = (
    "spec",
    "trouble",
    "submitted_by",
    "preemptible",
    "priority",
    "auto_delete_seconds",
    "gpus_requested",
    "gpu_memory_requested",
)
"""Of a workload's row what nothing follows from."""
_JSON_DECODER = msgspec.json.Decoder(dict)
"""What is read for every change is read fast."""
LATE_EVENTS_WINDOW = timedelta(hours=2)
"""For so long the events about a workload that the cluster has let go of still find it: the cluster
keeps events for an hour.
"""


@dataclass(slots=True)
class WorkloadUpdate:
    """One workload: its row and pods as they were read, and what becomes of them."""

    workload: Workload
    namespace: str
    pods: dict[str, Pod] = field(default_factory=dict)
    """By uid: those that are there, of all attempts, and those that the batch speaks of."""
    job_uids: dict[str, int] = field(default_factory=dict)
    """Its attempts by the uids of their jobs; filled where the batch speaks of something by name,
    or of earlier attempts.
    """
    new_values: dict[str, Any] = field(default_factory=dict)
    """New values of the workload's fields."""
    changed_pod_uids: set[str] = field(default_factory=set)
    """The uids of the pods whose rows changed."""
    clock_lead: timedelta = timedelta(0)
    """By how much the cluster's clock is ahead of ours."""
    affects_status: bool = False
    """Whether anything changed from which the status may follow."""
    affects_pages: bool = False
    """Whether anything changed that a page could show."""

    def __getitem__(self, name: str) -> Any:
        """A field of the workload as it will be."""
        return self.new_values[name] if name in self.new_values else getattr(self.workload, name)

    def set_values(self, **values: Any) -> None:
        """Set fields; what is so already is no change."""
        for name, value in values.items():
            if self[name] != value:
                self.new_values[name] = value

    def find_job_uid(self, attempt: int) -> str:
        """The uid of the job of an attempt before this one; "" where it never had one."""
        return next((uid for uid, number in self.job_uids.items() if number == attempt), "")

    def live_pods(self) -> list[Pod]:
        """The pods of the current attempt that are there."""
        return [
            pod
            for pod in self.pods.values()
            if pod.attempt == self.workload.attempt and pod.vanished_at is None
        ]

    @property
    def job(self) -> Object | None:
        found: Object | None = self["job"]
        return found


def load_updates(
    cluster_id: uuid.UUID,
    objects: Sequence[ObservedObject],
    cluster_events: Sequence[ClusterEvent],
    recheck_ids: Collection[uuid.UUID],
) -> dict[uuid.UUID, WorkloadUpdate]:
    """The cases of all that these may concern, by id, in three queries however many there are."""
    ids = {thing.workload for thing in objects if thing.workload is not None} | set(recheck_ids)
    names = {(thing.namespace, thing.name) for thing in objects if thing.workload is None}
    names |= {(each.namespace, name) for each in cluster_events for name in each.names}
    cases = {
        row.pk: WorkloadUpdate(row, row.namespace)
        for row in _load_workload_rows(cluster_id, ids, names)
    }
    if not cases:
        return {}
    uids = {thing.uid for thing in objects if thing.kind == "pod"} | {
        each.subject_uid for each in cluster_events
    }
    pods = Pod.objects.filter(Q(vanished_at=None) | Q(uid__in=uids), workload__in=list(cases))
    for pod in pods.defer("data").annotate(written=Cast("data", TextField())):
        pod.data = KeptObject(_JSON_DECODER.decode(pod.written))
        cases[pod.workload_id].pods[pod.uid] = pod
    is_earlier = any(
        each.workload in cases and each.attempt != cases[each.workload].workload.attempt
        for each in objects
        if each.workload
    )
    if names or is_earlier:
        attempts = Attempt.objects.filter(workload__in=list(cases)).exclude(job_uid="")
        for workload_id, number, uid in attempts.values_list("workload", "number", "job_uid"):
            cases[workload_id].job_uids[uid] = number
    return cases


def _load_workload_rows(
    cluster_id: uuid.UUID, ids: Collection[uuid.UUID], names: Collection[tuple[str, str]]
) -> list[Any]:
    wanted = Q(pk__in=ids)
    if names:
        recent = Q(released_at=None) | Q(released_at__gte=timezone.now() - LATE_EVENTS_WINDOW)
        namespaces = {namespace for namespace, _ in names}
        wanted |= (
            Q(name__in={name for _, name in names}, project__namespace__in=namespaces) & recent
        )
    elif not ids:
        return []
    found = Workload.objects.filter(wanted, cluster=cluster_id).annotate(
        namespace=F("project__namespace")
    )
    return list(found.defer(*_DEFERRED_FIELDS).order_by())
