"""One decision about a whole cluster, given as plain values."""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass

from scheduling.amounts import add_amounts
from scheduling.cluster_room import ClusterRoom, Place
from scheduling.decision import Binding, Decision, Refusal
from scheduling.devices import WHOLE_DEVICE
from scheduling.gangs import GangBook, build_gang_book
from scheduling.giving_way import GivingWay
from scheduling.queues import Booking, Queues
from scheduling.scheduling_pass import PassState, SchedulingPass
from scheduling.shapes import ShapeNames, ShapeTable, count_shapes, find_device_memory
from scheduling.state import GPU, Amounts, ClusterState, Node, Pod, PodShape, Preemptibility


@dataclass(frozen=True, slots=True)
class BookedState:
    """A state whose pods are counted on their nodes and in their queues."""

    gangs: Sequence[GangBook]
    shapes: ShapeTable
    queues: Queues
    room: ClusterRoom


def decide(state: ClusterState) -> Decision:
    """Decide who starts where, who gives way to whom, and say why the others wait."""
    booked = book_state(state)
    gangs = booked.gangs
    bindings: list[Binding] = []

    def bind_pods(gang: GangBook, places: Sequence[Place], is_core: bool) -> Refusal | None:
        bindings.extend(
            Binding(place.pod.uid, gang.key, place.node, place.devices) for place in places
        )
        return None

    scheduling = SchedulingPass(
        PassState(state.now, booked.room, booked.queues, booked.shapes, bind_pods)
    )
    running = [gang for gang in gangs if gang.placed]
    for _ in run_pass(scheduling, gangs, running):
        pass
    outcome = scheduling.finish()
    return Decision(
        bindings,
        outcome.nominations,
        outcome.evictions,
        {key: refusal for key, refusal in outcome.refusals.items() if refusal is not None},
        outcome.decide_again_at,
    )


def book_state(
    state: ClusterState,
    whole_device: int = WHOLE_DEVICE,
    unify: Callable[[PodShape], PodShape] | None = None,
) -> BookedState:
    """Count all pods of a state on their nodes and in their queues.

    `whole_device` is what one device counts for (`ShapeTable`); bounds of queues are in its unit.
    `unify` finds one shape for all that are equal, where others are to share these shapes.
    """
    unify = unify or ShapeNames().unify
    gangs = [build_gang_book(gang, unify) for gang in state.gangs]
    shapes = ShapeTable(find_device_memory(state.nodes), whole_device)
    queues = Queues()
    capacity = sum_capacity(state.nodes)
    queues.capacity = dict(capacity) | {GPU: capacity.get(GPU, 0) * whole_device}
    queues.replace_queues(state.queues)
    room = ClusterRoom(state.nodes, shapes)
    for gang in gangs:
        book_gang(queues, shapes, gang)
        for pod in gang.placed.values():
            room.add_pod(pod)
    return BookedState(gangs, shapes, queues, room)


def run_pass(
    scheduling: SchedulingPass, waiting: Iterable[GangBook], running: Iterable[GangBook]
) -> Generator[None, None, None]:
    """Take all actions in KAI's order, in steps of milliseconds; `finish` has the outcome."""
    running = list(running)
    for gang in running:
        if gang.leaving_count:
            pods = [pod for pod in gang.placed.values() if pod.is_leaving]
            scheduling.note_leaving(pods, dict.fromkeys((pod.uid for pod in pods), gang))
            moved = [pod for pod in pods if pod.nominated_node]
            if moved:
                scheduling.note_moved(gang, moved)
    yield from scheduling.place_gangs(waiting)
    giving_way = GivingWay(scheduling, running)
    yield from giving_way.make_room()
    yield from giving_way.note_late_claims()
    yield from giving_way.explain_delays()
    yield from giving_way.evict_stale_gangs()


def sum_capacity(nodes: Iterable[Node]) -> Amounts:
    """Return what all nodes have together."""
    total: Amounts = {}
    for node in nodes:
        total = add_amounts(total, node.allocatable)
    return total


def book_gang(queues: Queues, shapes: ShapeTable, gang: GangBook, sign: int = 1) -> None:
    """Count all pods of a gang in its queues, or with `sign` -1 no longer."""
    active = gang.list_active()
    core_count = {
        Preemptibility.PREEMPTIBLE: 0,
        Preemptibility.SEMI_PREEMPTIBLE: gang.min_member,
        Preemptibility.NON_PREEMPTIBLE: len(active),
    }[gang.preemptibility]
    leaving = [pod for pod in gang.placed.values() if pod.is_leaving]
    parts: list[tuple[Iterable[Pod], bool, bool, bool]] = [
        (gang.waiting.values(), False, False, False),
        (active[:core_count], True, True, False),
        (active[core_count:], True, False, False),
        (leaving, True, False, True),
    ]
    for pods, placed, is_core, is_leaving in parts:
        amounts = shapes.sum_charges(count_shapes(pods))
        if amounts:
            booking = Booking(gang.queue, amounts, placed, is_core, is_leaving)
            queues.count_booking(booking, sign)
