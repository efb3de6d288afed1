"""Workloads that a batch concerns: their rows as they are, and their new values."""

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
"""Fields of a workload's row that no update depends on."""
_JSON_DECODER = msgspec.json.Decoder(dict)
"""A fast decoder: pods' objects are decoded for every change."""
LATE_EVENTS_WINDOW = timedelta(hours=2)
"""How long events still find a workload after its release. The cluster keeps events for an hour."""


@dataclass(slots=True)
class WorkloadUpdate:
    """One workload: its row and pods as they were read, and their new values."""

    workload: Workload
    namespace: str
    pods: dict[str, Pod] = field(default_factory=dict)
    """Pods by uid: those that exist, of all attempts, and those that the batch mentions."""
    job_uids: dict[str, int] = field(default_factory=dict)
    """Attempt numbers by the uid of their job.

    Filled only where the batch mentions objects by name or earlier attempts.
    """
    new_values: dict[str, Any] = field(default_factory=dict)
    """New values of the workload's fields, by name."""
    changed_pod_uids: set[str] = field(default_factory=set)
    """Uids of the pods whose rows changed."""
    clock_lead: timedelta = timedelta(0)
    """How far the cluster's clock is ahead of ours."""
    affects_status: bool = False
    """Whether anything changed that the status is derived from."""
    affects_pages: bool = False
    """Whether anything changed that a page could show."""

    def __getitem__(self, name: str) -> Any:
        """Return a field of the workload with its new value, if it has one."""
        return self.new_values[name] if name in self.new_values else getattr(self.workload, name)

    def set_values(self, **values: Any) -> None:
        """Set fields of the workload; equal values are no change."""
        for name, value in values.items():
            if self[name] != value:
                self.new_values[name] = value

    def find_job_uid(self, attempt: int) -> str:
        """Return the uid of the job of an earlier attempt, "" if it never had one."""
        return next((uid for uid, number in self.job_uids.items() if number == attempt), "")

    def live_pods(self) -> list[Pod]:
        """Return the pods of the current attempt that still exist."""
        return [
            pod
            for pod in self.pods.values()
            if pod.attempt == self.workload.attempt and pod.vanished_at is None
        ]

    @property
    def job(self) -> Object | None:
        job: Object | None = self["job"]
        return job


def load_updates(
    cluster_id: uuid.UUID,
    objects: Sequence[ObservedObject],
    cluster_events: Sequence[ClusterEvent],
    recheck_ids: Collection[uuid.UUID],
) -> dict[uuid.UUID, WorkloadUpdate]:
    """Load the updates of all workloads that these may concern, by id.

    Makes three queries, however many there are.
    """
    ids = {obj.workload for obj in objects if obj.workload is not None} | set(recheck_ids)
    names = {(obj.namespace, obj.name) for obj in objects if obj.workload is None}
    names |= {(each.namespace, name) for each in cluster_events for name in each.names}
    updates = {
        row.pk: WorkloadUpdate(row, row.namespace)
        for row in _load_workload_rows(cluster_id, ids, names)
    }
    if not updates:
        return {}
    uids = {obj.uid for obj in objects if obj.kind == "pod"} | {
        each.subject_uid for each in cluster_events
    }
    pods = Pod.objects.filter(Q(vanished_at=None) | Q(uid__in=uids), workload__in=list(updates))
    # The text is decoded here, because Django's JSONField decodes with the slow json module.
    for pod in pods.defer("data").annotate(written=Cast("data", TextField())):
        pod.data = KeptObject(_JSON_DECODER.decode(pod.written))
        updates[pod.workload_id].pods[pod.uid] = pod
    is_earlier = any(
        each.workload in updates and each.attempt != updates[each.workload].workload.attempt
        for each in objects
        if each.workload
    )
    if names or is_earlier:
        attempts = Attempt.objects.filter(workload__in=list(updates)).exclude(job_uid="")
        for workload_id, number, uid in attempts.values_list("workload", "number", "job_uid"):
            updates[workload_id].job_uids[uid] = number
    return updates


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
    rows = Workload.objects.filter(wanted, cluster=cluster_id).annotate(
        namespace=F("project__namespace")
    )
    return list(rows.defer(*_DEFERRED_FIELDS).order_by())
