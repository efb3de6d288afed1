"""The sweep over time and idle limits.

It warns in the history at half of a limit and stops the workload, once and with the reason, at its
end.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from console.celery import step
from projects.durations import describe_duration
from workloads import journal, runtime_limits, utilisation
from workloads.models import Desired, Event, Workload
from workloads.tasks.own_stops import stop_workload

BATCH_SIZE = 500
"""Workloads of one query, and that one sweep stops or warns at most."""
TIME, IDLE = "TimeLimit", "IdleLimit"
"""The reasons of the events of a stop."""
HALF_REASONS = {TIME: "TimeLimitNear", IDLE: "IdleLimitNear"}
_FIELDS = ("project__name", "name", "status", "attempt", "started_at", "ended_at", "ran_seconds")
_LIMITS = ("time_limit_seconds", "idle_limit_seconds", "limit_warned_at", "idle_since")


@dataclass(frozen=True, slots=True)
class _LimitUse:
    """A limit of which at least half is used, in seconds."""

    workload: Workload
    kind: str
    limit_seconds: int
    used_seconds: float

    @property
    def is_over(self) -> bool:
        return self.used_seconds >= self.limit_seconds


@step
def limit() -> None:
    """Warn running workloads at half of their limits, and stop them at the end.

    Idle time counts only where the use of the GPUs is known. May run twice or late.
    """
    now, remaining = timezone.now(), BATCH_SIZE
    # Without a recent sample it is unknown whether idle workloads still are.
    is_use_known = utilisation.find_latest_sample_time() is not None
    for workloads in _load_limited_workloads(is_use_known):
        for limit_use in _find_limit_uses(workloads, now, is_use_known):
            if remaining and (
                _stop_at_limit(limit_use) if limit_use.is_over else _warn_of_limit(limit_use, now)
            ):
                remaining -= 1


def _load_limited_workloads(is_use_known: bool) -> Iterator[Sequence[Workload]]:
    """Load running workloads with a limit that can be reached, in batches of one query each."""
    has_limit = Q(time_limit_seconds__isnull=False)
    if is_use_known:
        has_limit |= Q(idle_limit_seconds__isnull=False, idle_since__isnull=False)
    running = [status.value for status in runtime_limits.COUNTED_STATUSES]
    rows = Workload.objects.filter(
        has_limit,
        status__in=running,
        desired=Desired.RUNNING,
        started_at__isnull=False,
        released_at=None,
    )
    rows = rows.select_related("project").only(*_FIELDS, *_LIMITS).order_by("pk")
    workloads = list(rows[:BATCH_SIZE])
    while workloads:
        yield workloads
        workloads = (
            list(rows.filter(pk__gt=workloads[-1].pk)[:BATCH_SIZE])
            if len(workloads) == BATCH_SIZE
            else []
        )


def _find_limit_uses(
    workloads: Sequence[Workload], now: datetime, is_use_known: bool
) -> list[_LimitUse]:
    """Return the limits that are at least half used, with their exact use. Two queries."""
    upper_bounds = {
        each.pk: each.ran_seconds + (now - (each.started_at or now)).total_seconds()
        for each in workloads
    }
    candidates = [
        each
        for each in workloads
        if each.time_limit_seconds is not None
        and 2 * upper_bounds[each.pk] >= each.time_limit_seconds
    ]
    ran = runtime_limits.load_running_seconds(candidates, now) if candidates else {}
    uses = [
        _LimitUse(each, TIME, each.time_limit_seconds or 0, ran[each.pk]) for each in candidates
    ]
    for each in workloads if is_use_known else ():
        if each.idle_limit_seconds is not None and each.idle_since is not None:
            uses.append(
                _LimitUse(
                    each,
                    IDLE,
                    each.idle_limit_seconds,
                    (now - runtime_limits.get_idle_start(each)).total_seconds(),
                )
            )
    half_used = [each for each in uses if 2 * each.used_seconds >= each.limit_seconds]
    idle_warnings = _load_idle_warnings(
        [each.workload for each in half_used if each.kind == IDLE and not each.is_over]
    )
    return [each for each in half_used if each.is_over or not _is_warned(each, idle_warnings)]


def _load_idle_warnings(workloads: Sequence[Workload]) -> dict[UUID, datetime]:
    """Load when each workload was last warned that it is idle."""
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
    """Request the stop. Return False when somebody requested it before."""
    workload, project = limit_use.workload, limit_use.workload.project
    limit_name = "its time limit" if limit_use.kind == TIME else "its idle limit"
    unused = "" if limit_use.kind == TIME else "; its GPUs were not used"
    why = (
        f"{limit_name} of {describe_duration(limit_use.limit_seconds)} was reached "
        f"(project {project.name}){unused}."
    )
    return stop_workload(workload, limit_use.kind, why)
