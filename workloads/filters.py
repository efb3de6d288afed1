"""How the filters of the workload table narrow its rows, and what they offer to choose from."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from django.db import models
from django.db.models import Exists, F, OuterRef, Q, Subquery
from django.http import HttpRequest
from django.utils import timezone
from django.utils.dateparse import parse_date

from console.table_filters import (
    MAX_OPTIONS,
    MAX_TEXT_CHARS,
    Choices,
    Filter,
    Rows,
    parse_decimal,
)
from console.texts import parse_number
from projects.models import Project, User
from projects.querysets import list_visible_project_ids
from workloads.models import FORECAST_AGE, NO_LIKELY_START, RadarFinding, Workload
from workloads.specs import Framework
from workloads.states import UP, Status

STANDARD = "none"
"""The value of the framework filter for standard workloads."""
AGES: Mapping[str, tuple[str, timedelta]] = {
    "1h": ("Last hour", timedelta(hours=1)),
    "24h": ("Last 24 hours", timedelta(days=1)),
    "7d": ("Last 7 days", timedelta(days=7)),
    "30d": ("Last 30 days", timedelta(days=30)),
}
LIKELY_STARTS: Mapping[str, tuple[str, timedelta]] = {
    "15min": ("Within 15 minutes", timedelta(minutes=15)),
    "1h": ("Within an hour", timedelta(hours=1)),
    "6h": ("Within 6 hours", timedelta(hours=6)),
    "24h": ("Within 24 hours", timedelta(hours=24)),
}
FRAMEWORKS: Mapping[str, str] = {each.value: each.label for each in Framework} | {
    STANDARD: "None (Standard)"
}
HAVING_LIKELY_START = Q(status=Status.PENDING.value, likely_start_at__lt=NO_LIKELY_START)
"""Workloads that wait, and for which a start is forecast."""
DELETED = "deleted"
MAX_CHOICES = 200
"""People that a filter suggests."""


def filter_by_status(rows: Rows, statuses: tuple[str, ...]) -> Rows:
    """Return the rows in one of these statuses."""
    # Compare one value by equality: an index then also gives the order.
    if len(statuses) == 1:
        return rows.filter(status=statuses[0])
    return rows.filter(status__in=statuses)


def filter_by_look(rows: Rows, _value: str = "") -> Rows:
    """Return the rows that need a look: they run, and the radar's findings of them are open."""
    findings = RadarFinding.objects.filter(
        workload=OuterRef("pk"), attempt=OuterRef("attempt"), ended_at=None
    )
    # What runs has not ended: to name that lets a database use the index without ended workloads.
    return rows.filter(Exists(findings), status__in=sorted(UP), ended_at=None)


def filter_by_project(rows: Rows, values: tuple[str, ...]) -> Rows:
    """Narrow the rows to projects, by their ids or, where these are typed, by their names."""
    ids = [int(value) for value in values if _is_id(value)]
    if names := [" ".join(value.split()) for value in values if not _is_id(value)]:
        ids += Project.objects.filter(name__in=names).values_list("pk", flat=True)
    if len(ids) == 1:
        return rows.filter(project_id=ids[0])
    # The + 0 keeps planners from an index on the project: for several projects it gives no order
    # (see `queries.list_in_projects`).
    several: Rows = rows.alias(of_project=F("project_id") + 0)
    return several.filter(of_project__in=ids)


def filter_by_framework(rows: Rows, frameworks: tuple[str, ...]) -> Rows:
    """Return the rows of these frameworks; STANDARD is none."""
    return rows.filter(framework__in=["" if each == STANDARD else each for each in frameworks])


def filter_by_submitter(rows: Rows, username: str) -> Rows:
    """Return the rows that this user submitted."""
    # Compare with one value, so that the index on the submitter also gives the order.
    user = User.objects.filter(username=username).values("pk")[:1]
    return rows.filter(Q(submitted_by_id=Subquery(user)))


def filter_by_age(rows: Rows, age: str) -> Rows:
    """Return the rows that are at most as old as one of AGES."""
    return rows.filter(created_at__gte=timezone.now() - AGES[age][1])


def filter_by_likely_start(rows: Rows, within: str) -> Rows:
    """Return the waiting rows that are likely to start within one of LIKELY_STARTS."""
    now = timezone.now()
    bounds = (now - FORECAST_AGE, now + LIKELY_STARTS[within][1])
    return rows.filter(likely_start_at__range=bounds, status=Status.PENDING.value)


