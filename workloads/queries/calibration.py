"""How right forecasts were: by project and how far ahead, and quantile by quantile."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import BooleanField, Count, ExpressionWrapper, Q, QuerySet

from projects.models import User
from simulation import ReliabilityPoint, compute_reliability
from simulation.forecasts import INTERVAL
from workloads.models import ForecastRecord, Horizon
from workloads.queries.forecasts import (
    WINDOW,
    compute_share,
    find_decided_records,
    find_overdue_records,
)

MOST_PROJECTS = 100
"""Projects of one page, those with most forecasts."""
MOST_OUTCOMES = 5_000
"""Outcomes that the diagram is made of, the newest."""
SHOWN_SHARES = (INTERVAL[0], 0.5, INTERVAL[1])
"""Which shares are said to have started by the three times that are shown."""
CLAIM = INTERVAL[1] - INTERVAL[0]
"""Which share of intervals claims to be right."""


@dataclass(frozen=True, slots=True)
class ForecastCounts:
    """How many forecasts were decided, and right."""

    count: int = 0
    right: int = 0

    @property
    def share(self) -> float | None:
        """The share of right ones; None where there are too few."""
        return compute_share(self.right, self.count)

    @property
    def percent(self) -> str:
        """The share for people; "" where there are too few."""
        return "" if self.share is None else f"{100 * self.share:.0f} %"


@dataclass(slots=True)
class ProjectCalibration:
    """The counts of one project's forecasts, by how far ahead they looked."""

    project_id: int
    name: str
    horizons: dict[Horizon, ForecastCounts] = field(default_factory=dict)

    @property
    def total(self) -> ForecastCounts:
        """All of them together."""
        return add_counts(self.horizons.values())

    @property
    def cells(self) -> Sequence[ForecastCounts]:
        """The counts of each class, the shortest first."""
        return [self.horizons.get(each, ForecastCounts()) for each in Horizon]


@dataclass(frozen=True, slots=True)
class Calibration:
    """How right the forecasts were that one reader may see.

    `drawn` are points of what the simulator drew, `shown` those of what was shown: widened.
    """

    projects: Sequence[ProjectCalibration]
    has_more: bool
    horizons: Mapping[Horizon, ForecastCounts]
    total: ForecastCounts
    unstarted: int
    """Forecasts whose workloads were stopped or deleted before they started."""
    open: int
    drawn: Sequence[ReliabilityPoint]
    shown: Sequence[ReliabilityPoint]


def add_counts(counts: Iterable[ForecastCounts]) -> ForecastCounts:
    """Add up counts."""
    parts = list(counts)
    return ForecastCounts(sum(each.count for each in parts), sum(each.right for each in parts))


def filter_records(
    user: User, now: datetime, project: int | None = None, horizon: Horizon | None = None
) -> "QuerySet[ForecastRecord]":
    """Return the forecasts of the window that the reader may see."""
    records = ForecastRecord.objects.visible_to(user).filter(made_at__gte=now - WINDOW)
    if project is not None:
        records = records.filter(project=project)
    if horizon is not None:
        records = records.filter(horizon=horizon.value)
    return records


def load_calibration(records: "QuerySet[ForecastRecord]", now: datetime) -> Calibration:
    """Sum up how right these forecasts were. Three queries."""
    projects = load_projects(records, now)
    is_open = Q(closed_at=None, is_right=None) & ~find_overdue_records(now)
    states = records.order_by().aggregate(
        unstarted=Count("pk", filter=Q(closed_at__isnull=False, is_right=None)),
        open=Count("pk", filter=is_open),
    )
    drawn, shown = _load_reliability(records, now)
    return Calibration(
        projects=projects[:MOST_PROJECTS],
        has_more=len(projects) > MOST_PROJECTS,
        horizons={
            horizon: add_counts(
                each.horizons[horizon] for each in projects if horizon in each.horizons
            )
            for horizon in Horizon
        },
        total=add_counts(each.total for each in projects),
        unstarted=states["unstarted"],
        open=states["open"],
        drawn=drawn,
        shown=shown,
    )


def load_projects(
    records: "QuerySet[ForecastRecord]", now: datetime
) -> Sequence[ProjectCalibration]:
    """Load the counts of each project, those with most forecasts first. One query."""
    grouped = (
        records.filter(find_decided_records(now))
        .order_by()
        .values_list("project", "project__name", "horizon")
        .annotate(count=Count("pk"), right=Count("pk", filter=Q(is_right=True)))
    )
    projects: dict[int, ProjectCalibration] = {}
    for project, name, horizon, count, right in grouped:
        each = projects.setdefault(project, ProjectCalibration(project, name))
        each.horizons[Horizon(horizon)] = ForecastCounts(count, right)
    return sorted(projects.values(), key=lambda each: (-each.total.count, each.name))


def _load_reliability(
    records: "QuerySet[ForecastRecord]", now: datetime
) -> tuple[Sequence[ReliabilityPoint], Sequence[ReliabilityPoint]]:
    """Return how often starts came by the drawn quantiles, and by what was shown. One query.

    What was shown is of the forecasts that are decided, as the shares are; what was drawn is of
    those whose outcome is known against what was drawn. What waited in vain came later than all
    bounds. The drawn quantiles are those that the newest record has.
    """
    decided = records.annotate(
        is_decided=ExpressionWrapper(find_decided_records(now), BooleanField())
    )
    has_outcome = ForecastRecord.find_known_outcomes(now) | Q(is_decided=True)
    fields = (
        *("made_at", "started_at", "closed_at", "is_decided", "drawn_latest_at", "quantiles"),
        *("earliest_at", "likely_at", "latest_at"),
    )
    rows = (
        decided.filter(has_outcome).order_by("-made_at", "-pk").values_list(*fields)[:MOST_OUTCOMES]
    )
    drawn_shares: tuple[float, ...] = ()
    drawn, shown = [], []
    for made_at, started_at, closed_at, is_decided, drawn_latest_at, quantiles, *bounds in rows:
        start = math.inf if started_at is None else (started_at - made_at).total_seconds()
        seconds = [each and (each - made_at).total_seconds() for each in bounds]
        if is_decided:
            shown.append(([_read_bound(each) for each in seconds], start))
        if started_at is None and not _is_past(drawn_latest_at, closed_at or now):
            continue
        shares = tuple(share for share, _ in quantiles)
        drawn_shares = drawn_shares or shares
        if shares == drawn_shares:
            drawn.append(([_read_bound(each) for _, each in quantiles], start))
    return compute_reliability(drawn_shares, drawn), compute_reliability(SHOWN_SHARES, shown)


def _is_past(moment: datetime | None, now: datetime) -> bool:
    return moment is not None and moment < now


def _read_bound(seconds: float | None) -> float:
    """Return a quantile; one beyond what is played forward is later than any start but none."""
    return 1e12 if seconds is None else seconds


def iterate_rows(projects: Sequence[ProjectCalibration]) -> Iterator[Sequence[str]]:
    """Yield the cells of CSV: project, how far ahead, decided, right, share."""
    for each in projects:
        for horizon, counts in zip(Horizon, each.cells, strict=True):
            if counts.count:
                share = "" if counts.share is None else f"{counts.share:.4f}"
                yield each.name, horizon.value, str(counts.count), str(counts.right), share
