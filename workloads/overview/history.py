"""The charts over time: what projects had allocated, from the samples.

As many points as a chart can show, however many samples there are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone

from projects.models import Project
from workloads.models import Sample
from workloads.overview.viewer_scope import ProjectIds


@dataclass(frozen=True, slots=True)
class Span:
    """A length of time, its words, and the distance of its points."""

    words: str
    length: timedelta
    step: int
    """Seconds between two points."""


SPANS: Mapping[str, Span] = {
    "1h": Span("Last hour", timedelta(hours=1), 60),
    "24h": Span("Last 24 hours", timedelta(days=1), 600),
    "7d": Span("Last 7 days", timedelta(days=7), 3600),
    "30d": Span("Last 30 days", timedelta(days=30), 4 * 3600),
}
DEFAULT = "24h"
MOST_LINES = 8
"""Projects with an area of their own; the others are one."""
SAMPLE_TRIES = 3
"""Samples after a point's moment that may stand for it, and before now that may be the newest: a
beat may come late.
"""


@dataclass(frozen=True, slots=True)
class ChartLine:
    """One project's line, or all others'. A point is None where there is no sample."""

    name: str
    project: int | None
    points: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class AllocationHistory:
    """The lines of a chart; each has as many points as there are moments."""

    moments: Sequence[datetime]
    lines: Sequence[ChartLine]
    quota: Sequence[float | None]
    """Of all projects together; None where one of them has no quota."""
    idle: Sequence[float | None]
    """None where it is not known of all projects."""
    used: Sequence[float | None]
    """GPU use added up over GPUs; None where it is not known of all projects."""
    running: Sequence[float | None]
    waiting: Sequence[float | None]


def load_history(
    projects: ProjectIds, span: Span, now: datetime | None = None
) -> AllocationHistory:
    """Load the sums of these projects, and a line for each that held most.

    Five queries.
    """
    rows = Sample.objects.all() if projects is None else Sample.objects.filter(project__in=projects)
    moments, sample_times = _choose_moments(rows, span, now or timezone.now())
    samples = rows.filter(at__in=list(sample_times.values())).order_by()
    sums = _sum_samples(samples)
    largest = (
        samples.values_list("project_id")
        .annotate(gpus=Sum("gpus_allocated"))
        .order_by("-gpus", "project_id")
    )
    keys = [key for key, gpus in largest[:MOST_LINES] if gpus]
    names = dict(Project.objects.filter(pk__in=keys).values_list("pk", "name"))
    project_points = {
        (at, key): gpus
        for at, key, gpus in samples.filter(project__in=keys).values_list(
            "at", "project_id", "gpus_allocated"
        )
    }
    at = [sample_times.get(moment) for moment in moments]
    lines = [
        ChartLine(names[key], key, [_get_point(project_points, sums, moment, key) for moment in at])
        for key in keys
        if key in names
    ]
    return AllocationHistory(
        moments=moments,
        lines=[*lines, *_build_rest_line(lines, _pick_sum(sums, at, "held"))],
        quota=_pick_sum(sums, at, "quota", unless="unlimited"),
        idle=_pick_sum(sums, at, "idle", unless="blind"),
        used=_pick_sum(sums, at, "used", unless="unmeasured"),
        running=_pick_sum(sums, at, "up"),
        waiting=_pick_sum(sums, at, "queued"),
    )


def _choose_moments(
    rows: "QuerySet[Sample]", span: Span, now: datetime
) -> tuple[list[datetime], dict[datetime, datetime]]:
    """Return the points of the chart, and the time of the sample for each, where there is one.

    Points are a step apart, except the last: that is the newest sample, so that nobody waits for a
    step to see that something is known.
    """
    pace = settings.OPTIONS.sample_seconds
    step = max(span.step, pace)
    last = now.timestamp() // step * step
    moments = [
        _from_timestamp(last - number * step)
        for number in range(int(span.length.total_seconds() // step), -1, -1)
    ]
    # Samples lie at multiples of their pace; a point's moment may not, so round it up.
    first = [_from_timestamp(-(-moment.timestamp() // pace) * pace) for moment in moments]
    near = [
        [
            moment + timedelta(seconds=number * pace)
            for number in range(min(SAMPLE_TRIES, max(1, step // pace)))
        ]
        for moment in first
    ]
    newest = [
        _from_timestamp((now.timestamp() // pace - number) * pace) for number in range(SAMPLE_TRIES)
    ]
    candidates = [at for times in [*near, newest] for at in times]
    existing = set(
        rows.filter(at__in=candidates).order_by().values_list("at", flat=True).distinct()
    )
    chosen_times = {
        moment: next((at for at in times if at in existing), None)
        for moment, times in zip(moments, near, strict=True)
    }
    now_known = next((at for at in newest if at in existing), None)
    # It may be from before the last point: of that moment there is no sample yet.
    if now_known is not None and now_known not in chosen_times.values():
        chosen_times[now_known] = now_known
        moments = sorted(chosen_times)
    return moments, {moment: at for moment, at in chosen_times.items() if at is not None}


def _from_timestamp(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _sum_samples(rows: "QuerySet[Sample]") -> dict[datetime, dict[str, Any]]:
    """Return the sums of all projects at each moment.

    `blind`, `unmeasured` and `unlimited` count those that have no number.
    """
    added = rows.values("at").annotate(
        held=Sum("gpus_allocated"),
        quota=Sum("gpus_quota"),
        idle=Sum("gpus_idle"),
        used=Sum("gpus_used"),
        up=Sum("running"),
        queued=Sum("waiting"),
        blind=Count("id", filter=Q(gpus_idle=None)),
        unmeasured=Count("id", filter=Q(gpus_used=None)),
        unlimited=Count("id", filter=Q(gpus_quota=None)),
    )
    return {row["at"]: dict(row) for row in added}


def _pick_sum(
    sums: Mapping[datetime, Mapping[str, Any]],
    at: Sequence[datetime | None],
    name: str,
    unless: str = "",
) -> list[float | None]:
    """Return one of the sums at each moment.

    None without a sample, and where some projects have no number.
    """
    values: list[float | None] = []
    for moment in at:
        row = sums.get(moment) if moment is not None else None
        is_known = row is not None and row[name] is not None and not (unless and row[unless])
        values.append(float(row[name]) if row is not None and is_known else None)
    return values


def _get_point(
    project_points: Mapping[tuple[datetime, int], Decimal],
    sums: Mapping[datetime, Any],
    at: datetime | None,
    key: int,
) -> float | None:
    """Return what one project held; 0 where only others were sampled."""
    return float(project_points.get((at, key), 0)) if at is not None and at in sums else None


def _build_rest_line(
    lines: Sequence[ChartLine], totals: Sequence[float | None]
) -> Iterator[ChartLine]:
    """Yield the line of the projects without a line of their own, if they held anything."""
    rest = [
        None
        if total is None
        else max(0.0, round(total - sum(line.points[number] or 0 for line in lines), 3))
        for number, total in enumerate(totals)
    ]
    if any(rest):
        yield ChartLine("Other projects", None, rest)