def filter_by_deleted(rows: Rows, deleted: str) -> Rows:
    """Return the rows of deleted workloads, or the others for ""."""
    return rows.filter(released_at__isnull=not deleted)


def list_project_choices(request: HttpRequest) -> Choices:
    """List the first of the visible projects, by name."""
    user: Any = request.user
    visible = Project.objects.visible_to(user).order_by("name").values_list("id", "name")
    return [(str(pk), name) for pk, name in visible[: MAX_OPTIONS + 1]]


def name_projects(request: HttpRequest, values: Sequence[str]) -> Choices:
    """Return the chosen projects with their names; a typed name is both."""
    user: Any = request.user
    ids = [int(value) for value in values if _is_id(value)]
    chosen = Project.objects.visible_to(user).filter(pk__in=ids).order_by("name")
    return [
        *((str(pk), name) for pk, name in chosen.values_list("pk", "name")),
        *((value, value) for value in values if not _is_id(value)),
    ]


def list_submitter_choices(request: HttpRequest) -> Choices:
    """List people who submitted to projects that the user may see."""
    user: Any = request.user
    people, visible = User.objects.filter(is_service=False), list_visible_project_ids(user)
    if visible is not None:
        people = people.filter(
            pk__in=Workload.objects.filter(project__in=visible).values("submitted_by")
        )
    names = people.order_by("username").values_list("username", flat=True)
    return [(name, name) for name in names[:MAX_CHOICES]]


def _is_id(text: str) -> bool:
    return parse_number(text, 9) is not None


def is_project(text: str) -> bool:
    """Return whether the text may be a project's id or name. One that nobody has selects none."""
    return len(text) <= MAX_TEXT_CHARS and "\x00" not in text


def build_text_filter(name: str, title: str, field: str) -> Filter:
    """Build a filter of the rows whose field contains a typed text."""
    return Filter(
        name,
        title,
        lambda _: (),
        lambda rows, text: rows.filter(**{f"{field}__icontains": text}),
        kind="text",
        is_more=True,
    )


def build_number_filters(name: str, title: str, field: str, unit: int = 1) -> tuple[Filter, Filter]:
    """Build the filters of the least and the most of a number, which people type in units."""
    # A column of integers is compared with integers: databases round or cut others as they like.
    is_integer = isinstance(Workload._meta.get_field(field), models.IntegerField)
    kind = "integer" if is_integer and unit == 1 else "number"
    least, most = (ROUND_CEILING, ROUND_FLOOR) if is_integer else (None, None)
    return (
        _build_bound(
            f"{name}_from",
            f"{title}, at least",
            kind,
            f"{field}__gte",
            lambda text: _scale_number(text, unit, least),
        ),
        _build_bound(
            f"{name}_to",
            f"{title}, at most",
            kind,
            f"{field}__lte",
            lambda text: _scale_number(text, unit, most),
        ),
    )


def build_day_filters(name: str, title: str, field: str) -> tuple[Filter, Filter]:
    """Build the filters of the first and the last day of a time, in UTC."""
    return (
        _build_bound(f"{name}_from", f"{title} from", "date", f"{field}__gte", _parse_day),
        _build_bound(f"{name}_to", f"{title} until", "date", f"{field}__lte", _parse_day_end),
    )


def _build_bound(
    name: str, title: str, kind: str, lookup: str, convert: Callable[[str], Any]
) -> Filter:
    return Filter(
        name,
        title,
        lambda _: (),
        lambda rows, value: rows.filter(**{lookup: convert(value)}),
        kind=kind,
        is_more=True,
    )


def _scale_number(text: str, unit: int, rounding: str | None) -> Decimal:
    number = parse_decimal(text)
    assert number is not None, "the filter accepts numbers only"
    scaled = number * unit
    return scaled.to_integral_value(rounding) if rounding else scaled


def _parse_day(text: str) -> datetime:
    """Return the first moment of a day."""
    day = parse_date(text)
    assert day is not None, "the filter accepts days only"
    return datetime.combine(day, time(), UTC)


def _parse_day_end(text: str) -> datetime:
    """Return the last moment of a day: the last day of the calendar has no day after it."""
    return datetime.combine(_parse_day(text), time.max, UTC)
