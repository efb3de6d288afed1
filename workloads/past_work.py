"""What ran and waited in a cluster in the last days, out of rows, to be played again."""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet

from clusters.models import Cluster, NodePool
from console.chunks import split_chunks
from projects.models import Project
from scheduling import Gang, Pod, Preemptibility
from workloads.elastic.cluster_state import find_priority
from workloads.elastic.pod_shapes import ShapeBuilder
from workloads.fit.demand import WorkloadDemand
from workloads.kube_objects import Object
from workloads.manifests.placement import NodePools, build_placement
from workloads.models import Attempt, Event, LedgerEntry, Workload
from workloads.runtime_limits import COUNTED_STATUSES
from workloads.specs import UnreadableSpec, decode_spec
from workloads.states import ENDING, RESTING, STARTING, Status

MOST_ATTEMPTS = 10_000
MOST_PODS = 50_000
"""Newest attempts of one cluster that are played again, and all of their pods."""
MOST_POOLS = 500
MOST_PODS_OF_RUN = 5_000
"""An attempt of more pods is left out: a few of them would leave no room for all others."""
SHORTEST_RUN = 1.0
"""Seconds: whatever has none would hold what it got for ever."""
MOST_WITH_BREAKS = 500
"""Attempts that waited again after they had run, of those that are looked at together."""
MOST_CHANGES = 20_000
"""Changes of their statuses; where there are more, some attempts count as if they had no break."""
UNSTARTED = frozenset({*STARTING, Status.PREPARING, Status.PENDING, Status.INITIALIZING})
"""Statuses in which an attempt that has not started yet is going to."""
_COUNTED_VALUES = {each.value for each in COUNTED_STATUSES}


class Period(NamedTuple):
    """A time in which an attempt ran; without an end it runs still."""

    begin: datetime
    end: datetime | None


@dataclass(frozen=True, slots=True)
class PodGroup:
    """Equal pods: what each requests, and which nodes they accept; no `gpus`: a shared device."""

    gpus: Decimal | None
    cpu: Decimal
    memory: int
    placement: Object
    count: int


@dataclass(frozen=True, slots=True)
class PastRun:
    """An attempt as it was: what it asked for, when it came, started and ended."""

    key: str
    workload: uuid.UUID
    project: int
    queue: str
    priority: int
    is_preemptible: bool
    starts_together: bool
    groups: Sequence[PodGroup]
    came_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    periods: Sequence[Period] = ()
    """When it ran, where it waited again in between; else empty."""

    @property
    def running_periods(self) -> Sequence[Period]:
        """When it ran, without the times in which it waited again."""
        if self.periods or self.started_at is None:
            return self.periods
        return (Period(self.started_at, self.ended_at),)

    def is_running_at(self, at: datetime) -> bool:
        """Return whether it ran at a moment, and did not wait again."""
        return any(begin <= at and (end is None or at < end) for begin, end in self.running_periods)

    def measure_running_time(self, since: datetime) -> float | None:
        """Return for how many seconds it ran since a moment; None where it runs still.

        One that waits again counts with what it ran: nobody knows what is left of it.
        """
        total = None
        for begin, end in self.running_periods:
            if end is None:
                return None
            total = (total or 0.0) + max(0.0, (end - max(begin, since)).total_seconds())
        return total

    @property
    def gpus(self) -> Decimal:
        """Its GPUs; a shared device counts as one."""
        one = Decimal(1)
        return sum(
            ((one if each.gpus is None else each.gpus) * each.count for each in self.groups),
            Decimal(0),
        )


@dataclass(frozen=True, slots=True)
class PastWork:
    """The attempts of a time, the oldest first, and how many are not among them."""

    runs: Sequence[PastRun]
    begin: datetime
    """From when on all that came is known."""
    is_cut: bool = False
    """Whether there were more than are played: the oldest are missing then."""
    never_started: int = 0
    """Attempts that were stopped before they started: nobody knows how long they would have run."""
    left_out: int = 0
    """Attempts of removed projects, of unreadable definitions, and of too many pods."""
    deleted: int = 0
    """Workloads that the ledger has, and whose rows are gone."""


