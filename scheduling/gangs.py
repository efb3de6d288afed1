"""Gangs during a decision: their pods by what they do, counted as they come and go."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import NamedTuple

from scheduling.decision import Refusal
from scheduling.shapes import ShapeCounts
from scheduling.state import DEFAULT_STALENESS_GRACE, Gang, Pod, PodShape, Preemptibility
from scheduling.waiting_pods import WaitingPods, rank_pod

BEGUN_GANG, WHOLE_GANG, SURPLUS_PODS = range(3)
"""What a gang's next pods are: the rest of its minimum, all of it, or more than that."""


def count_none() -> int:
    return 0


@dataclass(slots=True, eq=False)
class GangBook:
    """A gang with its unfinished pods.

    No step of a decision has to look at each pod of a large gang. The fields from `queue` on are
    those of `Gang`.
    """

    key: str
    arrival: int = 0
    """Orders gangs of one age before their keys do."""
    waiting: dict[str, Pod] = field(default_factory=dict)
    """The pods that may be placed, by uid."""
    promised_nodes: dict[str, str] = field(default_factory=dict)
    """Where places were kept for these before, by uid."""
    placed: dict[str, Pod] = field(default_factory=dict)
    """The pods that have a node, by uid, leaving ones too."""
    leaving_count: int = 0
    other_count: int = 0
    """How many more pods exist that may not be placed yet."""
    gated_count: int = 0
    """How many of these wait for a gate."""
    sorted_waiting: WaitingPods | None = None
    """The pods that wait, as a decision last needed them."""
    sorted_active: Sequence[Pod] | None = None
    """The pods that run and do not leave, as they were listed last."""
    fixed_refusal: Refusal | None = None
    """Why none of its pods can be placed, whatever room there is."""
    count_succeeded: Callable[[], int] = count_none
    queue: str = ""
    name: str = ""
    min_member: int = 1
    priority: int = 0
    preemptibility: Preemptibility = Preemptibility.PREEMPTIBLE
    created_at: float = 0.0
    started_at: float | None = None
    preemption_delay: float = 0.0
    is_exempt: bool = False
    stale_since: float | None = None
    staleness_grace: float = DEFAULT_STALENESS_GRACE

    @property
    def active_count(self) -> int:
        """How many pods run and do not leave."""
        return len(self.placed) - self.leaving_count

    @property
    def waits_for_minimum(self) -> bool:
        """Whether it waits for pods without which it does not work."""
        has_minimum = self.active_count + self.count_succeeded() >= self.min_member
        return bool(self.waiting) and not has_minimum

    @property
    def order(self) -> tuple[int, float, int, str]:
        """The order of gangs in a queue at one stage: priority, then age."""
        return -self.priority, self.created_at, self.arrival, self.key

    def copy(self) -> "GangBook":
        """Return the same gang, whose pods come and go on their own."""
        copy = GangBook(*_list_fields(self))
        copy.waiting, copy.placed = dict(self.waiting), dict(self.placed)
        copy.promised_nodes = dict(self.promised_nodes)
        copy.sorted_waiting = copy.sorted_active = None
        return copy

    def add_pod(self, pod: Pod) -> None:
        """Add a pod, or replace the one of its uid.

        `leaving_count`, `promised_nodes` and the sorted lists stay valid. A pod that leaves and has
        no node is not kept.
        """
        self.remove_pod(pod.uid)
        self.sorted_waiting = self.sorted_active = None
        if pod.node:
            self.placed[pod.uid] = pod
            self.leaving_count += pod.is_leaving
        elif not pod.is_leaving:
            self.waiting[pod.uid] = pod
            if pod.nominated_node:
                self.promised_nodes[pod.uid] = pod.nominated_node

    def remove_pod(self, uid: str) -> None:
        """Remove the pod of this uid, if there is one.

        `leaving_count`, `promised_nodes` and the sorted lists stay valid.
        """
        self.sorted_waiting = self.sorted_active = None
        self.waiting.pop(uid, None)
        self.promised_nodes.pop(uid, None)
        pod = self.placed.pop(uid, None)
        if pod is not None:
            self.leaving_count -= pod.is_leaving

    def list_active(self) -> Sequence[Pod]:
        """Return the pods that run and do not leave, by rank."""
        if self.sorted_active is None:
            self.sorted_active = sorted(
                (pod for pod in self.placed.values() if not pod.is_leaving), key=rank_pod
            )
        return self.sorted_active

    def list_core_uids(self) -> Collection[str]:
        """Return the pods that run and count as the guaranteed minimum of a semi-preemptible gang.

        They are the first by rank; () for other gangs.
        """
        if self.preemptibility is not Preemptibility.SEMI_PREEMPTIBLE:
            return ()
        return {pod.uid for pod in self.list_active()[: self.min_member]}

    def is_core(self, stage: int) -> bool:
        """Return whether pods of this stage count as non-preemptible."""
        if self.preemptibility is Preemptibility.SEMI_PREEMPTIBLE:
            return stage != SURPLUS_PODS
        return self.preemptibility is Preemptibility.NON_PREEMPTIBLE


