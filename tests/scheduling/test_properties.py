"""What holds for every single decision: it is a function of the state, and of nothing else."""

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from scheduling import ClusterState, Decision, decide
from tests.scheduling.builders import NOW, make_gang, make_node, make_queue, make_state
from tests.scheduling.descriptions import describe_decision
from tests.scheduling.histories import History, Setting, scenes, steps

HOW: Any = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "phases": [Phase.explicit, Phase.generate, Phase.shrink],
    "database": None,
    "derandomize": True,
    "max_examples": 60,
}
Steps = list[tuple[str, int, int, int]]


def reach_state(setting: Setting, drawn: Steps) -> ClusterState:
    """Return the state in which a history leaves a cluster, before it comes to rest."""
    history = History(setting, decide)
    history.take_steps(drawn)
    return history.world.observe()


def order_freely(decision: Decision) -> tuple[object, ...]:
    """Return a decision without the order in which its parts are told."""
    return (
        sorted((each.pod, each.node, each.devices) for each in decision.bindings),
        sorted((each.pod, each.node) for each in decision.nominations),
        sorted((each.pod, each.action.value, each.for_gang) for each in decision.evictions),
        sorted(decision.refusals or {}),
        decision.decide_again_at,
    )


@settings(**HOW)
@given(setting=scenes, drawn=steps)
def test_the_same_state_gets_the_same_answer_and_stays_as_it_was(
    setting: Setting, drawn: Steps
) -> None:
    state = reach_state(setting, drawn)
    before = repr(state)
    first = decide(state)
    assert repr(state) == before
    assert repr(decide(state)) == repr(first)
    assert repr(state) == before


@settings(**HOW)
@given(setting=scenes, drawn=steps, random=st.randoms(use_true_random=False))
def test_the_order_in_which_a_state_is_told_changes_nothing(
    setting: Setting, drawn: Steps, random: Any
) -> None:
    state = reach_state(setting, drawn)
    gangs = [replace(gang, pods=random.sample(gang.pods, len(gang.pods))) for gang in state.gangs]
    shuffled = ClusterState(
        state.now,
        state.nodes,
        random.sample(state.queues, len(state.queues)),
        random.sample(gangs, len(gangs)),
    )
    first, second = decide(state), decide(shuffled)
    assert order_freely(first) == order_freely(second), (
        describe_decision(first) + "\n\n" + describe_decision(second)
    )


@settings(**HOW)
@given(setting=scenes, drawn=steps, parts=st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_until_it_says_so_time_alone_changes_no_decision(
    setting: Setting, drawn: Steps, parts: list[float]
) -> None:
    state = reach_state(setting, [*drawn, ("come_to_rest", 0, 0, 0)])
    decision = decide(state)
    again = decision.decide_again_at
    assert again is None or again > state.now
    last = state.now + 10_000 if again is None else again
    for part in parts:
        moment = state.now + part * (last - state.now)
        if again is None or moment < again:
            later = decide(replace(state, now=moment))
            assert order_freely(later) == order_freely(decision)


@settings(**HOW)
@given(
    free=st.integers(0, 6),
    ages=st.lists(st.integers(0, 20), min_size=1, max_size=8),
    queues=st.integers(1, 3),
)
def test_of_equals_the_older_start_first(free: int, ages: list[int], queues: int) -> None:
    gangs = [
        make_gang(f"g{n}", f"q{n % queues}", created_at=NOW - age) for n, age in enumerate(ages)
    ]
    names = [f"q{n}" for n in range(queues)]
    state = make_state([make_node("n", free)], [make_queue(name) for name in names], gangs)
    started = {each.gang for each in decide(state).bindings}
    assert len(started) == min(free, len(gangs))
    for name in names:
        inside = [gang for gang in gangs if gang.queue == name]
        oldest = sorted(inside, key=lambda gang: (gang.created_at, gang.key))
        count = sum(1 for gang in inside if gang.key in started)
        assert {gang.key for gang in oldest[:count]} == {
            gang.key for gang in inside if gang.key in started
        }


@settings(**HOW)
@given(keys=st.permutations(["a", "b", "c", "d"]), free=st.integers(1, 4))
def test_names_of_gangs_of_different_age_do_not_matter(keys: list[str], free: int) -> None:
    gangs = [make_gang(key, "q", created_at=NOW - 10 + n) for n, key in enumerate(keys)]
    state = make_state([make_node("n", free)], [make_queue("q", quota=4)], gangs)
    assert {each.gang for each in decide(state).bindings} == set(keys[:free])


def test_an_empty_cluster_gets_an_empty_decision() -> None:
    decision = decide(ClusterState(NOW, [], [], []))
    assert order_freely(decision) == ([], [], [], [], None)


def test_every_gang_of_a_cluster_without_nodes_hears_why_it_waits() -> None:
    gangs = [make_gang("one", "q"), make_gang("lost", "nowhere"), make_gang("top", "d")]
    queues = [make_queue("d", quota=1), make_queue("q", "d", quota=1)]
    decision = decide(make_state([], queues, gangs))
    refusals = decision.refusals or {}
    assert set(refusals) == {"one", "lost", "top"}
    assert "nowhere" in refusals["lost"].message
    assert "leaf" in refusals["top"].message
