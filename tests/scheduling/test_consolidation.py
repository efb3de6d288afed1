"""Who is moved for others comes to rest, and is not moved again and again for the same."""

from dataclasses import replace
from fractions import Fraction

from scheduling import Action, ClusterState, decide
from tests.scheduling.builders import make_gang, make_node, make_queue, make_shape, make_state
from tests.scheduling.world import build_world

QUEUES = [make_queue("a", quota=None), make_queue("b", quota=None)]
HALF = make_shape(part=Fraction(1, 2))


def scatter(state: ClusterState, key: str, devices: list[int]) -> ClusterState:
    """Return the state with the pods of a gang on these devices of their node."""
    gangs = [
        gang
        if gang.key != key
        else replace(
            gang,
            pods=[
                replace(pod, devices=(index,))
                for pod, index in zip(gang.pods, devices, strict=True)
            ],
        )
        for gang in state.gangs
    ]
    return replace(state, gangs=gangs)


def test_parts_of_devices_that_fit_in_one_order_only_are_not_moved() -> None:
    """Placed first, the halves would fill two devices again, and two parts find one."""
    halves = make_gang("halves", "a", on=["n"] * 4, minimum=3, shape=HALF, priority=75)
    thirds = make_gang("thirds", "b", shape=make_shape(part=Fraction(1, 3), devices=2))
    world = build_world(make_state([make_node("n", 3)], QUEUES, [halves, thirds]), decide)
    world.settle()
    assert world.counts[Action.CONSOLIDATE.value] == 0


def test_parts_of_devices_that_fit_in_any_order_are_moved_once() -> None:
    halves = make_gang("halves", "a", on=["n"] * 2, minimum=1, shape=HALF, priority=75)
    state = make_state([make_node("n", 2)], QUEUES, [halves, make_gang("whole", "b")])
    world = build_world(scatter(state, "halves", [0, 1]), decide)
    world.settle()
    assert world.counts[Action.CONSOLIDATE.value] == 1
    assert world.jobs["whole"].count_running() == 1
    assert world.jobs["halves"].count_running() == 2
