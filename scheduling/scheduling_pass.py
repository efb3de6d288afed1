"""One pass of decisions: which gang goes next, whether it finds a place, who gives way to it.

A queue's turn is by fair share (`Queues.compute_turn`); in a queue the higher priority goes first,
then a gang that has already begun, then a whole gang before pods that only add to one, then the
older. A gang that finds no place is passed over, and smaller work behind it may start: as with KAI,
a large gang can wait for as long as smaller work keeps coming. Its remedy is a higher priority, or
a queue whose limit keeps the others small.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from scheduling.cluster_room import ClusterRoom, Fit, KeptPlace, Place
from scheduling.decision import Eviction, Nomination, Refusal
from scheduling.fair_share import compute_fair_shares
from scheduling.gangs import SURPLUS_PODS, Candidate, GangBook, PodSet, find_stage
from scheduling.queue_turns import QueueTurns
from scheduling.queues import Booking, NoQueue, Queues
from scheduling.refusals import (
    NO_QUEUE,
    NO_ROOM,
    NOT_READY,
    OVER_LIMIT,
    PIPELINED,
    describe_not_ready,
)
from scheduling.shapes import ShapeTable, count_shapes
from scheduling.shortages import ShortageReports
from scheduling.state import Amounts, Pod, PodShape
from scheduling.waiting_pods import WaitingPods

BindPods = Callable[[GangBook, Sequence[Place], bool], Refusal | None]
"""Starts pods, all or none; the flag says whether they count as non-preemptible.

