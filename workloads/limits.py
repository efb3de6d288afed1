"""How long a workload may run, and leave its GPUs unused: what of that is used, and what is
left.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from console.errors import Clash
from projects.durations import words
from workloads import utilisation
from workloads.models import Event, Workload
from workloads.states import LEAVING, Status

COUNTED = frozenset({Status.RUNNING, Status.DEGRADED})
"""In these it runs, with all of its pods or some; while it waits or starts no time is counted."""
_COUNTED = {each.value for each in COUNTED}


@dataclass(frozen=True, slots=True)
class Ran:
    """How long a workload ran: `before` in seconds, and since when it runs now, None where it does
    not.
    """

    before: float
    since: datetime | None = None

    def seconds(self, now: datetime) -> float:
        return self.before + (max(0.0, (now - self.since).total_seconds()) if self.since else 0.0)


def ran(workloads: Sequence[Workload], now: datetime) -> Mapping[UUID, float]:
    """Seconds that each was in Running, over all its runs. One query."""
    return {key: each.seconds(now) for key, each in runs(workloads, now).items()}


def runs(workloads: Sequence[Workload], now: datetime) -> Mapping[UUID, Ran]:
    """How long each was in Running, over all its runs, by id. One query, none where none has run.

    The runs before this one count as they were when it began; this one from its history: what was
    preempted did not run meanwhile.
    """
    changes: dict[UUID, list[tuple[datetime, str]]] = defaultdict(list)
    begun = [each.pk for each in workloads if each.started_at]
    # Somebody's asking for an end is told of as what they did.
    told = Q(kind=Event.Kind.STATUS) | Q(
        kind=Event.Kind.ACTION, new__in=[each.value for each in LEAVING]
    )
    rows = (
        Event.objects.filter(told, workload__in=begun).order_by("at", "id")
        if begun
        else Event.objects.none()
    )
    attempts = {each.pk: each.attempt for each in workloads}
    for key, attempt, at, new in rows.values_list("workload_id", "attempt", "at", "new"):
        if attempt == attempts[key]:
            changes[key].append((at, new))
    return {each.pk: _run(each, changes[each.pk], now) for each in workloads}


def _run(workload: Workload, changes: Iterable[tuple[datetime, str]], now: datetime) -> Ran:
    if workload.started_at is None:
        return Ran(workload.ran_seconds)
    end = min(workload.ended_at or now, now)
    total, since = workload.ran_seconds, workload.started_at
    is_on = True
    for at, new in changes:
        if at < workload.started_at:
            continue
        moment = min(at, end)
        if is_on and new not in _COUNTED:
            total += max(0.0, (moment - since).total_seconds())
        elif not is_on and new in _COUNTED:
            since = moment
        is_on = new in _COUNTED
    if not is_on:
        return Ran(total)
    if workload.ended_at is None:
        return Ran(total, since)
    return Ran(total + max(0.0, (end - since).total_seconds()))


@dataclass(frozen=True, slots=True)
class Use:
    """One limit of a workload: the whole, and what of it is used, in seconds; `note` says why where
    `used` is None.
    """

    title: str
    whole: int
    used: float | None
    note: str = ""

    @property
    def words(self) -> str:
        return words(self.whole)

    @property
    def left(self) -> float | None:
        return None if self.used is None else max(0.0, self.whole - self.used)


def uses(workload: Workload) -> Sequence[Use]:
    """The limits of a workload, which is loaded with its cluster, with what is used of them now. At
    most two queries.
    """
    now = timezone.now()
    found = []
    if workload.time_limit_seconds is not None:
        found.append(
            Use("Time limit", workload.time_limit_seconds, ran([workload], now)[workload.pk])
        )
    if workload.idle_limit_seconds is not None:
        found.append(_idle(workload, workload.idle_limit_seconds, now))
    return found


def _idle(workload: Workload, whole: int, now: datetime) -> Use:
    note = ""
    if workload.status not in _COUNTED:
        note = "counted while it runs"
    elif not workload.cluster.prometheus_url:
        note = "the use of GPUs is unknown here: it is not applied"
    elif not workload.use_known or utilisation.latest() is None:
        note = "the use of its GPUs is unknown: it is not applied meanwhile"
    elif workload.idle_since is None:
        note = "its GPUs are in use"
    else:
        return Use("Idle limit", whole, (now - idle_from(workload)).total_seconds())
    return Use("Idle limit", whole, None, note)


def idle_from(workload: Workload) -> datetime:
    """Since when its GPUs are unused in this run; to be asked where `idle_since` is known."""
    assert workload.idle_since is not None
    return max(workload.idle_since, workload.started_at or workload.idle_since)


def require_left(workload: Workload) -> None:
    """Raises Clash where a workload has run for as long as it may: it would be stopped as soon as
    it ran.
    """
    limit = workload.time_limit_seconds
    if limit is not None and ran([workload], timezone.now())[workload.pk] >= limit:
        raise Clash(
            f"{workload.name} has used up its time limit of {words(limit)}, which counts over "
            "all its runs: it would be stopped at once. "
            "Make a copy, which starts at nothing."
        )
