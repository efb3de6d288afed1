"""A world played by the scheduler's own decisions, with the true lengths, from event to event."""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.forecasting.worlds import Submission, World
from scheduling import ClusterState, Decision, Gang, Pod, decide

MOST_DECISIONS = 10
"""How often it is decided at one moment, while some give way to others."""


def build_gang(plan: Submission, pods: Sequence[Pod], started_at: float | None = None) -> Gang:
    """Build the gang of a submission."""
    return Gang(
        plan.key,
        plan.project,
        pods,
        min_member=plan.pods,
        priority=plan.priority,
        preemptibility=plan.preemptibility,
        created_at=plan.at,
        started_at=started_at,
    )


def build_pods(plan: Submission) -> Sequence[Pod]:
    """Build the pods of a submission, as they wait."""
    return [Pod(f"{plan.key}/{rank}", plan.shape, rank) for rank in range(plan.pods)]


@dataclass(slots=True)
class Run:
    """A gang that was submitted and has not ended; what gave way goes on where it was."""

    submission: Submission
    pods: dict[str, Pod]
    remaining: float
    started_at: float | None = None
    """When it last came to have all its nodes."""
    first_start: float | None = None
    version: int = 0

    def describe(self) -> Gang:
        """Return the gang that the scheduler sees."""
        return build_gang(self.submission, list(self.pods.values()), self.started_at)


@dataclass(frozen=True, slots=True)
class EndedRun:
    """What is known of a run once it is over."""

    submission: Submission
    started_at: float
    ended_at: float
    length: float


@dataclass(frozen=True, slots=True)
class Moment:
    """The cluster as it was at a time, and all that had ended by then."""

    now: float
    state: ClusterState
    submissions: Mapping[str, Submission]
    """Of the gangs of the state, by key."""
    ran: Mapping[str, float]
    """For how long each gang that runs has had its nodes, by key."""
    waits: Sequence[tuple[Submission, float]]
    """What had started by then, and how long it had waited."""
    ended: Sequence[EndedRun]
    came: Sequence[Submission]
    """All that was submitted by then."""

    def list_waiting(self) -> Sequence[Gang]:
        """Return the gangs that have not started yet; what gave way has."""
        started = {submission.key for submission, _ in self.waits}
        return [
            gang
            for gang in self.state.gangs
            if gang.key not in started and not any(pod.node for pod in gang.pods)
        ]


@dataclass
class Replay:
    """Plays a world once; `starts` has when each gang first started."""

    world: World
    starts: dict[str, float] = field(default_factory=dict)
    evictions: int = 0
    decisions: int = 0
    _now: float = 0.0
    _runs: dict[str, Run] = field(default_factory=dict)
    _ends: list[tuple[float, str, int]] = field(default_factory=list)
    _ended: list[EndedRun] = field(default_factory=list)
    _waits: list[tuple[Submission, float]] = field(default_factory=list)

    def play(self, times: Sequence[float]) -> Iterator[Moment]:
        """Play to the last start, and return the moments at these times on the way."""
        arrivals, pending = list(reversed(self.world.submissions)), list(reversed(times))
        while arrivals or self._ends:
            at = min(
                arrivals[-1].at if arrivals else float("inf"),
                self._ends[0][0] if self._ends else float("inf"),
            )
            while pending and pending[-1] < at:
                yield self._describe(pending.pop())
            self._now = at
            while arrivals and arrivals[-1].at <= at:
                self._submit(arrivals.pop())
            while self._ends and self._ends[0][0] <= at:
                self._end(*heapq.heappop(self._ends))
            self._settle()

    def _submit(self, plan: Submission) -> None:
        self._runs[plan.key] = Run(plan, {pod.uid: pod for pod in build_pods(plan)}, plan.length)

    def _end(self, at: float, key: str, version: int) -> None:
        run = self._runs.get(key)
        if run is None or run.version != version or run.first_start is None:
            return
        del self._runs[key]
        plan = run.submission
        self._ended.append(EndedRun(plan, run.first_start, at, plan.length))

    def _settle(self) -> None:
        """Decide until nobody gives way any more; who gives way has left at once."""
        for _ in range(MOST_DECISIONS):
            self.decisions += 1
            gangs = [run.describe() for run in self._runs.values()]
            decision = decide(ClusterState(self._now, self.world.nodes, self.world.queues, gangs))
            self._apply(decision)
            if not decision.evictions:
                return

    def _apply(self, decision: Decision) -> None:
        changed = {each.gang for each in decision.bindings}
        for binding in decision.bindings:
            self._move(binding.gang, binding.pod, node=binding.node, devices=binding.devices)
        evicted = {each.gang for each in decision.evictions}
        for eviction in decision.evictions:
            self._move(eviction.gang, eviction.pod)
        for nomination in decision.nominations:
            self._move(nomination.gang, nomination.pod, nominated_node=nomination.node)
        for key in sorted(changed | evicted):
            self._note_start(self._runs[key])
        self.evictions += len(evicted)

    def _move(
        self,
        key: str,
        uid: str,
        *,
        node: str = "",
        devices: tuple[int, ...] = (),
        nominated_node: str = "",
    ) -> None:
        pods = self._runs[key].pods
        pod = pods.get(uid)
        if pod is not None and not (nominated_node and pod.node):
            pods[uid] = Pod(uid, pod.shape, pod.rank, node, devices, nominated_node=nominated_node)

    def _note_start(self, run: Run) -> None:
        """Note that a gang has all its nodes, or has them no longer."""
        plan = run.submission
        is_running = all(pod.node for pod in run.pods.values())
        if is_running and run.started_at is None:
            run.started_at = self._now
            run.version += 1
            heapq.heappush(self._ends, (self._now + run.remaining, plan.key, run.version))
            if run.first_start is None:
                run.first_start = self._now
                self.starts[plan.key] = self._now
                self._waits.append((plan, self._now - plan.at))
        elif not is_running and run.started_at is not None:
            run.remaining = max(0.0, run.remaining - (self._now - run.started_at))
            run.started_at = None
            run.version += 1

    def _describe(self, now: float) -> Moment:
        runs = self._runs
        state = ClusterState(
            now, self.world.nodes, self.world.queues, [run.describe() for run in runs.values()]
        )
        return Moment(
            now,
            state,
            {key: run.submission for key, run in runs.items()},
            {
                key: run.submission.length - run.remaining + now - run.started_at
                for key, run in runs.items()
                if run.started_at is not None
            },
            list(self._waits),
            list(self._ended),
            [plan for plan in self.world.submissions if plan.at <= now],
        )