class _AttemptValues(NamedTuple):
    id: int
    workload_id: uuid.UUID
    requested_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    status: str
    workload__released_at: datetime | None


class _Ask(NamedTuple):
    """What a workload asks for: the same in each of its attempts."""

    project: int
    queue: str
    priority: int
    is_preemptible: bool
    starts_together: bool
    groups: Sequence[PodGroup]


def load_past_work(cluster: Cluster, begin: datetime, now: datetime) -> PastWork:
    """Load the attempts that waited or ran in a cluster since `begin`, and how many are gone.

    Where they are too many, those that ran when the newest began are there as well. Four queries,
    or seven then, and two for some hundreds of workloads; three where some waited again.
    """
    past = load_past_runs(cluster, begin, now, MOST_ATTEMPTS)
    if past.is_cut:
        # Without them the nodes would look empty.
        past = _add_running_work(past, cluster)
    return replace(past, runs=add_periods(past.runs), deleted=_count_deleted(cluster, begin))


def load_past_runs(
    cluster: Cluster, begin: datetime, now: datetime, most_attempts: int
) -> PastWork:
    """Load the newest attempts that waited or ran in a cluster since `begin`.

    Three queries, and one for some hundreds of workloads.
    """
    attempts = Attempt.objects.filter(
        Q(ended_at=None) | Q(ended_at__gt=begin), workload__cluster=cluster, requested_at__lt=now
    )
    rows = _load_attempts(attempts, most_attempts + 1)
    built = _build_runs(cluster, [row for row in rows[:most_attempts] if _is_played(row)])
    is_cut = built.is_cut or len(rows) > most_attempts
    return PastWork(
        built.runs,
        max(begin, built.runs[0].came_at) if is_cut and built.runs else begin,
        is_cut,
        sum(_was_given_up(row) for row in rows[:most_attempts]),
        built.left_out,
    )


def _add_running_work(past: PastWork, cluster: Cluster) -> PastWork:
    """Add the attempts that came before all others and ran at the begin, the newest of many."""
    attempts = Attempt.objects.filter(
        Q(ended_at=None) | Q(ended_at__gt=past.begin),
        workload__cluster=cluster,
        requested_at__lte=past.runs[0].came_at if past.runs else past.begin,
        started_at__lte=past.begin,
    )
    run_keys = {run.key for run in past.runs}
    rows = [row for row in _load_attempts(attempts, MOST_ATTEMPTS) if str(row.id) not in run_keys]
    built = _build_runs(cluster, rows)
    return replace(past, runs=[*built.runs, *past.runs], left_out=past.left_out + built.left_out)


class _BuiltRuns(NamedTuple):
    """Runs, the oldest first, and how many could not be built; `is_cut`: the oldest are missing."""

    runs: Sequence[PastRun]
    left_out: int
    is_cut: bool


def _build_runs(cluster: Cluster, rows: Sequence[_AttemptValues]) -> _BuiltRuns:
    """Build the runs of attempts, the newest first, up to so many pods."""
    asks = _load_asks(cluster, dict.fromkeys(row.workload_id for row in rows))
    runs: list[PastRun] = []
    pods = left_out = 0
    is_cut = False
    for row in rows:
        ask = asks.get(row.workload_id)
        count = 0 if ask is None else sum(group.count for group in ask.groups)
        if ask is None or count > MOST_PODS_OF_RUN:
            left_out += 1
            continue
        pods += count
        if pods > MOST_PODS:
            is_cut = True
            break
        times = (row.requested_at, row.started_at, _find_end(row))
        runs.append(PastRun(str(row.id), row.workload_id, *ask, *times))
    runs.reverse()
    return _BuiltRuns(runs, left_out, is_cut)


def add_periods(runs: Sequence[PastRun]) -> Sequence[PastRun]:
    """Add when those ran that waited again in between. One query for some hundreds, or two."""
    periods: dict[str, Sequence[Period]] = {}
    for chunk in split_chunks([int(run.key) for run in runs], MOST_WITH_BREAKS):
        chunk_periods = load_running_periods(Attempt.objects.filter(pk__in=chunk))
        periods |= {str(key): each for key, each in chunk_periods.items()}
    return [replace(run, periods=periods.get(run.key, ())) for run in runs]


