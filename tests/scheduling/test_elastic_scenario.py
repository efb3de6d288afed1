"""The story of an elastic job: it fills the cluster, gives way, and comes back, by itself."""

from typing import Any

import pytest

from scheduling import Action, Decision, decide
from tests.scheduling.builders import make_gang, make_node, make_queue, make_state
from tests.scheduling.world import World, build_world

NODES = [make_node(f"n{number}", 1) for number in range(4)]


@pytest.fixture
def world() -> World:
    """Four nodes of a device, two projects with a quota of two, and a job of two to four pods."""
    queues = [
        make_queue("d", quota=4),
        make_queue("a", "d", quota=2),
        make_queue("b", "d", quota=2),
    ]
    world = build_world(
        make_state(NODES, queues, [make_gang("elastic", "a", pods=4, minimum=2)]), decide
    )
    world.settle()
    assert world.jobs["elastic"].count_running() == 4
    return world


def submit(world: World, key: str, queue: str, **others: Any) -> Decision:
    """Submit a job and return the decision that follows."""
    gang = make_gang(key, queue, created_at=world.now, **others)
    world.jobs[key] = build_world(make_state([], [], [gang]), decide).jobs[key]
    world.change()
    return world.act()


def end(world: World, key: str) -> None:
    """End a job, and let its pods leave."""
    world.jobs[key].is_ended = True
    world.make_pods(world.jobs[key])
    world.change()
    world.settle()


def test_it_gives_its_last_two_pods_for_a_project_within_its_quota(world: World) -> None:
    decision = submit(world, "other", "b", pods=2)
    ranks = {each.pod.split("-")[1] for each in decision.evictions}
    assert ranks == {"2", "3"}
    assert {each.action for each in decision.evictions} == {Action.RECLAIM}
    assert {each.for_gang for each in decision.evictions} == {"other"}
    assert {each.gang for each in decision.nominations} == {"other"}
    world.settle()
    assert world.jobs["elastic"].count_running() == 2
    assert world.jobs["other"].count_running() == 2


def test_it_never_stops_while_it_shrinks_and_is_back_when_the_other_ends(world: World) -> None:
    started = world.jobs["elastic"].started_at
    submit(world, "other", "b", pods=2)
    world.settle()
    end(world, "other")
    assert world.jobs["elastic"].count_running() == 4
    assert world.jobs["elastic"].started_at == started
    assert world.counts["reclaim"] == 2


def test_it_gives_one_pod_for_one(world: World) -> None:
    decision = submit(world, "other", "b")
    assert len(decision.evictions) == 1
    world.settle()
    assert world.jobs["elastic"].count_running() == 3


def test_it_keeps_its_minimum_where_the_other_is_elastic_too(world: World) -> None:
    submit(world, "other", "b", pods=4, minimum=1)
    world.settle()
    assert world.jobs["elastic"].count_running() == 2
    assert world.jobs["other"].count_running() == 2


def test_it_loses_nothing_to_a_gang_that_is_too_large_for_its_quota(world: World) -> None:
    decision = submit(world, "other", "b", pods=3)
    assert not decision.evictions
    assert "other" in (decision.refusals or {})


def test_a_job_that_vanishes_before_it_started_costs_no_more_pods(world: World) -> None:
    submit(world, "other", "b", pods=2)
    end(world, "other")
    assert world.jobs["elastic"].count_running() == 4
    assert world.counts["reclaim"] == 2


def test_what_leaves_is_not_asked_to_leave_again(world: World) -> None:
    submit(world, "other", "b", pods=2)
    world.pass_time(1)
    decision = world.act()
    assert not decision.evictions
    assert {each.gang for each in decision.nominations} == {"other"}


def test_a_lost_node_is_no_eviction_and_the_job_runs_on_with_three(world: World) -> None:
    world.lose_node("n3")
    world.settle()
    assert world.jobs["elastic"].count_running() == 3
    assert world.counts["lost with nodes"] == 1
    assert not any(world.counts[action.value] for action in Action)
    world.nodes["n3"] = NODES[3]
    world.change()
    world.settle()
    assert world.jobs["elastic"].count_running() == 4
