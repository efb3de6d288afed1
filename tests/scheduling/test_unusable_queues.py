"""Work that runs in a queue that cannot be used any more: it runs on, and stops nobody else."""

import pytest

from scheduling import ClusterState, Queue, decide
from tests.scheduling.builders import make_gang, make_node, make_queue, make_state

TAKER = make_queue("b", quota=2)
"""The queue of a gang that claims its quota."""


def make_full_state(*queues: Queue) -> ClusterState:
    """Return a full node of queue a, and a gang of queue b that waits."""
    gangs = [
        make_gang("running", "a", on=["n", "n"], pods=3, minimum=1),
        make_gang("claiming", "b"),
        make_gang("idle", "b", 0),
    ]
    return make_state([make_node("n", 2)], [TAKER, *queues], gangs)


@pytest.mark.parametrize(
    "queues",
    [
        [],
        [make_queue("a"), make_queue("below", "a")],
        [make_queue("a", "gone")],
        [make_queue("a", "top"), make_queue("top", "a")],
        [make_queue("a", "a")],
    ],
    ids=["no queue", "no leaf", "no parent", "a ring", "its own parent"],
)
def test_nothing_is_taken_from_a_queue_that_cannot_be_used(queues: list[Queue]) -> None:
    decision = decide(make_full_state(*queues))
    assert [each.gang for each in decision.bindings] == ["idle"]
    assert not decision.evictions
    refusals = decision.refusals or {}
    assert refusals["running"].reason == "QueueDoesNotExist"
    assert "nvidia.com/gpu" in refusals["claiming"].message


def test_something_is_taken_where_the_queue_can_be_used() -> None:
    decision = decide(make_full_state(make_queue("a")))
    assert [each.for_gang for each in decision.evictions] == ["claiming"]


def test_nothing_is_moved_that_would_start_nowhere_else() -> None:
    scattered = [make_gang(f"train-{name}", "gone", on=[name]) for name in ("m", "n")]
    nodes = [make_node("m", 2), make_node("n", 2)]
    gangs = [*scattered, make_gang("whole", "b", 2)]
    decision = decide(make_state(nodes, [TAKER], gangs))
    assert not decision.evictions
    assert not decision.nominations