def load_running_periods(attempts: "QuerySet[Attempt]") -> Mapping[int, Sequence[Period]]:
    """Load when those attempts ran that waited again in between, by id; no others are in it.

    The newest of many. Two queries; one where there are none.
    """
    breaks = Event.objects.filter(
        workload=OuterRef("workload"),
        attempt=OuterRef("number"),
        at__gt=OuterRef("started_at"),
        kind=Event.Kind.STATUS,
        # That it says what is new lets a database use the index of changes.
        new__gt="",
    )
    # Of what others suspended and resumed only the change from rest is one of an unended attempt.
    breaks = breaks.filter(
        ~Q(new__in={*COUNTED_STATUSES, *RESTING, *ENDING}) | Q(old=Status.STOPPED)
    )
    fields = ("id", "workload", "number", "started_at", "ended_at", "workload__released_at")
    broken = list(
        attempts.filter(Exists(breaks), started_at__isnull=False)
        .order_by("-pk")
        .values_list(*fields)[:MOST_WITH_BREAKS]
    )
    changes = _load_changes({workload for _, workload, *_ in broken}) if broken else {}
    return {
        key: _find_periods(started_at, ended_at or released_at, changes[workload, number])
        for key, workload, number, started_at, ended_at, released_at in broken
        if (workload, number) in changes
    }


def _load_changes(
    workloads: Iterable[uuid.UUID],
) -> Mapping[tuple[uuid.UUID, int], Sequence[tuple[datetime, str]]]:
    """Load the statuses of workloads with their moments, by workload and attempt. One query."""
    # A person's request to stop or delete is an ACTION event; no STATUS event accompanies it.
    is_change = Q(kind=Event.Kind.STATUS) | Q(kind=Event.Kind.ACTION, new__in=ENDING)
    events = Event.objects.filter(is_change, workload__in=list(workloads), new__gt="")
    rows = list(
        events.order_by("workload", "at", "id").values_list("workload", "attempt", "at", "new")[
            : MOST_CHANGES + 1
        ]
    )
    if len(rows) > MOST_CHANGES:
        # The last workload may have more changes than were read.
        rows = [row for row in rows if row[0] != rows[-1][0]]
    changes: dict[tuple[uuid.UUID, int], list[tuple[datetime, str]]] = defaultdict(list)
    for workload, attempt, at, new in rows:
        changes[workload, attempt].append((at, new))
    return changes


def _find_periods(
    started_at: datetime, ended_at: datetime | None, changes: Iterable[tuple[datetime, str]]
) -> Sequence[Period]:
    """Return when an attempt ran, by the changes of its status, as its time limit counts it."""
    periods: list[Period] = []
    since: datetime | None = started_at
    for at, new in changes:
        if at < started_at:
            continue
        # A change that is recorded after the attempt's end counts only up to the end.
        moment = at if ended_at is None else min(at, ended_at)
        if since is not None and new not in _COUNTED_VALUES:
            periods.append(Period(since, moment))
            since = None
        elif since is None and new in _COUNTED_VALUES:
            since = moment
    if since is not None:
        periods.append(Period(since, ended_at))
    return periods


def build_gang(run: PastRun, shapes: ShapeBuilder, came_at: float, *, has_kai: bool = True) -> Gang:
    """Build the gang of an attempt that comes at a time, with pods that wait.

    Without KAI nothing gives way, and all that is needed starts together (`require_whole_gangs`).
    """
    starts_together = run.starts_together or not has_kai
    is_preemptible = run.is_preemptible and has_kai
    pods: list[Pod] = []
    for group in run.groups:
        shape = shapes.build(group.gpus, group.cpu, group.memory, group.placement)
        pods += [
            Pod(f"{run.key}-{rank}", shape, rank)
            for rank in range(len(pods), len(pods) + group.count)
        ]
    return Gang(
        key=run.key,
        queue=run.queue,
        pods=pods,
        min_member=max(1, len(pods)) if starts_together else 1,
        priority=run.priority,
        preemptibility=(
            Preemptibility.PREEMPTIBLE if is_preemptible else Preemptibility.NON_PREEMPTIBLE
        ),
        created_at=came_at,
    )


