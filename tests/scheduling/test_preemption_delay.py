"""What a gang says that may not take from others yet (KAI:docs/preemption-delay/README.md)."""

from typing import Any

import pytest

from scheduling import ClusterState, Gang, decide
from scheduling.refusals import describe_delay
from tests.scheduling.builders import NOW, make_gang, make_node, make_queue, make_state
from tests.scheduling.judge import find_breaches

WITHIN_DELAY = "PreemptionDelayNotElapsed"
TEXT = "Workload is within its preemption delay window (1m30s) and may not trigger evictions"


def make_delayed_gang(queue: str = "b", gpus: int = 1, **others: Any) -> Gang:
    """Return a gang that waits and may take from others in 80 s."""
    given = {"created_at": NOW - 10, "preemption_delay": 90, **others}
    return make_gang("mine", queue, gpus, **given)


def make_full_state(*gangs: Gang, quota: int = 2, gpus: int = 2) -> ClusterState:
    """Return a node without room: queue a is over its quota, b may have more."""
    queues = [make_queue("a", quota=0), make_queue("b", quota=quota)]
    return make_state([make_node("n", gpus)], queues, gangs)


def make_scattered_state(*gangs: Gang) -> ClusterState:
    """Return two nodes with one device free on each."""
    train = [make_gang(f"train-{name}", "a", on=[name]) for name in ("m", "n")]
    queues = [make_queue("a", quota=4)]
    return make_state([make_node("m", 2), make_node("n", 2)], queues, [*train, *gangs])


@pytest.mark.parametrize(
    "state",
    [
        make_full_state(make_gang("train", "a", on=["n", "n"]), make_delayed_gang()),
        make_full_state(
            make_gang("train", "b", on=["n", "n"]), make_delayed_gang(priority=75), quota=2
        ),
        make_scattered_state(make_delayed_gang("a", 2)),
    ],
    ids=["reclaim", "preempt", "consolidate"],
)
def test_a_gang_that_would_take_from_others_says_until_when_it_waits(state: ClusterState) -> None:
    decision = decide(state)
    assert find_breaches(state, decision) == []
    assert not decision.evictions
    assert not decision.nominations
    refusal = (decision.refusals or {})["mine"]
    assert (refusal.reason, refusal.message) == (WITHIN_DELAY, TEXT)
    assert refusal.ends_at == NOW + 80
    assert decision.decide_again_at == NOW + 80


@pytest.mark.parametrize(
    "gang",
    [
        make_gang("build", "b", on=["n", "n"], priority=100),
        make_gang("equal", "b", on=["n", "n"]),
        make_gang("plain", "a", on=["n", "n"], is_exempt=True),
    ],
    ids=["non-preemptible", "no lower priority", "of another scheduler"],
)
def test_a_gang_to_which_nobody_will_give_way_says_what_it_lacks(gang: Gang) -> None:
    decision = decide(make_full_state(gang, make_delayed_gang()))
    assert (decision.refusals or {})["mine"].reason != WITHIN_DELAY


def test_a_delay_that_never_ends_says_what_is_lacking() -> None:
    train = make_gang("train", "a", on=["n", "n"])
    decision = decide(make_full_state(train, make_delayed_gang(preemption_delay=10.0**12)))
    assert not decision.evictions
    assert (decision.refusals or {})["mine"].reason != WITHIN_DELAY


def test_what_a_delayed_gang_would_take_stays_for_those_who_may_take_now() -> None:
    train = make_gang("train", "a", on=["n", "n"], minimum=1)
    other = make_gang("other", "b", created_at=NOW - 5)
    state = make_full_state(train, make_delayed_gang(), other)
    decision = decide(state)
    assert find_breaches(state, decision) == []
    assert [each.for_gang for each in decision.evictions] == ["other"]
    assert [each.gang for each in decision.nominations] == ["other"]
    assert (decision.refusals or {})["mine"].reason == WITHIN_DELAY


def test_equal_gangs_within_their_delays_all_say_so() -> None:
    train = make_gang("train", "a", on=["n", "n"], minimum=1)
    gangs = [
        make_gang(f"mine-{number}", "b", created_at=NOW - 10, preemption_delay=90)
        for number in range(5)
    ]
    refusals = decide(make_full_state(train, *gangs)).refusals or {}
    assert {refusals[gang.key].message for gang in gangs} == {TEXT}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.5, "1.5s"), (45, "45s"), (300, "5m0s"), (5400, "1h30m0s"), (100_000, "27h46m40s")],
)
def test_a_delay_is_written_as_kai_writes_it(seconds: float, text: str) -> None:
    assert f"({text})" in describe_delay(seconds)
