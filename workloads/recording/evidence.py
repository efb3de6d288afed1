"""What the time machine records, out of rows as they are now: each in few, bounded queries."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from django.db.models import Count, F, Q, Sum

from clusters.models import Cluster, Node
from console.chunks import split_chunks
from projects.models import Department, Project
from workloads.elastic.cluster_state import find_priority
from workloads.models import Pod, Workload
from workloads.queries.waiting import (
    WAITING_STATUSES,
    diagnose_without_places,
    limit_pods,
)
from workloads.states import ACTIVE, ENDING
from workloads.time_machine import (
    PastCluster,
    PastNode,
    PastQuota,
    PastWorkload,
    Placement,
    QuotaOwner,
    WaitReason,
)

RECORDED_STATUSES = sorted(status.value for status in ACTIVE | ENDING)
WAITING = frozenset(status.value for status in WAITING_STATUSES)
MOST_CHANGED = 20_000
"""Changed workloads of one turn; the next goes on with the rest."""
MOST_NODES = 20_000
MOST_QUOTAS = 20_000
MOST_EXPLAINED = 100
"""Waiting workloads that are diagnosed in one turn after a change, and as many in turns."""
LONGEST_REASON = 300
LONGEST_SENTENCE = 800
_WORKLOAD_FIELDS = (
    *("id", "project_id", "cluster_id", "name", "submitted_by__username", "status", "status_at"),
    *("attempts__requested_at", "priority", "preemptible", "running_pods", "requested_pods"),
    *("gpus_requested", "gpu_memory_requested", "gpus_allocated", "reason"),
)
_UNREAD_FIELDS = ("spec", "data_job", "pod_counts", "trouble", "excluded_nodes")


def list_changed_ids(after: int) -> tuple[list[uuid.UUID], int]:
    """Return the workloads that changed after a position, and up to which position they are."""
    rows = Workload.objects.filter(changed__gt=after).order_by("changed")
    changed = list(rows.values_list("changed", "id")[: MOST_CHANGED + 1])
    if not changed:
        return [], after
    if len(changed) > MOST_CHANGED:
        # All of one position are taken in the same turn: the bookmark has no place between them.
        last = changed[-1][0]
        if changed[0][0] == last:
            return list(Workload.objects.filter(changed=last).values_list("id", flat=True)), last
        changed = [row for row in changed if row[0] < last]
    return [id for _, id in changed], changed[-1][0]


def list_recorded_ids() -> list[uuid.UUID]:
    """Return all workloads that wait, run or are being stopped."""
    rows = Workload.objects.filter(status__in=RECORDED_STATUSES, released_at=None)
    return list(rows.order_by("pk").values_list("pk", flat=True))


def load_workloads(ids: Sequence[uuid.UUID]) -> list[PastWorkload]:
    """Load those of these workloads that wait, run or are being stopped."""
    loaded = []
    for chunk in split_chunks(ids):
        rows = Workload.objects.filter(
            pk__in=chunk,
            status__in=RECORDED_STATUSES,
            released_at=None,
            attempts__number=F("attempt"),
        )
        loaded += [_build_workload(*row) for row in rows.order_by().values_list(*_WORKLOAD_FIELDS)]
    return loaded


def _build_workload(
    id: uuid.UUID,
    project: int,
    cluster: uuid.UUID,
    name: str,
    owner: str | None,
    status: str,
    status_at: datetime,
    requested_at: datetime,
    priority: str,
    preemptible: bool,
    running_pods: int,
    requested_pods: int,
    gpus_requested: Decimal,
    gpu_memory: int,
    gpus_allocated: Decimal,
    reason: str,
) -> PastWorkload:
    return PastWorkload(
        id=id.bytes,
        project=project,
        cluster=cluster.bytes,
        name=name,
        owner=owner or "",
        status=status,
        since=int(status_at.timestamp()),
        requested_at=int(requested_at.timestamp()),
        requested_micros=requested_at.microsecond,
        priority=find_priority(priority),
        preemptible=preemptible,
        running_pods=running_pods,
        requested_pods=requested_pods,
        gpus_requested=_to_thousandths(gpus_requested),
        gpu_memory=gpu_memory,
        gpus_allocated=_to_thousandths(gpus_allocated),
        reason=reason[:LONGEST_REASON],
    )


def load_placements(ids: Sequence[uuid.UUID]) -> list[Placement]:
    """Load where the unended pods of these workloads are, added up by workload and node."""
    placements = []
    for chunk in split_chunks(ids):
        pods = Pod.objects.filter(
            workload__in=chunk, phase__in=("Pending", "Running"), vanished_at=None
        ).exclude(node="")
        groups = pods.order_by().values_list("workload_id", "node")
        placements += [
            Placement(workload.bytes, node, count, ready, _to_thousandths(gpus))
            for workload, node, count, ready, gpus in groups.annotate(
                count=Count("id"), ready=Count("id", filter=Q(is_ready=True)), held=Sum("gpus")
            )
        ]
    return placements


def load_nodes() -> list[PastNode]:
    """Load the nodes of all clusters."""
    rows = Node.objects.filter(cluster__removed_at=None).order_by("pk")
    columns = ("cluster_id", "name", "is_ready", "is_schedulable", "gpu_type", "gpus", "used_gpus")
    return [
        PastNode(
            cluster.bytes, name, ready, free, kind, _to_thousandths(gpus), _to_thousandths(used)
        )
        for cluster, name, ready, free, kind, gpus, used in rows.values_list(*columns)[:MOST_NODES]
    ]


def load_quotas() -> list[PastQuota]:
    """Load the quotas of all projects and departments. Two queries."""
    columns = ("id", "gpu_quota", "gpu_limit", "over_quota_weight")
    projects = Project.objects.there().order_by("pk").values_list(*columns, "department_id")
    departments = Department.objects.there().order_by("pk").values_list(*columns)
    return [
        *(_build_quota(QuotaOwner.PROJECT, *row) for row in projects[:MOST_QUOTAS]),
        *(_build_quota(QuotaOwner.DEPARTMENT, *row) for row in departments[:MOST_QUOTAS]),
    ]


def _build_quota(
    owner: QuotaOwner,
    id: int,
    quota: Decimal | None,
    limit: Decimal | None,
    weight: Decimal,
    department: int = 0,
) -> PastQuota:
    return PastQuota(
        owner,
        id,
        None if quota is None else _to_thousandths(quota),
        None if limit is None else _to_thousandths(limit),
        _to_thousandths(weight),
        department,
    )


def load_clusters() -> list[PastCluster]:
    """Load since when each cluster is silent: it does not answer, is disabled or not followed."""
    clusters = Cluster.objects.filter(removed_at=None).only(
        "is_enabled", "disabled_at", "unreachable_since", "followed_until"
    )
    return [PastCluster(each.pk.bytes, _find_silence(each)) for each in clusters]


def _find_silence(cluster: Cluster) -> int:
    disabled_at = None if cluster.is_enabled else cluster.disabled_at
    moments = (disabled_at, cluster.unreachable_since, cluster.unfollowed_since)
    return min((int(moment.timestamp()) for moment in moments if moment), default=0)


def load_reasons(
    ids: Sequence[uuid.UUID],
) -> tuple[Mapping[bytes, WaitReason | None], list[uuid.UUID]]:
    """Return why the first of these workloads wait, and those that were not looked into.

    The ids are in order. As many are looked into as have not too many pods together, and at least
    one. None: nothing is known.
    """
    rows = Workload.objects.filter(pk__in=ids, status__in=WAITING, job__isnull=False)
    candidates = list(rows.select_related("project").defer(*_UNREAD_FIELDS).order_by("pk"))
    workloads = limit_pods(candidates, in_order=True)
    remaining_ids: list[uuid.UUID] = []
    if len(workloads) < len(candidates):
        remaining_ids = [each for each in ids if each >= candidates[len(workloads)].pk]
    reasons: dict[bytes, WaitReason | None] = {each.pk.bytes: None for each in workloads}
    # Only a workload's own project is named: who reads it later is not known yet.
    for key, (diagnosis, _) in diagnose_without_places(workloads, frozenset()).items():
        sentence = diagnosis.sentence[:LONGEST_SENTENCE]
        reasons[key.bytes] = WaitReason(key.bytes, sentence, diagnosis.is_queued)
    return reasons, remaining_ids


def _to_thousandths(amount: Decimal | None) -> int:
    return 0 if amount is None else int(amount * 1000)