_list_fields = attrgetter(*(each.name for each in fields(GangBook)))


class PodSet(NamedTuple):
    """Pods that are tried together: the first of those that wait."""

    waiting: WaitingPods
    counts: ShapeCounts
    size: int
    single: Pod | None = None
    """The one pod of a set of one, where it is not simply the first."""

    def list_pods(self) -> Sequence[Pod]:
        return self.waiting.list_first(self.size) if self.single is None else [self.single]


class Candidate(NamedTuple):
    """A gang's next pods, as the sets to try.

    One set of those it needs all together, or, beyond what it needs, one set for each shape.
    """

    gang: GangBook
    stage: int
    pod_sets: Sequence[PodSet]

    @property
    def order(self) -> tuple[int, int, float, int, str]:
        """The order within a queue: priority, stage, age, arrival, key."""
        gang = self.gang
        return -gang.priority, self.stage, gang.created_at, gang.arrival, gang.key


def is_stale(gang: GangBook) -> bool:
    """Return whether a gang runs with fewer pods than it needs together.

    As with KAI a gang of which some have succeeded is not, and only what is preemptible counts.
    """
    return (
        0 < gang.active_count < gang.min_member
        and gang.preemptibility is Preemptibility.PREEMPTIBLE
        and not gang.is_exempt
        and not gang.count_succeeded()
    )


def find_stage(active: int, missing: int) -> int:
    """Return what the next pods of a gang are, given how many run and miss to its minimum."""
    if missing <= 0:
        return SURPLUS_PODS
    return BEGUN_GANG if active else WHOLE_GANG


def build_gang_book(gang: Gang, unify: Callable[[PodShape], PodShape]) -> GangBook:
    """Build the book of a gang; `unify` finds one shape for all that are equal."""
    book = GangBook(
        gang.key,
        queue=gang.queue,
        name=gang.name or gang.key,
        min_member=gang.min_member,
        priority=gang.priority,
        preemptibility=gang.preemptibility,
        created_at=gang.created_at,
        started_at=gang.started_at,
        preemption_delay=gang.preemption_delay,
        is_exempt=gang.is_exempt,
        stale_since=gang.stale_since,
        staleness_grace=gang.staleness_grace,
        count_succeeded=lambda: gang.succeeded,
    )
    shape: PodShape | None = None
    for pod in gang.pods:
        if pod.shape is not shape:
            shape = unify(pod.shape)
            if shape is not pod.shape:
                pod = pod.with_shape(shape)
                shape = None
        if pod.node:
            book.placed[pod.uid] = pod
            book.leaving_count += pod.is_leaving
        elif not pod.is_leaving:
            book.waiting[pod.uid] = pod
            if pod.nominated_node:
                book.promised_nodes[pod.uid] = pod.nominated_node
    return book
