"""How many pods of an attempt ran over time: its data is read within bounds, however many came."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, Max, Min, QuerySet
from django.db.models.functions import Coalesce, Least, Trunc

from workloads.kube_objects import DATA_WORKER
from workloads.models import Pod, Workload
from workloads.pod_counts import Standing

MOST_EXACT = 2000
"""Pods whose moments are read one by one; of more, the database counts by the second or longer."""
UNITS = (
    ("second", timedelta(minutes=20)),
    ("minute", timedelta(hours=24)),
    ("hour", timedelta(days=60)),
)
"""What moments are rounded to, and the longest time for which so many are bounded."""


@dataclass(frozen=True, slots=True)
class PodHistory:
    """The numbers of running pods, each from its moment on; the last one holds until `end`."""

    begin: datetime
    end: datetime
    steps: Sequence[tuple[datetime, int]]
    is_rounded: bool = False

    @property
    def most(self) -> int:
        return max((count for _, count in self.steps), default=0)


def load_pod_history(workload: Workload, now: datetime) -> PodHistory | None:
    """Load how many pods of the present attempt ran over time; None before the first started.

    Four queries at most, and some thousands of short rows.
    """
    pods = (
        Pod.objects.filter(workload=workload, attempt=workload.attempt, started_at__isnull=False)
        .exclude(standing=Standing.FOREIGN)
        .exclude(role=DATA_WORKER)
        .order_by()
        .annotate(gone_at=_earliest_end())
    )
    moments = list(pods.values_list("started_at", "gone_at")[: MOST_EXACT + 1])
    if not moments:
        return None
    changes: Counter[datetime] = Counter()
    is_rounded = len(moments) > MOST_EXACT
    if is_rounded:
        bounds = pods.aggregate(begin=Min("started_at"), end=Max("gone_at"))
        unit = _choose_unit((workload.ended_at or now) - bounds["begin"])
        _add_rounded(changes, pods, "started_at", unit, 1)
        _add_rounded(changes, pods.filter(gone_at__isnull=False), "gone_at", unit, -1)
    else:
        for started_at, gone_at in moments:
            assert started_at is not None
            changes[started_at] += 1
            if gone_at is not None:
                # Clocks of nodes differ: nobody ends before the start.
                changes[max(started_at, gone_at)] -= 1
    steps = _add_up(sorted(changes.items()))
    begin, last = steps[0][0], steps[-1][0]
    has_ended = steps[-1][1] == 0 and workload.ended_at is not None
    return PodHistory(begin, last if has_ended else max(last, now), steps, is_rounded)


def _earliest_end() -> Any:
    """Return a pod's end: of its containers, or when its object went, whichever came first."""
    ended, vanished = F("ended_at"), F("vanished_at")
    return Least(Coalesce(ended, vanished), Coalesce(vanished, ended))


def _choose_unit(length: timedelta) -> str:
    return next((unit for unit, longest in UNITS if length <= longest), "day")


def _add_rounded(
    changes: Counter[datetime], pods: "QuerySet[Pod]", field: str, unit: str, sign: int
) -> None:
    groups = pods.annotate(at=Trunc(field, unit)).values("at").annotate(count=Count("pk"))
    for at, count in groups.values_list("at", "count"):
        changes[at] += sign * count


def _add_up(changes: Iterable[tuple[datetime, int]]) -> list[tuple[datetime, int]]:
    steps: list[tuple[datetime, int]] = []
    count = 0
    for at, change in changes:
        count += change
        if not steps or steps[-1][1] != count:
            steps.append((at, max(0, count)))
    return steps
