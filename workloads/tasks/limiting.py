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
from projects.durations import describe_duration
from projects.scopes import project_scope
from workloads import journal, runtime_limits, utilisation
from workloads.models import Desired, Event, Workload
from workloads.states import BY_ITSELF
from workloads.tasks.teardown import stop

BATCH_SIZE = 500
"""Workloads that are looked at in one query, and that one sweep stops or warns at most."""
TIME, IDLE = "TimeLimit", "IdleLimit"
"""The reasons of the events of a stop."""
HALF_REASONS = {TIME: "TimeLimitNear", IDLE: "IdleLimitNear"}
_FIELDS = ("project__name", "name", "status", "attempt", "started_at", "ended_at", "ran_seconds")
_LIMITS = ("time_limit_seconds", "idle_limit_seconds", "limit_warned_at", "idle_since")


@dataclass(frozen=True, slots=True)
class _LimitUse:
    """A limit of which at least half is used."""

    workload: Workload
    kind: str
    limit_seconds: int
    used_seconds: float

    @property
    def is_over(self) -> bool:
        return self.used_seconds >= self.limit_seconds


@step
def limit() -> None:
    """What runs and has a limit -> at half of it, warned of in its history; at its end, asked to
    stop, with the limit as its reason.

    Idle time is counted where the use of its GPUs is known, and nothing is stopped for it where it
    is not. May run twice or late.
    """
    now, left = timezone.now(), BATCH_SIZE
    # Where nobody has looked for a while it is unknown whether what was idle then still is.
    use_is_seen = utilisation.find_latest_sample_time() is not None
    for workloads in _load_limited_workloads(use_is_seen):
        for each in _find_limit_uses(workloads, now, use_is_seen):
            if left and (_stop_at_limit(each) if each.is_over else _warn_of_limit(each, now)):
                left -= 1


def _load_limited_workloads(is_use_known: bool) -> Iterator[Sequence[Workload]]:
    """What is running now and has a limit that can be reached, in batches; one query each."""
    has = Q(time_limit_seconds__isnull=False)
    if is_use_known:
        has |= Q(idle_limit_seconds__isnull=False, idle_since__isnull=False)
    running = [status.value for status in runtime_limits.COUNTED_STATUSES]
    rows = Workload.objects.filter(
        has, status__in=running, desired=Desired.RUNNING, started_at__isnull=False, released_at=None
    )
    rows = rows.select_related("project").only(*_FIELDS, *_LIMITS).order_by("pk")
    found = list(rows[:BATCH_SIZE])
    while found:
        yield found
        found = (
            list(rows.filter(pk__gt=found[-1].pk)[:BATCH_SIZE]) if len(found) == BATCH_SIZE else []
        )


def _find_limit_uses(
    workloads: Sequence[Workload], now: datetime, is_use_known: bool
) -> list[_LimitUse]:
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
    ran = runtime_limits.load_running_seconds(timed, now) if timed else {}
    found = [_LimitUse(each, TIME, each.time_limit_seconds or 0, ran[each.pk]) for each in timed]
    for each in workloads if is_use_known else ():
        if each.idle_limit_seconds is not None and each.idle_since is not None:
            found.append(
                _LimitUse(
                    each,
                    IDLE,
                    each.idle_limit_seconds,
                    (now - runtime_limits.get_idle_start(each)).total_seconds(),
                )
            )
    near = [each for each in found if 2 * each.used_seconds >= each.limit_seconds]
    told = _load_idle_warnings(
        [each.workload for each in near if each.kind == IDLE and not each.is_over]
    )
    return [each for each in near if each.is_over or not _is_warned(each, told)]


def _load_idle_warnings(workloads: Sequence[Workload]) -> dict[UUID, datetime]:
    """When each was warned last that it is idle."""
    if not workloads:
        return {}
    rows = Event.objects.filter(
        workload__in=[each.pk for each in workloads], reason=HALF_REASONS[IDLE]
    ).order_by("at")
    return dict(rows.values_list("workload_id", "at"))


def _is_warned(limit_use: _LimitUse, idle_warnings: dict[UUID, datetime]) -> bool:
    workload = limit_use.workload
    if limit_use.kind == TIME:
        return workload.limit_warned_at is not None
    at = idle_warnings.get(workload.pk)
    return at is not None and at >= runtime_limits.get_idle_start(workload)


def _warn_of_limit(limit_use: _LimitUse, now: datetime) -> bool:
    ends_at = now + timedelta(seconds=limit_use.limit_seconds - limit_use.used_seconds)
    at = f"{ends_at:%-d %b %Y, %H:%M} UTC"
    if limit_use.kind == TIME:
        text = (
            f"Half of the time limit of {describe_duration(limit_use.limit_seconds)} has passed; "
            f"it is stopped at {at}, if it runs until then."
        )
    else:
        text = (
            f"Half of the idle limit of {describe_duration(limit_use.limit_seconds)} has passed "
            f"without use of its GPUs; it is stopped at {at}, if that goes on."
        )
    since = None if limit_use.kind == TIME else runtime_limits.get_idle_start(limit_use.workload)
    return journal.record_warning(
        limit_use.workload.pk,
        HALF_REASONS[limit_use.kind],
        text,
        attempt=limit_use.workload.attempt,
        since=since,
    )


def _stop_at_limit(limit_use: _LimitUse) -> bool:
    """The stop that a person could ask for, asked for by Muster. Whoever asked first has asked."""
    workload, project = limit_use.workload, limit_use.workload.project
    what = "its time limit" if limit_use.kind == TIME else "its idle limit"
    unused = "" if limit_use.kind == TIME else "; its GPUs were not used"
    why = (
        f"{BY_ITSELF}{what} of {describe_duration(limit_use.limit_seconds)} was reached (project "
        f"{project.name}){unused}."
    )
    try:
        with transaction.atomic():
            asked = journal.request_stop(
                workload.pk, None, reason=why, event_reason=limit_use.kind, attempt=workload.attempt
            )
            if asked:
                scope = project_scope(project.pk)
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
        stop.enqueue(str(workload.pk))
    return asked
