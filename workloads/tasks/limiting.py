"""The sweep over time and idle limits: half of one is told in the history, and at its end the
workload is stopped, once, with why.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from console.celery import step
from console.errors import Clash
from projects import audit
from projects.durations import words
from projects.scopes import of_project
from workloads import journal, limits, utilisation
from workloads.models import Desired, Event, Workload
from workloads.states import BY_ITSELF
from workloads.tasks.ending import stop

BATCH = 500
"""Workloads that are looked at in one query, and that one sweep stops or warns at most."""
TIME, IDLE = "TimeLimit", "IdleLimit"
"""The reasons of the events of a stop."""
HALF = {TIME: "TimeLimitNear", IDLE: "IdleLimitNear"}
_FIELDS = ("project__name", "name", "status", "attempt", "started_at", "ended_at", "ran_seconds")
_LIMITS = ("time_limit_seconds", "idle_limit_seconds", "limit_warned_at", "idle_since")


@dataclass(frozen=True, slots=True)
class _Reached:
    """A limit of which at least half is used."""

    workload: Workload
    kind: str
    whole: int
    used: float

    @property
    def is_over(self) -> bool:
        return self.used >= self.whole


@step
def limit() -> None:
    """What runs and has a limit -> at half of it, warned of in its history; at its end, asked to
    stop, with the limit as its reason.

    Idle time is counted where the use of its GPUs is known, and nothing is stopped for it where it
    is not. May run twice or late.
    """
    now, left = timezone.now(), BATCH
    # Where nobody has looked for a while it is unknown whether what was idle then still is.
    use_is_seen = utilisation.latest() is not None
    for workloads in _limited(use_is_seen):
        for each in _reached(workloads, now, use_is_seen):
            if left and (_stop(each) if each.is_over else _warn(each, now)):
                left -= 1


def _limited(use_is_seen: bool) -> Iterator[Sequence[Workload]]:
    """What is running now and has a limit that can be reached, in batches; one query each."""
    has = Q(time_limit_seconds__isnull=False)
    if use_is_seen:
        has |= Q(idle_limit_seconds__isnull=False, idle_since__isnull=False)
    running = [status.value for status in limits.COUNTED]
    rows = Workload.objects.filter(
        has, status__in=running, desired=Desired.RUNNING, started_at__isnull=False, released_at=None
    )
    rows = rows.select_related("project").only(*_FIELDS, *_LIMITS).order_by("pk")
    found = list(rows[:BATCH])
    while found:
        yield found
        found = list(rows.filter(pk__gt=found[-1].pk)[:BATCH]) if len(found) == BATCH else []


def _reached(workloads: Sequence[Workload], now: datetime, use_is_seen: bool) -> list[_Reached]:
    """The limits of these that are at least half used, each with the exact use. Two queries."""
    at_most = {
        each.pk: each.ran_seconds + (now - (each.started_at or now)).total_seconds()
        for each in workloads
    }
    timed = [
        each
        for each in workloads
        if each.time_limit_seconds is not None and 2 * at_most[each.pk] >= each.time_limit_seconds
    ]
    ran = limits.ran(timed, now) if timed else {}
    found = [_Reached(each, TIME, each.time_limit_seconds or 0, ran[each.pk]) for each in timed]
    for each in workloads if use_is_seen else ():
        if each.idle_limit_seconds is not None and each.idle_since is not None:
            found.append(
                _Reached(
                    each,
                    IDLE,
                    each.idle_limit_seconds,
                    (now - limits.idle_from(each)).total_seconds(),
                )
            )
    near = [each for each in found if 2 * each.used >= each.whole]
    told = _told_idle([each.workload for each in near if each.kind == IDLE and not each.is_over])
    return [each for each in near if each.is_over or not _is_told(each, told)]


def _told_idle(workloads: Sequence[Workload]) -> dict[UUID, datetime]:
    """When each was warned last that it is idle."""
    if not workloads:
        return {}
    rows = Event.objects.filter(
        workload__in=[each.pk for each in workloads], reason=HALF[IDLE]
    ).order_by("at")
    return dict(rows.values_list("workload_id", "at"))


def _is_told(reached: _Reached, told: dict[UUID, datetime]) -> bool:
    workload = reached.workload
    if reached.kind == TIME:
        return workload.limit_warned_at is not None
    at = told.get(workload.pk)
    return at is not None and at >= limits.idle_from(workload)


def _warn(reached: _Reached, now: datetime) -> bool:
    at = f"{now + timedelta(seconds=reached.whole - reached.used):%-d %b %Y, %H:%M} UTC"
    if reached.kind == TIME:
        text = (
            f"Half of the time limit of {words(reached.whole)} has passed; it is stopped at {at}, "
            "if it runs until then."
        )
    else:
        text = (
            f"Half of the idle limit of {words(reached.whole)} has passed without use of its GPUs; "
            f"it is stopped at {at}, if that goes on."
        )
    since = None if reached.kind == TIME else limits.idle_from(reached.workload)
    return journal.warned(
        reached.workload.pk, HALF[reached.kind], text, attempt=reached.workload.attempt, since=since
    )


def _stop(reached: _Reached) -> bool:
    """The stop that a person could ask for, asked for by Muster. Whoever asked first has asked."""
    workload, project = reached.workload, reached.workload.project
    what = "its time limit" if reached.kind == TIME else "its idle limit"
    unused = "" if reached.kind == TIME else "; its GPUs were not used"
    why = (
        f"{BY_ITSELF}{what} of {words(reached.whole)} was reached (project {project.name}){unused}."
    )
    try:
        with transaction.atomic():
            asked = journal.asked_to_stop(
                workload.pk, None, why=why, what=reached.kind, attempt=workload.attempt
            )
            if asked:
                scope = of_project(project.pk)
                audit.record(
                    audit.Event.STOP,
                    "workload",
                    by=None,
                    id=workload.pk,
                    name=workload.name,
                    scope=scope,
                    text=why,
                )
    except Clash:
        # It has come to its end, or is being deleted.
        return False
    if asked:
        stop.soon(str(workload.pk))
    return asked
