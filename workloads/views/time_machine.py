"""A past moment as a page: who waited and why, what ran where, and the quotas of then."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from projects.api.base import parse_moment
from projects.http import Request
from projects.models import User
from workloads.models import Workload
from workloads.overview.past_place import Place, find_place
from workloads.overview.past_sight import load_sight
from workloads.overview.past_view import PastView, build_past_view, find_past_row
from workloads.queries.past_states import (
    PastState,
    RecordBounds,
    load_past_state,
    load_record_bounds,
)
from workloads.time_machine import DamagedBlock

MOST_SHOWN = 50
"""Workloads that waited, that ran, nodes and quotas: of each so many."""
LONGEST_TEXT = 40
NEXT_TURN = "next"
"""The address's turn, where a workload changed at its moment: the one that recorded this."""
STEPS: Sequence[tuple[str, timedelta]] = (
    ("day", timedelta(days=1)),
    ("hour", timedelta(hours=1)),
    ("minute", timedelta(minutes=1)),
)


@dataclass(frozen=True, slots=True)
class StepLink:
    """A link to an earlier or later moment; without an address where nothing is recorded there."""

    words: str
    href: str


@require_safe
@never_cache
def time_machine(request: Request) -> HttpResponse:
    """Show a past moment of everything, a project, a node, or why a workload waited then."""
    place = find_place(request.user, request.GET)
    bounds = load_record_bounds()
    at, problem = _parse_at(request.GET.get("at", ""), bounds)
    context: dict[str, Any] = {
        "place": place,
        "bounds": bounds,
        "at": at,
        "problem": problem,
        "typed": request.GET.get("at", "")[:LONGEST_TEXT] if problem else "",
        "is_off": not settings.OPTIONS.time_machine_days,
    }
    if bounds is not None and at is not None:
        changed = place.focus.workload if request.GET.get("turn") == NEXT_TURN else None
        past, damage = _load_past(at, bounds, changed)
        context |= {
            "past": past,
            "damage": damage,
            # The link of a change that is newer than the last turn.
            "is_unrecorded": changed and past and not past.recorded_at and at >= bounds.until,
            "before": _build_steps(place, at, bounds, -1),
            "after": _build_steps(place, at, bounds, 1),
        }
        if past is not None:
            context |= _build_view(past, place, request.user)
    return render(request, "time_machine/moment.html", context)


def _parse_at(text: str, bounds: RecordBounds | None) -> tuple[datetime | None, str]:
    """Return the moment of the address, else the last recorded, and what is wrong with it."""
    newest = None if bounds is None else bounds.until
    if not text:
        return newest, ""
    try:
        at = parse_moment(text)
    except ValueError:
        return newest, "Write the moment as 2026-11-24T14:02Z, in UTC or with its offset."
    if at > timezone.now():
        return newest, "That moment is yet to come: this is the last one that was recorded."
    return at, ""


def _load_past(
    at: datetime, bounds: RecordBounds, changed: bytes | None
) -> tuple[PastState | None, bool]:
    """Return the state of a moment, and whether its record is damaged."""
    try:
        return load_past_state(at, bounds, changed), False
    except DamagedBlock:
        return None, True


def _build_view(past: PastState, place: Place, user: User) -> dict[str, Any]:
    sight = load_sight(user)
    view = build_past_view(past.state, sight, place.focus, MOST_SHOWN)
    workload_id = place.focus.workload
    return {
        "view": view,
        "kept": _list_kept(view, user),
        "row": None if workload_id is None else find_past_row(past.state, sight, workload_id),
    }


def _list_kept(view: PastView, user: User) -> set[uuid.UUID]:
    """Return which of the shown workloads still have a page. One query."""
    workload_ids = {each.id for rows in (view.waiting, view.running) for each in rows.rows}
    workload_ids |= {part.workload for node in view.nodes for part in node.parts if part.workload}
    return set(
        Workload.objects.visible_to(user).filter(pk__in=workload_ids).values_list("pk", flat=True)
    )


def _build_steps(place: Place, at: datetime, bounds: RecordBounds, sign: int) -> list[StepLink]:
    steps = []
    for name, length in STEPS if sign < 0 else reversed(STEPS):
        to = at + sign * length
        words = f"One {name} {'earlier' if sign < 0 else 'later'}"
        is_there = bounds.begin <= to <= bounds.until
        steps.append(StepLink(words, build_past_address(to, place.fields) if is_there else ""))
    return steps


def build_past_address(at: datetime | None, fields: Sequence[tuple[str, str]] = ()) -> str:
    """Return the address of a moment, to be shared; without one of the last that is recorded."""
    pairs = [] if at is None else [("at", format_at(at))]
    return f"{reverse('time-machine')}?{urlencode([*pairs, *fields], safe=':/')}"


def format_at(at: datetime) -> str:
    """Write a moment as addresses have it: 2026-11-24T14:02Z, with seconds where it has any."""
    in_utc = at.astimezone(UTC)
    return in_utc.strftime("%Y-%m-%dT%H:%M:%SZ" if in_utc.second else "%Y-%m-%dT%H:%MZ")
