"""The numbers of the overview's tiles: nodes, GPUs and how many of them are idle."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db.models import Count, Min, Q, Sum

from clusters.models import Node
from workloads import utilisation
from workloads.models import Pod, Sample
from workloads.overview.viewer_scope import ProjectIds
from workloads.queries.waiting import GpuHoldings

_ZERO = Decimal(0)
_TAKES_PODS = Q(is_ready=True, is_schedulable=True)


@dataclass(frozen=True, slots=True)
class NodeTotals:
    """Nodes and their GPUs. `allocated` counts what anybody's pods hold; of the rest, `away` are on
    nodes that take no pods now.

    `seen_at` is the age of the oldest of it.
    """

    nodes: int
    ready: int
    gpus: Decimal
    unhealthy: Decimal
    allocated: Decimal
    unavailable: Decimal
    seen_at: datetime | None

    @property
    def free(self) -> Decimal:
        return max(self.gpus - self.allocated - self.unavailable, _ZERO)


@dataclass(frozen=True, slots=True)
class IdleGpus:
    """GPUs that are held and not used; of those in `unknown` nobody knows. `at` is None where
    nobody looked lately.
    """

    gpus: Decimal
    unknown: Decimal
    allocated: Decimal
    at: datetime | None

    @property
    def is_known(self) -> bool:
        return self.at is not None and not self.unknown

    @property
    def is_partly_known(self) -> bool:
        return self.at is not None and _ZERO < self.unknown < self.allocated


def load_unavailable_gpus(clusters: Collection[UUID]) -> Decimal:
    """GPUs that nobody holds and nobody can have now, for their nodes are not ready or closed. One
    query, two where there are any.
    """
    unfit = Node.objects.filter(cluster__in=clusters, gpus__gt=0).exclude(_TAKES_PODS)
    left = {
        (cluster, name): gpus - used
        for cluster, name, gpus, used in unfit.values_list(
            "cluster_id", "name", "gpus", "used_gpus"
        )
    }
    if not left:
        return _ZERO
    pods = Pod.objects.filter(
        node__in={name for _, name in left}, phase__in=("Pending", "Running"), vanished_at=None
    )
    ours = pods.order_by().values_list("workload__cluster_id", "node").annotate(gpus=Sum("gpus"))
    for cluster, name, gpus in ours:
        if (cluster, name) in left:
            left[cluster, name] -= gpus or _ZERO
    return sum((max(gpus, _ZERO) for gpus in left.values()), _ZERO)


def load_node_totals(
    clusters: Collection[UUID], holdings: GpuHoldings, unavailable: Decimal
) -> NodeTotals:
    """Of these clusters, whose `held` GPUs, and those that are `away`, are known. One query."""
    found = Node.objects.filter(cluster__in=clusters).aggregate(
        nodes=Count("id"),
        ready=Count("id", filter=_TAKES_PODS),
        gpus=Sum("gpus"),
        unhealthy=Sum("gpus_unhealthy"),
        used=Sum("used_gpus"),
        seen=Min("seen_at"),
    )
    ours = sum((each.gpus for some in holdings.values() for each in some), _ZERO)
    gpus = found["gpus"] or _ZERO
    allocated = ours + (found["used"] or _ZERO)
    return NodeTotals(
        found["nodes"],
        found["ready"],
        gpus,
        found["unhealthy"] or _ZERO,
        allocated,
        unavailable,
        found["seen"],
    )


def load_idle_gpus(projects: ProjectIds) -> IdleGpus:
    """Of these projects, as their newest samples tell. Two queries."""
    at = utilisation.find_latest_sample_time()
    if at is None:
        return IdleGpus(_ZERO, _ZERO, _ZERO, None)
    rows = Sample.objects.filter(at=at)
    rows = rows if projects is None else rows.filter(project__in=projects)
    found = rows.aggregate(
        gpus=Sum("gpus_idle"),
        held=Sum("gpus_allocated"),
        unknown=Sum("gpus_allocated", filter=Q(gpus_idle=None)),
    )
    return IdleGpus(found["gpus"] or _ZERO, found["unknown"] or _ZERO, found["held"] or _ZERO, at)
