"""Which gangs find no room however much ends: in the empty cluster, or in what is left of one."""

from collections.abc import Collection

from scheduling.cluster_room import ClusterRoom
from scheduling.deciding import book_gang
from scheduling.gangs import GangBook, PodSet
from scheduling.queues import Queues
from scheduling.scheduling_pass import PassState, SchedulingPass
from scheduling.state import PodShape
from simulation.world import World


def find_never(world: World) -> Collection[str]:
    """Return the keys of gangs that would not start in the empty cluster, in an idle queue."""
    queues = Queues()
    queues.capacity = world.queues.capacity
    queues.replace_queues(world.state.queues)
    room = ClusterRoom(world.state.nodes, world.shapes)
    scheduling = SchedulingPass(
        PassState(world.state.now, room, queues, world.shapes, lambda gang, places, is_core: None)
    )
    lone_gangs = LoneGangs(scheduling)
    never = set()
    for book in world.books:
        if not book.waits_for_minimum:
            continue
        if book.placed:
            # What it holds itself is not free for the rest of it, whatever else ends.
            is_possible = _fits_beside_itself(scheduling, book)
        else:
            is_possible = lone_gangs.may_start(book)
        if not is_possible:
            never.add(book.key)
    return never


def _fits_beside_itself(scheduling: SchedulingPass, book: GangBook) -> bool:
    """Return whether the rest of a gang finds room beside its pods that have a node."""
    state, placed = scheduling.state, list(book.placed.values())
    for pod in placed:
        state.room.add_pod(pod)
    book_gang(state.queues, state.shapes, book)
    is_possible = LoneGangs(scheduling).may_start(book)
    book_gang(state.queues, state.shapes, book, -1)
    for pod in placed:
        state.room.remove_pod(pod)
    return is_possible


class LoneGangs:
    """Answers whether single gangs find room while all else stays as it is."""

    def __init__(self, scheduling: SchedulingPass) -> None:
        self._scheduling = scheduling
        self._fits: dict[frozenset[tuple[PodShape, int]], bool] = {}
        """Whether so many pods of these shapes find room."""

    def may_start(self, book: GangBook) -> bool:
        """Return whether the minimum of a gang finds room and is allowed; all stays as it is."""
        queues, shapes = self._scheduling.state.queues, self._scheduling.state.shapes
        candidate = self._scheduling.find_candidate(book)
        if candidate is None or not queues.is_usable(book.queue):
            return False
        is_core = book.is_core(candidate.stage)
        for pods in candidate.pod_sets:
            wanted = shapes.sum_charges(pods.counts)
            refusal = queues.find_refusal(book.queue, wanted, non_preemptible=is_core)
            if refusal is None and self._find_room(pods):
                return True
        return False

    def _find_room(self, pods: PodSet) -> bool:
        key = frozenset(pods.counts.items())
        if key not in self._fits:
            room = self._scheduling.state.room
            fit = room.fit_pods(pods.list_pods(), at_once=True)
            if fit.is_complete:
                room.undo_fit(fit, at_once=True)
            self._fits[key] = fit.is_complete
        return self._fits[key]
