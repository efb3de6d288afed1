"""A cluster to try decisions on: pods start, leave with a grace, and are made again.

What the operator and the nodes do is simulated in the plainest way; the decisions come from the
package under proof. Every decision is judged before it is carried out.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from scheduling import (
    Action,
    ClusterState,
    Decision,
    Gang,
    Node,
    Pod,
    PodShape,
    Preemptibility,
    Queue,
)
from tests.scheduling.descriptions import describe_decision, describe_state
from tests.scheduling.judge import find_breaches
from tests.scheduling.judge_evictions import list_takings

Decider = Callable[[ClusterState], Decision]


@dataclass
class Job:
    """What an operator keeps running: pods by rank, made again when they vanish."""

    key: str
    queue: str
    shapes: Sequence[PodShape]
    """What the first ranks want; those behind want what the last of these wants."""
    replicas: int
    min_member: int
    priority: int = 50
    preemptibility: Preemptibility = Preemptibility.PREEMPTIBLE
    created_at: float = 0.0
    preemption_delay: float = 0.0
    grace: float = 5.0
    started_at: float | None = None
    stale_since: float | None = None
    staleness_grace: float = 60.0
    is_ended: bool = False
    finished: set[int] = field(default_factory=set)
    """The ranks that have succeeded."""
    kept_places: dict[int, str] = field(default_factory=dict)
    """Nodes on which places are kept for ranks that are not made again yet."""
    pods: dict[int, Pod] = field(default_factory=dict)

    def count_running(self) -> int:
        """Return how many pods run and do not leave."""
        return sum(1 for pod in self.pods.values() if pod.node and not pod.is_leaving)

    def describe(self) -> Gang:
        """Return the gang that the scheduler sees."""
        return Gang(
            self.key,
            self.queue,
            [self.pods[rank] for rank in sorted(self.pods)],
            min_member=self.min_member,
            priority=self.priority,
            preemptibility=self.preemptibility,
            created_at=self.created_at,
            started_at=self.started_at,
            preemption_delay=self.preemption_delay,
            stale_since=self.stale_since,
            staleness_grace=self.staleness_grace,
            succeeded=len(self.finished),
        )


class BrokenRule(AssertionError):
    """A decision broke a rule, or the world did not come to rest."""


@dataclass
class World:
    """Nodes, queues and jobs, and what has happened to them."""

    nodes: dict[str, Node]
    queues: dict[str, Queue]
    decide: Decider
    now: float = 1000.0
    jobs: dict[str, Job] = field(default_factory=dict)
    leaves_at: dict[str, float] = field(default_factory=dict)
    made: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    takers: dict[frozenset[str], list[str]] = field(default_factory=dict)
    """Of two gangs who took from the other, in turn, since something changed from outside."""
    moved: dict[str, int] = field(default_factory=dict)
    """How many pods ran of the gangs that consolidation has moved since then."""
    promised: set[str] = field(default_factory=set)
    """The pods that were promised a place since then."""

    def observe(self) -> ClusterState:
        """Return the state as the scheduler sees it."""
        gangs = [job.describe() for job in self.jobs.values() if job.pods]
        return ClusterState(self.now, list(self.nodes.values()), list(self.queues.values()), gangs)

    def make_pods(self, job: Job) -> None:
        """Make the pods that a job lacks and drop those that wait and are not wanted."""
        for rank in range(job.replicas):
            if rank not in job.pods and rank not in job.finished and not job.is_ended:
                self.made += 1
                shape = job.shapes[min(rank, len(job.shapes) - 1)]
                kept = job.kept_places.pop(rank, "")
                job.pods[rank] = Pod(
                    f"{job.key}-{rank}-{self.made}", shape, rank, nominated_node=kept
                )
        for rank, pod in list(job.pods.items()):
            if job.is_ended or rank >= job.replicas:
                self.remove_pod(job, pod)

    def remove_pod(self, job: Job, pod: Pod) -> None:
        """Delete a pod: one that waits is gone at once, one that runs after its grace."""
        if not pod.node:
            del job.pods[pod.rank]
        elif not pod.is_leaving:
            job.pods[pod.rank] = replace(pod, is_leaving=True)
            self.leaves_at[pod.uid] = self.now + job.grace

    def mark_start(self, job: Job) -> None:
        """Note when a job comes to its minimum, and since when it runs with less."""
        running = job.count_running()
        if running + len(job.finished) >= job.min_member:
            job.stale_since = None
            if job.started_at is None:
                job.started_at = self.now
        elif not running:
            job.started_at = job.stale_since = None
        elif job.stale_since is None and job.started_at is not None:
            job.stale_since = self.now

    def change(self) -> None:
        """Note that something changed from outside: whoever took may take again."""
        self.takers.clear()
        self.promised.clear()
        self.moved.clear()

    def pass_time(self, seconds: float) -> None:
        """Let time pass: pods leave whose grace is over, and are made again."""
        self.now += seconds
        for job in list(self.jobs.values()):
            for pod in list(job.pods.values()):
                if pod.uid in self.leaves_at and self.leaves_at[pod.uid] <= self.now:
                    del self.leaves_at[pod.uid]
                    del job.pods[pod.rank]
                    if pod.nominated_node:
                        job.kept_places[pod.rank] = pod.nominated_node
            self.make_pods(job)
            self.mark_start(job)
            if job.is_ended and not job.pods:
                del self.jobs[job.key]

    def act(self) -> Decision:
        """Decide once, judge the decision, and carry it out."""
        state = self.observe()
        decision = self.decide(state)
        self.counts["decisions"] += 1
        breaches = find_breaches(state, decision)
        if breaches:
            raise BrokenRule(
                "\n".join([*breaches, describe_decision(decision), describe_state(state)])
            )
        self.carry_out(decision)
        self.watch_for_livelock(decision)
        return decision

    def carry_out(self, decision: Decision) -> None:
        """Start what is bound and let go what is evicted."""
        for binding in decision.bindings:
            job = self.jobs[binding.gang]
            pod = next(pod for pod in job.pods.values() if pod.uid == binding.pod)
            job.pods[pod.rank] = replace(pod, node=binding.node, devices=binding.devices)
            self.counts["bindings"] += 1
        for eviction in decision.evictions:
            job = self.jobs[eviction.gang]
            if eviction.action is Action.CONSOLIDATE:
                self.moved.setdefault(job.key, job.count_running())
            else:
                self.moved.pop(job.key, None)
            pod = next(pod for pod in job.pods.values() if pod.uid == eviction.pod)
            self.remove_pod(job, pod)
            self.counts[eviction.action.value] += 1
        nominated = {each.pod: each.node for each in decision.nominations}
        for job in self.jobs.values():
            for rank, pod in job.pods.items():
                node = nominated.get(pod.uid, "")
                job.pods[rank] = replace(pod, nominated_node=node)
            self.mark_start(job)

    def watch_for_livelock(self, decision: Decision) -> None:
        """Refuse that a gang takes again from one that took from it, or more than it was promised.

        That it takes back once is counted: a gang that goes whole may leave its queue below its
        quota, which it then claims.
        """
        for taker, victim in list_takings(decision.evictions):
            turns = self.takers.setdefault(frozenset((taker, victim)), [])
            if turns[-1:] != [taker]:
                turns.append(taker)
                self.counts["taken back"] += len(turns) == 2
            if len(turns) > 2:
                raise BrokenRule(f"{taker} takes from {victim}, which took back what it had taken")
        for key in {taker for taker, _ in list_takings(decision.evictions)}:
            waiting = {pod.uid for pod in self.jobs[key].pods.values() if not pod.node}
            if waiting <= self.promised:
                raise BrokenRule(f"{key} was promised all it wants and takes more")
        self.promised |= {each.pod for each in decision.nominations}

    def settle(self, most: int | None = None) -> Decision:
        """Decide and let pods leave until nothing changes; return the last decision."""
        most = most or 4 * len(self.jobs) + sum(len(job.pods) for job in self.jobs.values()) + 10
        for number in range(most):
            decision = self.act()
            self.counts["longest"] = max(self.counts["longest"], number + 1)
            if decision.bindings or decision.evictions:
                continue
            if not self.leaves_at:
                self.look_after_moved_gangs()
                return decision
            self.pass_time(max(min(self.leaves_at.values()) - self.now, 0.0))
        story = describe_decision(decision) + "\n" + describe_state(self.observe())
        raise BrokenRule(f"no rest after {most} decisions\n{story}")

    def look_after_moved_gangs(self) -> None:
        """Count the gangs that consolidation moved and that did not come back."""
        for key, count in self.moved.items():
            self.counts["moved"] += 1
            self.counts["moved in vain"] += self.jobs[key].count_running() < count
        self.moved.clear()

    def lose_node(self, name: str) -> None:
        """Take a node away with all that runs on it."""
        del self.nodes[name]
        for job in self.jobs.values():
            for pod in list(job.pods.values()):
                if pod.node == name:
                    self.leaves_at.pop(pod.uid, None)
                    del job.pods[pod.rank]
                    self.counts["lost with nodes"] += 1
            self.make_pods(job)
            self.mark_start(job)
        self.change()


def count_evictions(counts: Counter[str]) -> int:
    """Return how many pods decisions evicted; those lost with nodes are counted apart."""
    return sum(counts[action.value] for action in Action)


def build_world(state: ClusterState, decide: Decider, grace: float = 5.0) -> World:
    """Return a world that begins with a state; all its jobs leave with the same grace."""
    world = World(
        {node.name: node for node in state.nodes},
        {queue.name: queue for queue in state.queues},
        decide,
        now=state.now,
    )
    for gang in state.gangs:
        world.jobs[gang.key] = Job(
            gang.key,
            gang.queue,
            [pod.shape for pod in gang.pods],
            len(gang.pods),
            gang.min_member,
            priority=gang.priority,
            preemptibility=gang.preemptibility,
            created_at=gang.created_at,
            preemption_delay=gang.preemption_delay,
            grace=grace,
            started_at=gang.started_at,
            stale_since=gang.stale_since,
            staleness_grace=gang.staleness_grace,
            # They stand for ranks that are gone.
            finished={-number for number in range(1, gang.succeeded + 1)},
            pods={pod.rank: pod for pod in gang.pods},
        )
        for pod in gang.pods:
            if pod.is_leaving:
                world.leaves_at[pod.uid] = state.now + grace
    return world
