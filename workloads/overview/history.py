"""How it was: what projects held over time, from the samples. As many points as a chart can show,
however many samples there are.
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
    """A length of time, its words, and how far its points are apart."""

    words: str
    length: timedelta
    step: int
    """Seconds."""


SPANS: Mapping[str, Span] = {
    "1h": Span("Last hour", timedelta(hours=1), 60),
    "24h": Span("Last 24 hours", timedelta(days=1), 600),
    "7d": Span("Last 7 days", timedelta(days=7), 3600),
    "30d": Span("Last 30 days", timedelta(days=30), 4 * 3600),
}
DEFAULT = "24h"
MOST_LINES = 8
"""Projects that have an area of their own; the others are one."""
SAMPLE_TRIES = 3
"""Samples after a point's moment that may stand for it, and before now that are the newest: a beat
may come late.
"""


@dataclass(frozen=True, slots=True)
class ChartLine:
    """One project's, or all others'. A point is None where nobody looked."""

    name: str
    project: int | None
    points: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class AllocationHistory:
    """Everything has as many points as there are moments."""

    moments: Sequence[datetime]
    lines: Sequence[ChartLine]
    quota: Sequence[float | None]
    """Together; None where one of them is without limit."""
    idle: Sequence[float | None]
    """None where it is not known of all."""
    running: Sequence[float | None]
    waiting: Sequence[float | None]


def load_history(
    projects: ProjectIds, span: Span, now: datetime | None = None
) -> AllocationHistory:
    """Of these projects together, and of those that held most each by itself. Five queries."""
    rows = Sample.objects.all() if projects is None else Sample.objects.filter(project__in=projects)
    moments, found = _choose_moments(rows, span, now or timezone.now())
    chosen = rows.filter(at__in=list(found.values())).order_by()
    sums = _sum_samples(chosen)
    largest = (
        chosen.values_list("project_id")
        .annotate(gpus=Sum("gpus_allocated"))
        .order_by("-gpus", "project_id")
    )
    keys = [key for key, gpus in largest[:MOST_LINES] if gpus]
    names = dict(Project.objects.filter(pk__in=keys).values_list("pk", "name"))
    own = {
        (at, key): gpus
        for at, key, gpus in chosen.filter(project__in=keys).values_list(
            "at", "project_id", "gpus_allocated"
        )
    }
    at = [found.get(moment) for moment in moments]
    lines = [
        ChartLine(names[key], key, [_get_point(own, sums, moment, key) for moment in at])
        for key in keys
        if key in names
    ]
    return AllocationHistory(
        moments=moments,
        lines=[*lines, *_build_rest_line(lines, _pick_sum(sums, at, "held"))],
        quota=_pick_sum(sums, at, "quota", unless="unlimited"),
        idle=_pick_sum(sums, at, "idle", unless="blind"),
        running=_pick_sum(sums, at, "up"),
        waiting=_pick_sum(sums, at, "queued"),
    )


def _choose_moments(
    rows: "QuerySet[Sample]", span: Span, now: datetime
) -> tuple[list[datetime], dict[datetime, datetime]]:
    """The points of the chart, and for each the sample's moment that stands for it, where there is
    one.

    They are a step apart, but for the last: that is the newest sample, so that nobody waits for a
    step to see that something is known.
    """
    pace = settings.OPTIONS.sample_seconds
    step = max(span.step, pace)
    last = now.timestamp() // step * step
    moments = [
        _from_timestamp(last - number * step)
        for number in range(int(span.length.total_seconds() // step), -1, -1)
    ]
    # Samples are at multiples of their pace, which a point's moment need not be.
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
    wanted = [at for some in [*near, newest] for at in some]
    there = set(rows.filter(at__in=wanted).order_by().values_list("at", flat=True).distinct())
    found = {
        moment: next((at for at in some if at in there), None)
        for moment, some in zip(moments, near, strict=True)
    }
    now_known = next((at for at in newest if at in there), None)
    if now_known is not None and now_known > (found[moments[-1]] or moments[-1]):
        moments.append(now_known)
        found[now_known] = now_known
    return moments, {moment: at for moment, at in found.items() if at is not None}


def _from_timestamp(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _sum_samples(rows: "QuerySet[Sample]") -> dict[datetime, dict[str, Any]]:
    """Of all projects together at each moment; `blind` and `unlimited` count those that have no
    number.
    """
    added = rows.values("at").annotate(
        held=Sum("gpus_allocated"),
        quota=Sum("gpus_quota"),
        idle=Sum("gpus_idle"),
        up=Sum("running"),
        queued=Sum("waiting"),
        blind=Count("id", filter=Q(gpus_idle=None)),
        unlimited=Count("id", filter=Q(gpus_quota=None)),
    )
    return {row["at"]: dict(row) for row in added}


def _pick_sum(
    sums: Mapping[datetime, Mapping[str, Any]],
    at: Sequence[datetime | None],
    name: str,
    unless: str = "",
) -> list[float | None]:
    """One of the sums at each moment; None where nobody looked, and where some have no number."""
    found: list[float | None] = []
    for moment in at:
        row = sums.get(moment) if moment is not None else None
        known = row is not None and row[name] is not None and not (unless and row[unless])
        found.append(float(row[name]) if row is not None and known else None)
    return found


def _get_point(
    own: Mapping[tuple[datetime, int], Decimal],
    sums: Mapping[datetime, Any],
    at: datetime | None,
    key: int,
) -> float | None:
    """What one project held; nothing while it was not there and others were looked at."""
    return float(own.get((at, key), 0)) if at is not None and at in sums else None


def _build_rest_line(
    lines: Sequence[ChartLine], held: Sequence[float | None]
) -> Iterator[ChartLine]:
    """What is held by those that have no line of their own, where that is anything."""
    rest = [
        None
        if total is None
        else max(0.0, round(total - sum(line.points[number] or 0 for line in lines), 3))
        for number, total in enumerate(held)
    ]
    if any(rest):
        yield ChartLine("Other projects", None, rest)
