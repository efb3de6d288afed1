"""What pods hold and queues use, added up naively from a state and a decision."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from scheduling import (
    GPU,
    ClusterState,
    Decision,
    Gang,
    Node,
    Number,
    Pod,
    Preemptibility,
    Queue,
)

Sums = dict[str, Number]


def measure_pod(pod: Pod, node: Node | None) -> Sums:
    """Return what a pod counts in its queue, parts of devices as fractions of one."""
    sums: Sums = dict(pod.shape.amounts)
    share = pod.shape.share
    if share is not None:
        part = share.fraction
        if part is None:
            assert share.memory is not None
            size = node.device_memory if node is not None else None
            part = Fraction(share.memory, size) if size else Fraction(0)
        sums[GPU] = sums.get(GPU, 0) + share.devices * part
    return sums


def add_amounts(sums: Sums, amounts: Sums, sign: int = 1) -> None:
    """Add amounts to sums in place."""
    for resource, amount in amounts.items():
        sums[resource] = sums.get(resource, 0) + sign * amount


@dataclass(frozen=True)
class Placement:
    """A pod on a node, running, leaving, or put there by a decision."""

    pod: Pod
    gang: Gang
    node: Node


class Accounts:
    """A state with a decision applied to it, by plain sums without any memory of its own."""

    def __init__(self, state: ClusterState, decision: Decision | None = None) -> None:
        self.state = state
        self.decision = decision or Decision()
        self.nodes = {node.name: node for node in state.nodes}
        self.queues = {queue.name: queue for queue in state.queues}
        self.gangs = {gang.key: gang for gang in state.gangs}
        self.pods = {pod.uid: (pod, gang) for gang in state.gangs for pod in gang.pods}
        self.evicted = {each.pod for each in self.decision.evictions}

    def walk_up(self, name: str) -> Iterator[Queue]:
        """Return a queue and all above it, the lowest first."""
        while name in self.queues:
            yield self.queues[name]
            name = self.queues[name].parent

    def list_running(self) -> list[Placement]:
        """Return the pods that run and do not leave, before the decision."""
        return [
            Placement(pod, gang, self.nodes[pod.node])
            for pod, gang in self.pods.values()
            if pod.node in self.nodes and not pod.is_leaving
        ]

    def list_leaving(self) -> list[Placement]:
        """Return the pods that left before the decision and still hold what they have."""
        return [
            Placement(pod, gang, self.nodes[pod.node])
            for pod, gang in self.pods.values()
            if pod.node in self.nodes and pod.is_leaving
        ]

    def list_staying(self) -> list[Placement]:
        """Return the pods that run on after the decision."""
        return [each for each in self.list_running() if each.pod.uid not in self.evicted]

    def list_bound(self) -> list[Placement]:
        """Return the pods that the decision starts."""
        return [
            Placement(*self.pods[each.pod], self.nodes[each.node])
            for each in self.decision.bindings
        ]

    def list_nominated(self) -> list[Placement]:
        """Return the pods that the decision keeps a place for."""
        return [
            Placement(*self.pods[each.pod], self.nodes[each.node])
            for each in self.decision.nominations
        ]

    def sum_queues(self, placements: Iterable[Placement]) -> dict[str, Sums]:
        """Return what these pods use of each queue, at every level."""
        sums: dict[str, Sums] = defaultdict(dict)
        for each in placements:
            amounts = measure_pod(each.pod, each.node)
            for queue in self.walk_up(each.gang.queue):
                add_amounts(sums[queue.name], amounts)
        return sums

    def pick_guaranteed(self, placements: Iterable[Placement]) -> list[Placement]:
        """Return those of these pods that may not be taken back.

        The lowest ranks of a semi-preemptible gang are its minimum; pods that have succeeded do
        not make it smaller.
        """
        placements = list(placements)
        counts: dict[str, int] = defaultdict(int)
        chosen = []
        for each in sorted(placements, key=lambda one: (one.pod.rank, one.pod.uid)):
            gang = each.gang
            if gang.preemptibility is Preemptibility.PREEMPTIBLE:
                continue
            if gang.preemptibility is Preemptibility.SEMI_PREEMPTIBLE:
                if counts[gang.key] >= gang.min_member:
                    continue
                counts[gang.key] += 1
            chosen.append(each)
        return chosen


def needed_members(gang: Gang) -> int:
    """Return how many pods of a gang have to run for it to be whole."""
    return max(gang.min_member - gang.succeeded, 0)


def exceeds(sums: Sums, queue: Queue, *, of_limit: bool = False) -> list[str]:
    """Return the resources of which a queue uses more than its quota, or its limit."""
    over = []
    for resource, bound in queue.bounds.items():
        most = bound.limit if of_limit else bound.quota
        if most is not None and sums.get(resource, 0) > most:
            over.append(resource)
    return over
