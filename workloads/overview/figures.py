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
    """Nodes and their GPUs.

    `allocated` counts what anybody's pods hold; of the rest, `unavailable` are on nodes that accept
    no pods now. `seen_at` is the age of the oldest of the data.
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
    """GPUs that are allocated and not used; the use of `unknown` ones is not known.

    `at` is None without a recent sample.
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
    """Load the free GPUs on nodes that are not ready or closed.

    One query, two where there are any.
    """
    unfit = Node.objects.filter(cluster__in=clusters, gpus__gt=0).exclude(_TAKES_PODS)
    free_gpus = {
        (cluster, name): gpus - used
        for cluster, name, gpus, used in unfit.values_list(
            "cluster_id", "name", "gpus", "used_gpus"
        )
    }
    if not free_gpus:
        return _ZERO
    pods = Pod.objects.filter(
        node__in={name for _, name in free_gpus}, phase__in=("Pending", "Running"), vanished_at=None
    )
    ours = pods.order_by().values_list("workload__cluster_id", "node").annotate(gpus=Sum("gpus"))
    for cluster, name, gpus in ours:
        if (cluster, name) in free_gpus:
            free_gpus[cluster, name] -= gpus or _ZERO
    return sum((max(gpus, _ZERO) for gpus in free_gpus.values()), _ZERO)


def load_node_totals(
    clusters: Collection[UUID], holdings: GpuHoldings, unavailable: Decimal
) -> NodeTotals:
    """Load the totals of these clusters.

    Their `holdings` and `unavailable` GPUs are given. One query.
    """
    totals = Node.objects.filter(cluster__in=clusters).aggregate(
        nodes=Count("id"),
        ready=Count("id", filter=_TAKES_PODS),
        gpus=Sum("gpus"),
        unhealthy=Sum("gpus_unhealthy"),
        used=Sum("used_gpus"),
        seen=Min("seen_at"),
    )
    ours = sum(
        (each.gpus for cluster_holdings in holdings.values() for each in cluster_holdings), _ZERO
    )
    gpus = totals["gpus"] or _ZERO
    allocated = ours + (totals["used"] or _ZERO)
    return NodeTotals(
        totals["nodes"],
        totals["ready"],
        gpus,
        totals["unhealthy"] or _ZERO,
        allocated,
        unavailable,
        totals["seen"],
    )


def load_idle_gpus(projects: ProjectIds) -> IdleGpus:
    """Load the idle GPUs of these projects, by their newest samples.

    Two queries.
    """
    at = utilisation.find_latest_sample_time()
    if at is None:
        return IdleGpus(_ZERO, _ZERO, _ZERO, None)
    rows = Sample.objects.filter(at=at)
    rows = rows if projects is None else rows.filter(project__in=projects)
    totals = rows.aggregate(
        gpus=Sum("gpus_idle"),
        held=Sum("gpus_allocated"),
        unknown=Sum("gpus_allocated", filter=Q(gpus_idle=None)),
    )
    return IdleGpus(
        totals["gpus"] or _ZERO, totals["unknown"] or _ZERO, totals["held"] or _ZERO, at
    )