def _load_attempts(attempts: "QuerySet[Attempt]", most: int) -> Sequence[_AttemptValues]:
    """Load the newest of these attempts, the newest first. One query."""
    values = attempts.order_by("-requested_at", "-pk").values_list(*_AttemptValues._fields)
    return [_AttemptValues(*each) for each in values[:most]]


def _find_end(row: _AttemptValues) -> datetime | None:
    return row.ended_at or row.workload__released_at


def _was_given_up(row: _AttemptValues) -> bool:
    return row.started_at is None and _find_end(row) is not None


def _is_played(row: _AttemptValues) -> bool:
    """Return whether it ran, or is going to."""
    return row.started_at is not None or (_find_end(row) is None and row.status in UNSTARTED)


def _load_asks(cluster: Cluster, workloads: Iterable[uuid.UUID]) -> Mapping[uuid.UUID, _Ask]:
    """Load what workloads ask for; those whose project has no queue any more are left out."""
    pools = _load_pools(cluster)
    asks: dict[uuid.UUID, _Ask] = {}
    fields = (
        *("id", "project_id", "project__queue", "project__removed_at", "priority", "preemptible"),
        "spec",
    )
    for keys in split_chunks(list(workloads)):
        for row in Workload.objects.filter(pk__in=keys).order_by().values(*fields):
            ask = None if row["project__removed_at"] else _build_ask(row, pools)
            if ask is not None:
                asks[row["id"]] = ask
    return asks


def _build_ask(row: Mapping[str, Any], pools: "_ProjectPools") -> _Ask | None:
    try:
        demand = WorkloadDemand.from_spec(decode_spec(row["spec"]))
        groups = [
            PodGroup(
                None if kind.setup.compute.gpus.memory else kind.amounts.gpus,
                kind.amounts.cpu,
                int(kind.amounts.memory),
                build_placement(kind.setup, "", pools.find(row["project_id"])),
                kind.count,
            )
            for kind in demand.kinds
            if kind.count
        ]
    except (UnreadableSpec, AttributeError, ValueError, ArithmeticError):
        return None
    return _Ask(
        row["project_id"],
        row["project__queue"],
        find_priority(row["priority"]),
        row["preemptible"],
        demand.starts_together,
        groups,
    )


class _ProjectPools:
    """The node pools of a cluster, and those to which each project is limited."""

    def __init__(
        self, labels: Mapping[str, tuple[str, str]], limits: Mapping[int, tuple[str, ...]]
    ) -> None:
        self._all = NodePools(labels)
        self._limited = {project: NodePools(labels, names) for project, names in limits.items()}

    def find(self, project: int) -> NodePools:
        return self._limited.get(project, self._all)


def _load_pools(cluster: Cluster) -> _ProjectPools:
    """Load the node pools of a cluster. Two queries."""
    rows = NodePool.objects.filter(cluster=cluster).order_by("name")[:MOST_POOLS]
    labels = {pool.name: (pool.label_key, pool.label_value) for pool in rows}
    limits: dict[int, tuple[str, ...]] = {}
    members = Project.node_pools.through.objects.filter(project__cluster=cluster)
    for project, name in members.order_by("nodepool__name").values_list(
        "project", "nodepool__name"
    )[:MOST_ATTEMPTS]:
        limits[project] = (*limits.get(project, ()), name)
    return _ProjectPools(labels, limits)


def _count_deleted(cluster: Cluster, begin: datetime) -> int:
    """Return how many workloads of a time the ledger has, and no row any more. One query."""
    entries = LedgerEntry.objects.filter(day__gte=begin.date(), project__cluster=cluster)
    deleted_entries = entries.exclude(
        workload__in=Workload.objects.filter(cluster=cluster).values("pk")
    )
    keys = deleted_entries.order_by().values_list("workload", flat=True).distinct()
    return len(keys[:MOST_ATTEMPTS])
