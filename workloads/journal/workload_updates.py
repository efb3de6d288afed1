"""Workloads that a batch concerns: their rows as they are, and their new values."""

import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q
from django.utils import timezone

from clusters.job_kinds import RANK_0_ROLES
from workloads.journal import bulk_sql
from workloads.journal.cluster_events import ClusterEvent
from workloads.journal.observed_objects import ObservedObject
from workloads.kube_objects import DATA_WORKER, Object
from workloads.models import Attempt, Pod, Workload
from workloads.pod_counts import PodCounts, PodShare, Standing, decode_counts
from workloads.pod_views import KeptObject

_DEFERRED_FIELDS = (
    "spec",
    "trouble",
    "submitted_by",
    "preemptible",
    "priority",
    "auto_delete_seconds",
    "gpus_requested",
    "gpu_memory_requested",
    "cpu_requested",
    "memory_requested",
    "image",
    "command",
    "node_pools",
    "labels",
    "min_pods",
    "max_pods",
    "likely_start_at",
)
"""Fields of a workload's row that no update depends on."""
_POD_NAMES = [field.name for field in Pod._meta.concrete_fields]
_POD_ATTRIBUTES = [field.attname for field in Pod._meta.concrete_fields]
_WORKLOAD_FIELDS = [
    field for field in Workload._meta.concrete_fields if field.name not in _DEFERRED_FIELDS
]
_WORKLOAD_NAMES = [*(field.name for field in _WORKLOAD_FIELDS), "project__namespace"]
_WORKLOAD_ATTRIBUTES = [*(field.attname for field in _WORKLOAD_FIELDS), "namespace"]
LATE_EVENTS_WINDOW = timedelta(hours=2)
"""How long events still find a workload after its release. The cluster keeps events for an hour."""
MOST_NAMESAKES = 20
"""Workloads of one name that events find, the newest; each event is compared with all of them."""


@dataclass(slots=True)
class WorkloadUpdate:
    """One workload: its row and the pods that the batch mentions, and their new values."""

    workload: Workload
    namespace: str
    counts: PodCounts | None = None
    """The counts of its pods, for `workload.attempt`; None: unknown."""
    pods: dict[str, Pod] = field(default_factory=dict)
    """The pods that the batch mentions, by uid."""
    shares: dict[str, PodShare | None] = field(default_factory=dict)
    """What these pods added to the counts when they were read, by uid."""
    pod_attempts: dict[str, int] = field(default_factory=dict)
    """Attempt numbers by the uid of each pod that the batch or one of its events mentions."""
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

    def mark_disrupted(self, at: datetime, now: datetime) -> None:
        """Note since when pods are taken from it, unless that is noted.

        What tells it may be old, where nobody followed the cluster meanwhile.
        """
        if self.workload.disrupted_at is None:
            earliest = min(at, self["disrupted_at"] or now)
            self.set_values(disrupted_at=max(earliest, self.workload.created_at))

    def find_job_uid(self, attempt: int) -> str:
        """Return the uid of the job of an earlier attempt, "" if it never had one."""
        return next((uid for uid, number in self.job_uids.items() if number == attempt), "")

    def find_pod_attempt(self, uid: str) -> int | None:
        """Return the attempt of a pod that the batch or one of its events mentions."""
        pod = self.pods.get(uid)
        return self.pod_attempts.get(uid) if pod is None else pod.attempt

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

    Makes five queries at most, however many there are. Of pods only those are read that these
    mention: a change must not cost more in a workload of many pods.
    """
    ids = {obj.workload for obj in objects if obj.workload is not None} | set(recheck_ids)
    names = {(obj.namespace, obj.name) for obj in objects if obj.workload is None}
    names |= {(each.namespace, name) for each in cluster_events for name in each.names}
    updates = {
        row.pk: WorkloadUpdate(
            row,
            row.namespace,
            decode_counts(row.pod_counts),
        )
        for row in _load_workload_rows(cluster_id, ids, names)
    }
    if not updates:
        return {}
    _load_pods(updates, objects, cluster_events)
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


def _load_pods(
    updates: Mapping[uuid.UUID, WorkloadUpdate],
    objects: Sequence[ObservedObject],
    cluster_events: Sequence[ClusterEvent],
) -> None:
    """Load the rows of the pods that are mentioned; of events' subjects only their attempts."""
    mentioned = {
        (obj.workload, obj.uid)
        for obj in objects
        if obj.kind == "pod" and obj.workload is not None and obj.workload in updates
    }
    by_name: dict[tuple[str, str], list[uuid.UUID]] = {}
    for pk, update in updates.items():
        by_name.setdefault((update.namespace, update.workload.name), []).append(pk)
    subjects = {
        (pk, event.subject_uid)
        for event in cluster_events
        if event.subject_kind == "Pod"
        for name in event.names
        for pk in by_name.get((event.namespace, name), ())
    }
    for workload_id, uid, attempt in bulk_sql.find_rows(
        Pod, ("workload", "uid", "attempt"), ("workload", "uid"), subjects - mentioned
    ):
        updates[workload_id].pod_attempts[uid] = attempt
    for values in bulk_sql.find_rows(Pod, _POD_NAMES, ("workload", "uid"), mentioned):
        pod = bulk_sql.build_row(Pod, dict(zip(_POD_ATTRIBUTES, values, strict=True)))
        pod.data = KeptObject(pod.data)
        update = updates[pod.workload_id]
        update.pods[pod.uid] = pod
        update.shares[pod.uid] = find_share(pod)


def find_share(pod: Pod) -> PodShare | None:
    """Return what a pod's row adds to the counts; None where the pod no longer exists."""
    if pod.vanished_at is not None:
        return None
    is_placed = bool(pod.node) and pod.phase not in ("Succeeded", "Failed")
    return PodShare(
        Standing(pod.standing or Standing.FOREIGN),
        is_preempted=pod.is_preempted,
        is_master=pod.role in RANK_0_ROLES,
        is_data_worker=pod.role == DATA_WORKER,
        milli_gpus=int(pod.gpus * 1000) if pod.gpus and is_placed else 0,
        milli_cores=int(pod.cpu * 1000) if pod.cpu and is_placed else 0,
        memory=pod.memory if pod.memory and is_placed else 0,
    )


def _load_workload_rows(
    cluster_id: uuid.UUID, ids: Collection[uuid.UUID], names: Collection[tuple[str, str]]
) -> list[Any]:
    if names:
        recent = Q(released_at=None) | Q(released_at__gte=timezone.now() - LATE_EVENTS_WINDOW)
        namespaces = {namespace for namespace, _ in names}
        named = Workload.objects.filter(
            recent,
            cluster=cluster_id,
            name__in={name for _, name in names},
            project__namespace__in=namespaces,
        )
        newest_first = named.order_by(F("released_at").desc(nulls_first=True))
        namesakes: dict[tuple[int, str], list[uuid.UUID]] = defaultdict(list)
        for pk, project_id, name in newest_first.values_list("pk", "project", "name"):
            namesakes[project_id, name].append(pk)
        ids = {*ids, *(pk for each in namesakes.values() for pk in each[:MOST_NAMESAKES])}
    # By the id alone: PostgreSQL may else read all workloads of the cluster by that index.
    value_rows = bulk_sql.find_rows(Workload, _WORKLOAD_NAMES, ("id",), [(pk,) for pk in ids])
    rows = [
        bulk_sql.build_row(Workload, dict(zip(_WORKLOAD_ATTRIBUTES, values, strict=True)))
        for values in value_rows
    ]
    return [row for row in rows if row.cluster_id == cluster_id]
