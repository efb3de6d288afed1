"""When an elastic workload gets more workers, and when fewer. Pure.

Room is what the scheduler's own rules would give: the workers that may come are put into the state
of the cluster, and a decision says which of them start. They take nothing from others, and a second
decision says which of them would be taken back at once: those do not come.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from scheduling import ClusterState, Decision, Gang, Pod, PodShape

Decide = Callable[[ClusterState], Decision]

MOST_ADDED = 100
"""Workers that one workload gets at once, at most."""
MOST_ADDED_TOGETHER = 2000
"""Workers that are tried for all workloads together."""
MOST_ROUNDS = 4
"""How often room is tried again without the workers that would be taken back."""
LONGEST_PAUSE = 3600.0
"""Seconds for which there has to be room, at most, however often a growth was given up."""
NEVER = 10.0**12
"""Seconds after which workers that are only tried may take something from others."""


@dataclass(frozen=True, slots=True)
class ElasticJob:
    """An elastic workload that runs, with its workers. Moments are in seconds.

    `key` is that of its gang in the cluster's state. `workers` is how many Muster set last.
    `waiting` has the workers without a node: since when each waits, by its index. `used` is the
    least number of workers that keeps every worker with a node. `is_complete` says whether all its
    pods are up, and none failed, ends, or is done. `give_ups` is how often workers were given up of
    late.
    """

    key: str
    workers: int
    min_workers: int
    max_workers: int
    worker: PodShape
    used: int
    waiting: Mapping[int, float]
    is_complete: bool
    room_since: float | None = None
    scale_after: float | None = None
    give_ups: int = 0


@dataclass(frozen=True, slots=True)
class ScaleTimes:
    """For how many seconds there has to be room before a workload grows, and for how many a worker
    may wait for a node before it is given up.
    """

    room: float
    patience: float


@dataclass(frozen=True, slots=True)
class ScaleChoice:
    """The new numbers of workers, and which jobs have room for more, by key."""

    workers: Mapping[str, int]
    with_room: frozenset[str] = frozenset()
    without_room: frozenset[str] = frozenset()


def choose_workers(
    jobs: Sequence[ElasticJob],
    load_state: Callable[[], ClusterState | None],
    decide: Decide,
    *,
    now: float,
    times: ScaleTimes,
) -> ScaleChoice:
    """Choose how many workers the jobs of a cluster get now.

    The state is only loaded where a job may grow; without one there is no room.
    """
    lowered = {
        job.key: fewer
        for job in jobs
        if _is_due(job, now, times) and (fewer := count_kept_workers(job, now, times)) < job.workers
    }
    growing = [job for job in jobs if job.key not in lowered and may_grow(job, now, times)]
    state = load_state() if growing else None
    room = {} if state is None else count_room(state, growing, decide)
    raised = {
        job.key: job.workers + room[job.key]
        for job in growing
        if room.get(job.key)
        and job.room_since is not None
        and now - job.room_since >= calculate_pause(job, times)
    }
    with_room = frozenset(key for key, count in room.items() if count)
    return ScaleChoice(
        {**lowered, **raised}, with_room, frozenset(job.key for job in jobs) - with_room
    )


def count_kept_workers(job: ElasticJob, now: float, times: ScaleTimes) -> int:
    """Return with how many workers a job goes on once those that waited too long are given up.

    The last ones go first, as its operator does it; one that has a node is never among them.
    """
    floor = max(job.min_workers, job.used)
    workers = job.workers
    while (
        workers > floor
        and (since := job.waiting.get(workers - 1)) is not None
        and now - since >= times.patience
    ):
        workers -= 1
    return workers


def calculate_pause(job: ElasticJob, times: ScaleTimes) -> float:
    """Return for how many seconds there has to be room before a job grows.

    Where the cluster's scheduler decides otherwise than it is foreseen here, workers come and are
    given up over and over: each time doubles the pause.
    """
    if not job.give_ups:
        return times.room
    # More than so many doublings reach the longest pause from a second.
    doubled = max(times.room or times.patience, 1.0) * (1 << min(job.give_ups, 12))
    return max(times.room, min(doubled, LONGEST_PAUSE))


def may_grow(job: ElasticJob, now: float, times: ScaleTimes) -> bool:
    """Return whether a job would take more workers: all that it has are up."""
    return job.workers < job.max_workers and job.is_complete and _is_due(job, now, times)


def _is_due(job: ElasticJob, now: float, times: ScaleTimes) -> bool:
    # A pause that ends later than any that begins now was written while the clock was ahead.
    latest = now + max(times.room, LONGEST_PAUSE)
    return job.scale_after is None or not now < job.scale_after <= latest


def count_room(
    state: ClusterState, jobs: Sequence[ElasticJob], decide: Decide
) -> Mapping[str, int]:
    """Return how many more workers of each job would start now, and not be taken back at once."""
    wanted = _share_tries(jobs)
    for _ in range(MOST_ROUNDS):
        tried = add_workers(state, jobs, wanted)
        decision = decide(tried)
        placed = _count_placed(decision, wanted)
        if not any(placed.values()):
            return {}
        after = decide(_apply(tried, decision, wanted))
        eviction_counts = Counter(each.gang for each in after.evictions)
        if not any(eviction_counts[key] for key, count in placed.items() if count):
            return placed
        wanted = {key: max(0, count - eviction_counts[key]) for key, count in placed.items()}
    return {}


def _share_tries(jobs: Sequence[ElasticJob]) -> dict[str, int]:
    """Return how many workers are tried for each job."""
    each = max(1, min(MOST_ADDED, MOST_ADDED_TOGETHER // max(1, len(jobs))))
    return {job.key: min(each, job.max_workers - job.workers) for job in jobs}


def add_workers(
    state: ClusterState, jobs: Sequence[ElasticJob], wanted: Mapping[str, int]
) -> ClusterState:
    """Return the state with so many more waiting workers of each job, which take from nobody."""
    by_key = {job.key: job for job in jobs}
    gangs = []
    for gang in state.gangs:
        if not (count := wanted.get(gang.key, 0)):
            gangs.append(gang)
            continue
        shape, first = by_key[gang.key].worker, max((pod.rank for pod in gang.pods), default=-1) + 1
        added = [
            Pod(_build_uid(gang.key, number), shape, rank=first + number) for number in range(count)
        ]
        gangs.append(replace(gang, pods=[*gang.pods, *added], preemption_delay=NEVER))
    return replace(state, gangs=gangs)


def _build_uid(key: str, number: int) -> str:
    return f"{key}/{number}"


def _count_placed(decision: Decision, wanted: Mapping[str, int]) -> dict[str, int]:
    """Count the tried workers that start at once, where nobody has to give way for them."""
    takers = {each.for_gang for each in decision.evictions}
    tried = {_build_uid(key, number) for key, count in wanted.items() for number in range(count)}
    bound = Counter(each.gang for each in decision.bindings if each.pod in tried)
    return {key: 0 if key in takers else bound[key] for key in wanted}


def _apply(state: ClusterState, decision: Decision, wanted: Mapping[str, int]) -> ClusterState:
    """Return the state once a decision is done, without the tried workers that found no place."""
    bindings = {each.pod: each for each in decision.bindings}
    evicted = {each.pod for each in decision.evictions}

    def move(pod: Pod) -> Pod:
        if (binding := bindings.get(pod.uid)) is not None:
            return replace(pod, node=binding.node, devices=binding.devices)
        return replace(pod, is_leaving=True) if pod.uid in evicted else pod

    tried = {_build_uid(key, number) for key, count in wanted.items() for number in range(count)}
    gangs: list[Gang] = [
        replace(
            gang,
            pods=[move(pod) for pod in gang.pods if pod.uid in bindings or pod.uid not in tried],
        )
        for gang in state.gangs
    ]
    return replace(state, gangs=gangs)
