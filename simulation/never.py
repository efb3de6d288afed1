"""Which gangs find no room however much ends: in the empty cluster, or in what is left of one."""

from collections.abc import Collection

from scheduling.cluster_room import ClusterRoom
from scheduling.deciding import book_gang
from scheduling.gangs import GangBook
from scheduling.queues import Queues
from scheduling.scheduling_pass import PassState, SchedulingPass
from simulation.lines import LineKey, build_line_key
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
    answers: dict[LineKey, bool] = {}
    never = set()
    for book in world.books:
        if not book.waits_for_minimum:
            continue
        if book.placed:
            # What it holds itself is not free for the rest of it, whatever else ends.
            is_possible = _fits_beside_itself(scheduling, book)
        else:
            key = build_line_key(book)
            if key not in answers:
                answers[key] = fits_alone(scheduling, book)
            is_possible = answers[key]
        if not is_possible:
            never.add(book.key)
    return never


def _fits_beside_itself(scheduling: SchedulingPass, book: GangBook) -> bool:
    """Return whether the rest of a gang finds room beside its pods that have a node."""
    state, placed = scheduling.state, list(book.placed.values())
    for pod in placed:
        state.room.add_pod(pod)
    book_gang(state.queues, state.shapes, book)
    is_possible = fits_alone(scheduling, book)
    book_gang(state.queues, state.shapes, book, -1)
    for pod in placed:
        state.room.remove_pod(pod)
    return is_possible


def fits_alone(scheduling: SchedulingPass, book: GangBook) -> bool:
    """Return whether the minimum of a gang finds room and is allowed, and leave all as it is."""
    state = scheduling.state
    candidate = scheduling.find_candidate(book)
    if candidate is None or not state.queues.is_usable(book.queue):
        return False
    for pods in candidate.pod_sets:
        wanted = state.shapes.sum_charges(pods.counts)
        is_core = book.is_core(candidate.stage)
        if state.queues.find_refusal(book.queue, wanted, non_preemptible=is_core):
            continue
        fit = state.room.fit_pods(pods.list_pods(), at_once=True)
        if fit.is_complete:
            state.room.undo_fit(fit, at_once=True)
            return True
    return False