Returns a refusal when it cannot.
"""

PlacementKey = tuple[str, bool, frozenset[tuple[PodShape, int]]]
"""What is equal for pods that get the same answer: queue, whether they count as non-preemptible,
and how many there are of each shape.
"""


@dataclass(slots=True)
class Outcome:
    """What a pass decided, bindings aside, which are made at once."""

    refusals: dict[str, Refusal | None] = field(default_factory=dict)
    """For each gang that was considered why pods still wait, or None."""
    nominations: list[Nomination] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    decide_again_at: float | None = None
    is_final: bool = True
    """Whether the next decision on the same would be to do nothing.

    It is not where a gang was refused that may take from one that starts just now.
    """


@dataclass(frozen=True, slots=True)
class PassState:
    """What a pass works on. `queues` is a fork: what is only planned is counted there."""

    now: float
    room: ClusterRoom
    queues: Queues
    shapes: ShapeTable
    bind_pods: BindPods


@dataclass(frozen=True, slots=True)
class StartedGang:
    """A gang of which pods start in a pass, and their places."""

    gang: GangBook
    places: list[Place] = field(default_factory=list)


class SchedulingPass:
    """Places gangs that wait.

    Room and usage only shrink while it does, so what was refused once need not be tried again.
    """

    def __init__(self, state: PassState) -> None:
        self.state = state
        self.outcome = Outcome()
        self.fair_shares = compute_fair_shares(state.queues, state.queues.capacity)
        self.refused: list[Candidate] = []
        """Candidates for which others might give way, in the order in which they were refused."""
        self.shortages = ShortageReports(state.room, state.shapes)
        self._promised: list[KeptPlace] = []
        """The places that were kept for pods of the gang that is placed now."""
        self._moved: list[tuple[GangBook, Sequence[Pod]]] = []
        """Gangs with the pods that leave and have a place elsewhere."""
        self._kept: set[str] = set()
        """Keys of those whose places are kept."""
        self._known_refusals: dict[PlacementKey, Refusal] = {}
        self._placed_uids: dict[str, set[str]] = {}
        """Uids of the pods that got a place in this pass, by the key of their gang."""
        self.started: dict[str, StartedGang] = {}
        """The gangs of which pods start in this pass, by their keys."""
        self._unbindable: set[str] = set()
        """Keys of the gangs whose pods found room and yet could not be started."""
        self._nominated: dict[str, GangBook] = {}
        self._leaving: dict[str, dict[str, int]] = {}
        """How many pods of whom are about to leave each node."""

    def place_gangs(self, gangs: Iterable[GangBook]) -> Generator[None, None, None]:
        """Place what can be placed, in steps."""
        state = self.state
        turns = QueueTurns(state.queues, self.fair_shares, self._sum_candidate)
        candidates = []
        for gang in gangs:
            yield
            candidate = self.find_candidate(gang)
            if candidate is None:
                continue
            try:
                state.queues.get_chain(gang.queue)
            except NoQueue as error:
                self.outcome.refusals[gang.key] = Refusal(NO_QUEUE, NO_QUEUE, str(error))
            else:
                candidates.append(candidate)
        others = [candidate for candidate in candidates if not candidate.gang.promised_nodes]
        promised = [candidate for candidate in candidates if candidate.gang.promised_nodes]
        for candidate in sorted(promised, key=lambda each: each.order):
            yield
            following = self._keep_promise(candidate)
            if following is not None:
                others.append(following)
        self._keep_moved_places()
        turns.fill(others)
        while (candidate := turns.pop()) is not None:
            yield
            if not self._is_known_refusal(candidate) and self.place_candidate(candidate):
                following = self.find_candidate(candidate.gang)
                if following is not None:
                    turns.push(following)
            turns.refresh(candidate.gang.queue)

    def _keep_promise(self, candidate: Candidate) -> Candidate | None:
        """Place a gang where it was nominated, before all others; return what it wants next."""
        gang = candidate.gang
        following: Candidate | None = candidate
        self._promised = [
            (gang.waiting[uid].shape, node) for uid, node in sorted(gang.promised_nodes.items())
        ]
        while following is not None and self._promised:
            if not self._place_promised(following):
                break
            following = self.find_candidate(gang)
        self._promised = []
        return following

    def _place_promised(self, candidate: Candidate) -> bool:
        """Start or nominate pods on the nodes where places were kept for them, and nowhere else:
        other nodes may be promised to other gangs.
        """
        state, gang = self.state, candidate.gang
        is_core = gang.is_core(candidate.stage)
        for pods in candidate.pod_sets:
            wanted = state.shapes.sum_charges(pods.counts)
            for at_once in (True, False):
                if at_once and gang.key in self._nominated:
                    continue
                if state.queues.find_refusal(
                    gang.queue, wanted, non_preemptible=is_core, at_once=at_once
                ):
                    continue
                fit = state.room.fit_pods(pods.list_pods(), at_once=at_once, only=self._promised)
                if not fit.is_complete:
                    continue
                if not at_once:
                    self.nominate(candidate, fit)
                return not at_once or self._bind(candidate, fit, is_core) is None
        return False

    def note_moved(self, gang: GangBook, pods: Sequence[Pod]) -> None:
        """Note pods that leave to be made again elsewhere: their places there are kept."""
        self._moved.append((gang, pods))

    def _keep_moved_places(self) -> None:
        """Nominate the pods that consolidation moves until others are made in their place.

        Else somebody else takes these places, the moved gang takes them back, and is moved again.
        """
        state = self.state
        for gang, pods in self._moved:
            amounts = state.shapes.sum_charges(count_shapes(pods))
            refusal = state.queues.find_refusal(
                gang.queue, amounts, non_preemptible=False, at_once=False
            )
            if refusal is not None:
                continue
            fit = state.room.fit_pods(
                pods, at_once=False, only=[(pod.shape, pod.nominated_node) for pod in pods]
            )
            if fit.is_complete:
                self._kept.add(gang.key)
                state.queues.count_booking(
                    Booking(gang.queue, amounts, placed=True, non_preemptible=False)
                )
                self.outcome.nominations += [
                    Nomination(place.pod.uid, gang.key, place.node) for place in fit.places
                ]

    def find_candidate(self, gang: GangBook) -> Candidate | None:
        """Return the next pods of a gang; None, with the refusal noted, when none can be tried."""
        refusals, placed_here = self.outcome.refusals, self._placed_uids.get(gang.key, set())
        waiting_count = len(gang.waiting) - len(placed_here)
        refusals.setdefault(gang.key, None)
        if waiting_count <= 0:
            return None
        if gang.fixed_refusal is not None:
            refusals[gang.key] = gang.fixed_refusal
            return None
        active = gang.active_count + len(placed_here)
        missing = gang.min_member - active
        if missing > waiting_count:
            missing -= gang.count_succeeded()
        if missing > waiting_count:
            refusals[gang.key] = _build_not_ready_refusal(gang)
            return None
        stage = find_stage(active, missing)
        if gang.sorted_waiting is None:
            gang.sorted_waiting = WaitingPods(gang.waiting.values())
        waiting = gang.sorted_waiting
        waiting.take_out(placed_here)
        if stage != SURPLUS_PODS:
            return Candidate(gang, stage, [PodSet(waiting, waiting.count_first(missing), missing)])
        heads = [PodSet(waiting, {pod.shape: 1}, 1, pod) for pod in waiting.list_heads()]
        return Candidate(gang, stage, heads) if heads else None

    def place_candidate(self, candidate: Candidate) -> bool:
        """Start or nominate the first set that finds a place; return whether one did.

        If none did, the first refusal stands.
        """
        refusals = []
        for pods in candidate.pod_sets:
            refusal = self._try_pods(candidate, pods)
            if refusal is None:
                return True
            refusals.append(refusal)
        self._note_refusal(candidate, refusals[0])
        return False

    def fit_later(self, candidate: Candidate, pods: PodSet) -> Fit | None:
        """Return places for pods among what is free later, by queue and room, or None."""
        state, gang = self.state, candidate.gang
        refusal = state.queues.find_refusal(
            gang.queue,
            state.shapes.sum_charges(pods.counts),
            non_preemptible=gang.is_core(candidate.stage),
            at_once=False,
        )
        if refusal is not None or state.room.is_too_small(pods.counts, at_once=False):
            return None
        fit = state.room.fit_pods(pods.list_pods(), at_once=False)
        return fit if fit.is_complete else None

    def nominate(self, candidate: Candidate, fit: Fit) -> None:
        """Keep the places of pods until others have left them."""
        gang = candidate.gang
        self.outcome.nominations += [
            Nomination(place.pod.uid, gang.key, place.node) for place in fit.places
        ]
        self._nominated[gang.key] = gang
        self._count_places(candidate, fit)
        text = self._describe_leaving(sorted({place.node for place in fit.places}))
        self.outcome.refusals[gang.key] = Refusal(PIPELINED, PIPELINED, text)

    def nominate_moved(self, gang: GangBook, place: Place) -> None:
        """Keep a place for a pod that has to move there."""
        self.outcome.nominations.append(Nomination(place.pod.uid, gang.key, place.node))

    def note_leaving(self, pods: Iterable[Pod], gangs: Mapping[str, GangBook]) -> None:
        """Note who leaves which node, for those who wait for it; `gangs` are by the pods' uids."""
        for pod in pods:
            names = self._leaving.setdefault(pod.node, {})
            name = gangs[pod.uid].name
            names[name] = names.get(name, 0) + 1

    def has_place(self, gang: GangBook) -> bool:
        """Return whether pods of a gang got a place in this pass."""
        return gang.key in self._placed_uids or gang.key in self._kept

    def decide_again(self, at: float) -> None:
        """Ask for another decision when time alone may have changed this one."""
        before = self.outcome.decide_again_at
        self.outcome.decide_again_at = at if before is None else min(at, before)

    def _describe_leaving(self, nodes: Sequence[str]) -> str:
        leaving: dict[str, int] = {}
        for node in nodes:
            for name, count in self._leaving.get(node, {}).items():
                leaving[name] = leaving.get(name, 0) + count
        where = f"{', '.join(nodes[:3])}{' and more' if len(nodes) > 3 else ''}"
        leavers = [
            f"{count} pod{'s' if count > 1 else ''} of {name}"
            for name, count in sorted(leaving.items())
        ]
        leavers = [*leavers[:3], "others"] if len(leavers) > 3 else leavers
        return f"Waiting for {' and '.join(leavers) or 'others'} to leave {where}"

    def finish(self) -> Outcome:
        """Return the outcome; the pass is over."""
        for gang in self._nominated.values():
            # The pods that only have a nomination wait again in the next pass.
            gang.sorted_waiting = None
        return self.outcome

    def _sum_candidate(self, candidate: Candidate) -> Amounts:
        return self.state.shapes.sum_charges(candidate.pod_sets[0].counts)

    def _note_refusal(self, candidate: Candidate, refusal: Refusal) -> None:
        before = self.outcome.refusals.get(candidate.gang.key)
        if before is None or before.reason != PIPELINED:
            self.outcome.refusals[candidate.gang.key] = refusal
        if refusal.reason in (NO_ROOM, OVER_LIMIT) and candidate.gang.key not in self._unbindable:
            self.refused.append(candidate)

    def _is_known_refusal(self, candidate: Candidate) -> bool:
        """Return whether equal pods were refused; then so is the candidate."""
        refusals = []
        for pods in candidate.pod_sets:
            refusal = self._known_refusals.get(_build_key(candidate, pods))
            if refusal is None:
                return False
            refusals.append(refusal)
        self._note_refusal(candidate, refusals[0])
        return True

    def _try_pods(self, candidate: Candidate, pods: PodSet) -> Refusal | None:
        """Check queue, node and room in this order; start or nominate the pods if all allow it.

        Returns the first refusal.
        """
        state, gang = self.state, candidate.gang
        is_core = gang.is_core(candidate.stage)
        wanted = state.shapes.sum_charges(pods.counts)
        refusal = state.queues.find_refusal(gang.queue, wanted, non_preemptible=is_core)
        if refusal is None:
            refusal = self.shortages.find_mismatch_refusal(pods.counts)
            if refusal is None:
                # Nobody of a gang starts before its minimum does: the rest is nominated, too.
                is_nominated = gang.key in self._nominated
                fit = None if is_nominated else self._fit_at_once(pods)
                if fit is not None and fit.is_complete:
                    return self._bind(candidate, fit, is_core)
                refusal = self.shortages.build_refusal(
                    pods.counts, partial(self._count_placed, pods, fit)
                )
        if state.room.has_leaving and refusal.reason in (NO_ROOM, OVER_LIMIT):
            later = self.fit_later(candidate, pods)
            if later is not None:
                self.nominate(candidate, later)
                return None
        self._known_refusals[_build_key(candidate, pods)] = refusal
        return refusal

    def _count_placed(self, pods: PodSet, fit: Fit | None) -> int:
        """Return how many of the pods find room; `fit` is the try, if there was one."""
        if fit is None:
            fit = self.state.room.fit_pods(pods.list_pods(), at_once=True)
            if fit.is_complete:
                self.state.room.undo_fit(fit, at_once=True)
        return len(fit.places)

    def _fit_at_once(self, pods: PodSet) -> Fit | None:
        room = self.state.room
        if room.is_too_small(pods.counts, at_once=True):
            return None
        return room.fit_pods(pods.list_pods(), at_once=True)

    def _bind(self, candidate: Candidate, fit: Fit, is_core: bool) -> Refusal | None:
        refusal = self.state.bind_pods(candidate.gang, fit.places, is_core)
        if refusal is None:
            gang = candidate.gang
            self.started.setdefault(gang.key, StartedGang(gang)).places.extend(fit.places)
            self._count_places(candidate, fit)
        else:
            self.state.room.undo_fit(fit, at_once=True)
            self._unbindable.add(candidate.gang.key)
        return refusal

    def _count_places(self, candidate: Candidate, fit: Fit) -> None:
        gang, state = candidate.gang, self.state
        placed_here = self._placed_uids.setdefault(gang.key, set())
        placed_here.update(place.pod.uid for place in fit.places)
        for place in fit.places if self._promised else ():
            self._promised.remove((place.pod.shape, place.node))
        amounts = state.shapes.sum_charges(_count_places_by_shape(fit))
        is_core = gang.is_core(candidate.stage)
        waiting = Booking(gang.queue, amounts, placed=False, non_preemptible=is_core)
        state.queues.count_booking(waiting, -1)
        placed = Booking(gang.queue, amounts, placed=True, non_preemptible=is_core)
        state.queues.count_booking(placed)


def _count_places_by_shape(fit: Fit) -> dict[PodShape, int]:
    counts: dict[PodShape, int] = {}
    for place in fit.places:
        counts[place.pod.shape] = counts.get(place.pod.shape, 0) + 1
    return counts


def _build_key(candidate: Candidate, pods: PodSet) -> PlacementKey:
    gang = candidate.gang
    return gang.queue, gang.is_core(candidate.stage), frozenset(pods.counts.items())


def _build_not_ready_refusal(gang: GangBook) -> Refusal:
    existing = len(gang.waiting) + len(gang.placed) + gang.other_count
    text = describe_not_ready(gang.min_member, existing, gang.gated_count)
    return Refusal(NOT_READY, NOT_READY, text)
