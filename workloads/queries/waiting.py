"""Why workloads wait: puts the rows of one, or of several at once, into the shapes that `diagnosis`
reads. The same few queries for all.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import F, Sum

from clusters.models import Node
from projects.models import User
from projects.querysets import list_visible_project_ids
from workloads.diagnosis import Diagnosis, diagnose_waiting
from workloads.kube_objects import Object
from workloads.models import Event, Pod, Workload
from workloads.queries.node_capacity import rooms
from workloads.states import ACTIVE, Status

WAITING_STATUSES = ACTIVE - {Status.RUNNING}
"""Statuses that are asked why."""
MOST_PODS = 500
"""Pods that are read of all workloads together; one alone may have that many as well."""
MOST_EVENTS = 200

_NONE = Decimal(0)
_HOLDING_STATUSES = [status.value for status in ACTIVE | {Status.STOPPING, Status.DELETING}]

WaitDiagnosis = tuple[Diagnosis, Pod | None]
"""With the pod that it speaks of."""


@dataclass(frozen=True, slots=True)
class GpuHolding:
    """GPUs that a project holds on a cluster now."""

    project_id: int
    name: str
    preemptible: bool
    gpus: Decimal


GpuHoldings = Mapping[uuid.UUID, Sequence[GpuHolding]]
"""By cluster."""


def diagnose_waiting_workloads(
    workloads: Sequence[Workload], user: User
) -> dict[uuid.UUID, WaitDiagnosis]:
    """Of those that wait the reason, by id; one with too many pods for a list is left out. Names
    other projects only to who sees them.

    The rows are loaded with their projects.
    """
    asked = _limit_pods(
        [each for each in workloads if each.status in WAITING_STATUSES and each.job is not None]
    )
    if not asked:
        return {}
    visible, clusters = list_visible_project_ids(user), {each.cluster_id for each in asked}
    pods, events, holdings, foreign = (
        _load_pods(asked),
        _load_events(asked),
        load_gpu_holdings(clusters),
        _load_foreign_gpus(clusters),
    )
    found = {}
    for workload in asked:
        mine = holdings.get(workload.cluster_id, ())
        rows = pods.get(workload.pk, ())
        told = diagnose_waiting(
            workload.job or {},
            [pod.data for pod in rows],
            workload.pod_group,
            queue=_build_queue(workload, mine),
            nodes=rooms(workload.cluster_id),
            events=events.get(workload.pk, ()),
            holders=_sum_holders(workload, mine, foreign.get(workload.cluster_id, _NONE), visible),
        )
        if told is not None:
            found[workload.pk] = (
                told,
                next((pod for pod in rows if told.pod and pod.name == told.pod), None),
            )
    return found


def load_gpu_holdings(clusters: Iterable[uuid.UUID]) -> GpuHoldings:
    """GPUs that projects hold on each of these clusters now. One query."""
    holding = Workload.objects.filter(
        cluster__in=clusters, status__in=_HOLDING_STATUSES, gpus_allocated__gt=0
    ).order_by()
    grouped = holding.values("cluster_id", "project_id", "project__name", "preemptible").annotate(
        gpus=Sum("gpus_allocated")
    )
    found: dict[uuid.UUID, list[GpuHolding]] = defaultdict(list)
    for each in grouped:
        found[each["cluster_id"]].append(
            GpuHolding(each["project_id"], each["project__name"], each["preemptible"], each["gpus"])
        )
    return found


def _limit_pods(workloads: Sequence[Workload]) -> Sequence[Workload]:
    """As many as have MOST_PODS pods together; a single one is always asked."""
    found: list[Workload] = []
    pods = 0
    for workload in workloads:
        if found and pods + workload.requested_pods > MOST_PODS:
            continue
        pods += workload.requested_pods
        found.append(workload)
    return found


def _load_pods(workloads: Sequence[Workload]) -> Mapping[uuid.UUID, Sequence[Pod]]:
    rows = Pod.objects.filter(
        workload__in=[each.pk for each in workloads],
        vanished_at=None,
        attempt=F("workload__attempt"),
    )
    found: dict[uuid.UUID, list[Pod]] = defaultdict(list)
    for pod in rows.order_by("rank", "id")[:MOST_PODS]:
        found[pod.workload_id].append(pod)
    return found


def _load_events(workloads: Sequence[Workload]) -> Mapping[uuid.UUID, Sequence[Object]]:
    """The cluster's events of each one's attempt as objects, the newest of all of them."""
    keys = [each.pk for each in workloads]
    rows = Event.objects.filter(
        workload__in=keys, attempt=F("workload__attempt"), kind=Event.Kind.CLUSTER
    ).order_by("-at", "-id")
    found: dict[uuid.UUID, list[Object]] = defaultdict(list)
    for row in rows[: MOST_EVENTS * len(keys)]:
        found[row.workload_id].append(
            {
                "involvedObject": {"kind": row.subject_kind, "name": row.subject},
                "type": "Warning" if row.is_warning else "Normal",
                "reason": row.reason,
                "message": row.text,
                "lastTimestamp": row.at.isoformat(),
            }
        )
    return found


def _build_queue(workload: Workload, holdings: Sequence[GpuHolding]) -> Object:
    """The project's Queue as far as its row tells: quota and limit, and what the project holds."""
    mine = [each for each in holdings if each.project_id == workload.project_id]
    bounds = {"quota": workload.project.gpu_quota, "limit": workload.project.gpu_limit}
    allocated = sum((each.gpus for each in mine), _NONE)
    fixed = sum((each.gpus for each in mine if not each.preemptible), _NONE)
    return {
        "spec": {
            "resources": {
                "gpu": {name: str(bound) for name, bound in bounds.items() if bound is not None}
            }
        },
        "status": {
            "allocated": {"nvidia.com/gpu": str(allocated)},
            "allocatedNonPreemptible": {"nvidia.com/gpu": str(fixed)},
        },
    }


def _sum_holders(
    workload: Workload,
    holdings: Sequence[GpuHolding],
    foreign: Decimal,
    visible: frozenset[int] | None,
) -> Mapping[str, Decimal]:
    """GPUs of other projects by name; those that may not be named, and pods that are not Muster's,
    together under "".
    """
    found: dict[str, Decimal] = {}
    for each in holdings:
        if each.project_id != workload.project_id:
            name = each.name if visible is None or each.project_id in visible else ""
            found[name] = found.get(name, _NONE) + each.gpus
    if foreign:
        found[""] = found.get("", _NONE) + foreign
    return found


def _load_foreign_gpus(clusters: Iterable[uuid.UUID]) -> Mapping[uuid.UUID, Decimal]:
    """GPUs that pods of others hold on each cluster."""
    rows = (
        Node.objects.filter(cluster__in=clusters)
        .order_by()
        .values_list("cluster_id")
        .annotate(gpus=Sum("used_gpus"))
    )
    return {cluster: gpus or _NONE for cluster, gpus in rows}
