"""Who holds GPUs: projects by name where the reader may see them, all others together."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Sum

from clusters.models import Node
from workloads.overview.viewer_scope import ProjectIds
from workloads.queries.waiting import GpuHoldings

MOST_HOLDERS = 10
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Holder:
    """`project` is None for a holder that is not named here.

    `preemptible` is the part that others' quotas can reclaim.
    """

    name: str
    project: int | None
    gpus: Decimal
    preemptible: Decimal = _ZERO


@dataclass(frozen=True, slots=True)
class Holders:
    """The largest holders, and what all of them together hold.

    `unavailable` GPUs are free, on nodes that accept no pods now.
    """

    rows: Sequence[Holder]
    allocated: Decimal
    gpus: Decimal
    unavailable: Decimal

    @property
    def free(self) -> Decimal:
        return max(self.gpus - self.allocated - self.unavailable, _ZERO)


def load_holders(
    clusters: Collection[uuid.UUID],
    visible: ProjectIds,
    holdings: GpuHoldings,
    unavailable: Decimal,
) -> Holders:
    """Load the holders of these clusters.

    Their `holdings` and `unavailable` GPUs are given. One query.
    """
    nodes = Node.objects.filter(cluster__in=clusters).aggregate(
        gpus=Sum("gpus"), used=Sum("used_gpus")
    )
    sums_by_project: dict[int | None, list[Decimal]] = {}
    names: dict[int | None, str] = {None: "Other projects"}
    for each in (each for cluster_holdings in holdings.values() for each in cluster_holdings):
        key = each.project_id if visible is None or each.project_id in visible else None
        names[key] = each.name if key is not None else names[None]
        sums = sums_by_project.setdefault(key, [_ZERO, _ZERO])
        sums[0] += each.gpus
        sums[1] += each.gpus if each.preemptible else _ZERO
    rows = sorted(
        (Holder(names[key], key, *sums) for key, sums in sums_by_project.items()),
        key=lambda row: (row.project is None, -row.gpus),
    )
    foreign = nodes["used"] or _ZERO
    together = sum((row.gpus for row in rows), _ZERO) + foreign
    return Holders(
        _merge_smallest(rows)
        + ([Holder("Pods that are not Muster's", None, foreign)] if foreign else []),
        together,
        nodes["gpus"] or _ZERO,
        unavailable,
    )


def _merge_smallest(rows: list[Holder]) -> list[Holder]:
    """Return the first MOST_HOLDERS rows, with all that come after as one."""
    if len(rows) <= MOST_HOLDERS:
        return rows
    rest = rows[MOST_HOLDERS - 1 :]
    merged = Holder(
        f"{len(rest)} more",
        None,
        sum((row.gpus for row in rest), _ZERO),
        sum((row.preemptible for row in rest), _ZERO),
    )
    return [*rows[: MOST_HOLDERS - 1], merged]
