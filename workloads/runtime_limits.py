"""The limits on running time and on idle GPUs: what is used of them, and what is left."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import F, Q
from django.utils import timezone

from console.errors import Clash
from projects.durations import describe_duration
from workloads import utilisation
from workloads.models import Event, Workload
from workloads.states import ENDING, Status

COUNTED_STATUSES = frozenset({Status.RUNNING, Status.DEGRADED})
"""Statuses in which running time counts: all pods run, or some. Waiting and starting do not count.
"""
MOST_WITH_BREAKS = 500
"""Workloads of a cluster, which ran with breaks, whose running time is read."""
_COUNTED_VALUES = {each.value for each in COUNTED_STATUSES}


@dataclass(frozen=True, slots=True)
class RunningTime:
    """How long a workload has run.

    `seconds_before` is what finished periods add up to; `running_since` is None where it does not
    run now.
    """

    seconds_before: float
    running_since: datetime | None = None

    def total_seconds(self, now: datetime) -> float:
        return self.seconds_before + (
            max(0.0, (now - self.running_since).total_seconds()) if self.running_since else 0.0
        )


def load_running_seconds(workloads: Sequence[Workload], now: datetime) -> Mapping[UUID, float]:
    """Return the seconds that each workload ran, over all its attempts.

    One query.
    """
    return {
        key: each.total_seconds(now) for key, each in load_running_times(workloads, now).items()
    }


def load_running_times(workloads: Sequence[Workload], now: datetime) -> Mapping[UUID, RunningTime]:
    """Return the running time of each workload over all its attempts, by id.

    One query; none where no workload has started. Attempts before the current one count as their
    sum stood when it began. The current one is computed from its history: a preempted workload does
    not run meanwhile.
    """
    changes: dict[UUID, list[tuple[datetime, str]]] = defaultdict(list)
    begun = [each.pk for each in workloads if each.started_at]
    # A person's request to stop or delete is an ACTION event; no STATUS event accompanies it.
    status_changes = Q(kind=Event.Kind.STATUS) | Q(
        kind=Event.Kind.ACTION, new__in=[each.value for each in ENDING]
    )
    rows = (
        # That they all say what is new lets a database use the index of changes.
        Event.objects.filter(status_changes, workload__in=begun, new__gt="").order_by("at", "id")
        if begun
        else Event.objects.none()
    )
    attempts = {each.pk: each.attempt for each in workloads}
    for key, attempt, at, new in rows.values_list("workload_id", "attempt", "at", "new"):
        if attempt == attempts[key]:
            changes[key].append((at, new))
    return {each.pk: _measure_running_time(each, changes[each.pk], now) for each in workloads}


def load_unbroken_starts(cluster_id: UUID, now: datetime) -> Mapping[UUID, datetime]:
    """Return since when what ran with breaks would have run without them, by id.

    Of the current attempt, without which the time that a workload waited again would count as
    time that it ran. Those that never gave way are not in it. Three queries; one where there are
    none.
    """
    broken = (
        Event.objects.filter(
            workload__cluster=cluster_id,
            workload__ended_at=None,
            workload__released_at=None,
            workload__attempt=F("attempt"),
            workload__started_at__lt=F("at"),
            kind=Event.Kind.STATUS,
            # That it says what is new lets a database use the index of changes.
            new__gt="",
        )
        .exclude(new__in=_COUNTED_VALUES)
        .order_by("workload")
    )
    ids = list(broken.values_list("workload", flat=True).distinct()[:MOST_WITH_BREAKS])
    fields = ("attempt", "started_at", "ended_at", "ran_seconds")
    workloads = list(Workload.objects.filter(pk__in=ids).only(*fields)) if ids else []
    running = load_running_times(workloads, now)
    ran = {each.pk: running[each.pk].total_seconds(now) - each.ran_seconds for each in workloads}
    return {key: now - timedelta(seconds=max(0.0, seconds)) for key, seconds in ran.items()}


def _measure_running_time(
    workload: Workload, changes: Iterable[tuple[datetime, str]], now: datetime
) -> RunningTime:
    if workload.started_at is None:
        return RunningTime(workload.ran_seconds)
    end = min(workload.ended_at or now, now)
    total, since = workload.ran_seconds, workload.started_at
    is_on = True
    for at, new in changes:
        if at < workload.started_at:
            continue
        # A change that is recorded after the attempt's end counts only up to the end.
        moment = min(at, end)
        if is_on and new not in _COUNTED_VALUES:
            total += max(0.0, (moment - since).total_seconds())
        elif not is_on and new in _COUNTED_VALUES:
            since = moment
        is_on = new in _COUNTED_VALUES
    if not is_on:
        return RunningTime(total)
    if workload.ended_at is None:
        return RunningTime(total, since)
    return RunningTime(total + max(0.0, (end - since).total_seconds()))


@dataclass(frozen=True, slots=True)
class LimitUse:
    """One limit of a workload and what is used of it, in seconds.

    `note` says why, where `used_seconds` is None.
    """

    title: str
    limit_seconds: int
    used_seconds: float | None
    note: str = ""

    @property
    def limit_words(self) -> str:
        return describe_duration(self.limit_seconds)

    @property
    def remaining_seconds(self) -> float | None:
        return (
            None if self.used_seconds is None else max(0.0, self.limit_seconds - self.used_seconds)
        )


def load_limit_uses(workload: Workload) -> Sequence[LimitUse]:
    """Return the limits of a workload with what is used of them now.

    The workload is loaded with its cluster. At most two queries.
    """
    now = timezone.now()
    limit_uses = []
    if workload.time_limit_seconds is not None:
        limit_uses.append(
            LimitUse(
                "Time limit",
                workload.time_limit_seconds,
                load_running_seconds([workload], now)[workload.pk],
            )
        )
    if workload.idle_limit_seconds is not None:
        limit_uses.append(_build_idle_use(workload, workload.idle_limit_seconds, now))
    return limit_uses


def _build_idle_use(workload: Workload, limit_seconds: int, now: datetime) -> LimitUse:
    note = ""
    if workload.status not in _COUNTED_VALUES:
        note = "counted while it runs"
    elif not workload.cluster.prometheus_url:
        note = "the use of GPUs is unknown here: it is not applied"
    elif not workload.is_use_known or utilisation.find_latest_sample_time() is None:
        note = "the use of its GPUs is unknown: it is not applied meanwhile"
    elif workload.idle_since is None:
        note = "its GPUs are in use"
    else:
        return LimitUse(
            "Idle limit", limit_seconds, (now - get_idle_start(workload)).total_seconds()
        )
    return LimitUse("Idle limit", limit_seconds, None, note)


def get_idle_start(workload: Workload) -> datetime:
    """Return since when the workload's GPUs are unused in this attempt.

    Call it only where `idle_since` is known.
    """
    assert workload.idle_since is not None
    return max(workload.idle_since, workload.started_at or workload.idle_since)


def require_time_left(workload: Workload) -> None:
    """Raise Clash for a workload that has used up its time limit.

    The limiter would stop it as soon as it ran.
    """
    limit = workload.time_limit_seconds
    if limit is not None and load_running_seconds([workload], timezone.now())[workload.pk] >= limit:
        raise Clash(
            f"{workload.name} has used up its time limit of {describe_duration(limit)}, which "
            "counts over all its runs: it would be stopped at once. Make a copy, which starts at "
            "nothing."
        )
