"""Whether a decision is final when something starts before others that are still refused."""

from collections.abc import Sequence

import pytest

from scheduling import Gang, Node
from scheduling.deciding import book_state, run_pass
from scheduling.scheduling_pass import Outcome, PassState, SchedulingPass
from tests.scheduling.builders import NOW, make_gang, make_node, make_queue, make_state

ONE_NODE = (make_node("n1", 8),)
TWO_NODES = (make_node("n1", 8), make_node("n2", 8))
QUEUES = [make_queue("claims", quota=200), make_queue("keeps", quota=1), make_queue("gives")]


def decide_once(nodes: Sequence[Node], gangs: Sequence[Gang]) -> Outcome:
    booked = book_state(make_state(nodes, QUEUES, gangs))
    scheduling = SchedulingPass(
        PassState(NOW, booked.room, booked.queues, booked.shapes, lambda gang, places, core: None)
    )
    running = [gang for gang in booked.gangs if gang.placed]
    for _ in run_pass(scheduling, booked.gangs, running):
        pass
    assert "starts" in scheduling.started
    return scheduling.finish()


@pytest.mark.parametrize("queue", ["gives", "claims"])
@pytest.mark.parametrize(
    ("nodes", "gpus", "pods"), [(ONE_NODE, 1, 100), (TWO_NODES, 16, 1), (TWO_NODES, 5, 3)]
)
def test_what_can_never_start_leaves_a_decision_final(
    nodes: Sequence[Node], gpus: int, pods: int, queue: str
) -> None:
    never = make_gang("never", "claims", gpus, pods=pods, priority=90)
    outcome = decide_once(nodes, [never, make_gang("starts", queue)])
    assert outcome.is_final
    assert not outcome.evictions


def test_what_nobody_has_to_give_up_leaves_a_decision_final() -> None:
    firm = make_gang("firm", "claims", on=["n1"] * 4, priority=100)
    large = make_gang("large", "claims", 8, priority=90)
    assert decide_once(ONE_NODE, [firm, large, make_gang("starts", "gives")]).is_final


def test_what_starts_within_its_quota_is_claimed_by_no_other_queue() -> None:
    low = make_gang("low", "gives", on=["n1"])
    large = make_gang("large", "claims", 8)
    assert decide_once(ONE_NODE, [low, large, make_gang("starts", "keeps")]).is_final


@pytest.mark.parametrize("queue", ["gives", "claims"])
def test_what_starts_and_may_have_to_give_way_at_once_is_decided_again(queue: str) -> None:
    low = make_gang("low", queue, on=["n1"])
    large = make_gang("large", "claims", 8, priority=90)
    outcome = decide_once(ONE_NODE, [low, large, make_gang("starts", queue)])
    assert not outcome.is_final
    assert not outcome.evictions
