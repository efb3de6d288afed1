"""The judge finds what is wrong: each rule is broken on purpose once."""

from dataclasses import replace
from typing import Any

import pytest

from scheduling import (
    Action,
    Binding,
    ClusterState,
    Decision,
    Eviction,
    Gang,
    Nomination,
    Preemptibility,
    Refusal,
)
from tests.scheduling import naive
from tests.scheduling.builders import NOW, make_gang, make_node, make_queue, make_state
from tests.scheduling.judge import find_breaches
from tests.scheduling.judge_rest import RestingWorld

WAIT = Refusal("Unschedulable", "room", "there is no room")


def make_case(*gangs: Gang, **bounds: int) -> ClusterState:
    """Return two nodes of two devices and two queues, `a` with these bounds."""
    given: dict[str, Any] = {"quota": 4, **bounds}
    queues = [make_queue("a", **given), make_queue("b", quota=1)]
    return make_state([make_node("n", 2), make_node("m", 2)], queues, gangs)


def evict(pod: str, action: Action, taker: str) -> Eviction:
    """Return an eviction of a pod of the gang that its name begins with."""
    return Eviction(pod, pod.partition("-")[0], action, taker)


def make_swap(action: Action, **victim: Any) -> tuple[ClusterState, Decision]:
    """Return a state with a victim of two pods and a decision that takes all of it."""
    given: dict[str, Any] = {"queue": "a", "on": ["n", "n"], **victim}
    taker = make_gang("taker", "b", priority=75)
    state = make_case(make_gang("victim", **given), taker)
    evictions = [evict(f"victim-{rank}", action, "taker") for rank in (0, 1)]
    return state, Decision([], [Nomination("taker-0", "taker", "n")], evictions, {})


OVERFULL = make_case(make_gang("one", "a", on=["n"]), make_gang("two", "a", 2))
TWICE = make_case(make_gang("one", "a"))
PAIR = make_case(make_gang("pair", "a", pods=2))
LIMITED = make_case(make_gang("pair", "a", pods=2), limit=1)
BUILD = make_case(make_gang("build", "a", pods=2, priority=100), quota=1)
ELASTIC = make_case(
    make_gang("victim", "a", on=["n", "n", "m"], minimum=2), make_gang("taker", "b", pods=2)
)
DELAYED = make_case(
    make_gang("victim", "a", on=["n"]),
    make_gang("taker", "b", preemption_delay=60, created_at=NOW),
    quota=0,
)


def nominate(*pods: str) -> list[Nomination]:
    """Return nominations for node m."""
    return [Nomination(pod, pod.partition("-")[0], "m") for pod in pods]


BROKEN = [
    ("holds", OVERFULL, Decision([Binding("two-0", "two", "n", (0, 1))])),
    ("given out", OVERFULL, Decision([Binding("two-0", "two", "n", (0, 1))])),
    ("wants 1 devices", TWICE, Decision([Binding("one-0", "one", "n", (0, 1))])),
    ("placed 2 times", TWICE, Decision([Binding("one-0", "one", "n", (0,))] * 2)),
    ("nobody says why", TWICE, Decision()),
    ("without a reason", TWICE, Decision(refusals={"one": Refusal("", "", "")})),
    ("starts with 1 of 2", PAIR, Decision([Binding("pair-0", "pair", "n", (0,))])),
    ("nominated with fewer", PAIR, Decision([], nominate("pair-0"))),
    (
        "its limit is 1",
        LIMITED,
        Decision([Binding(f"pair-{n}", "pair", "n", (n,)) for n in (0, 1)]),
    ),
    (
        "its quota is 1",
        BUILD,
        Decision([Binding(f"build-{n}", "build", "n", (n,)) for n in (0, 1)]),
    ),
    ("within its quota", *make_swap(Action.RECLAIM)),
    ("its own queue", *make_swap(Action.RECLAIM, queue="b")),
    ("of another queue", *make_swap(Action.PREEMPT)),
    ("no lower", *make_swap(Action.PREEMPT, queue="b", priority=75)),
    ("guaranteed", *make_swap(Action.RECLAIM, priority=100)),
    (
        "guaranteed",
        *make_swap(Action.RECLAIM, preemptibility=Preemptibility.SEMI_PREEMPTIBLE, minimum=2),
    ),
    ("places 0 again", *make_swap(Action.CONSOLIDATE)),
    (
        "left with 1 of 2",
        ELASTIC,
        Decision(
            [],
            nominate("taker-0", "taker-1"),
            [evict(f"victim-{n}", Action.RECLAIM, "taker") for n in (1, 2)],
        ),
    ),
    (
        "lower rank",
        ELASTIC,
        Decision([], nominate("taker-0"), [evict("victim-0", Action.RECLAIM, "taker")]),
    ),
    ("gets no place", ELASTIC, Decision([], [], [evict("victim-2", Action.RECLAIM, "taker")])),
    (
        "before its delay",
        DELAYED,
        Decision([], nominate("taker-0"), [evict("victim-0", Action.RECLAIM, "taker")]),
    ),
]


@pytest.mark.parametrize(("words", "state", "decision"), BROKEN)
def test_a_broken_rule_is_found(words: str, state: ClusterState, decision: Decision) -> None:
    breaches = find_breaches(state, decision)
    assert any(words in breach for breach in breaches), breaches


def test_minimum_run_times_are_watched() -> None:
    state, decision = make_swap(Action.RECLAIM, started_at=NOW - 10)
    queues = [replace(queue, reclaim_min_runtime=60.0) for queue in state.queues]
    breaches = find_breaches(replace(state, queues=queues), decision)
    assert any("loses its minimum after 10" in breach for breach in breaches), breaches


def test_a_right_decision_has_no_breach() -> None:
    state = make_case(make_gang("pair", "a", pods=2), make_gang("large", "a", pods=3))
    assert find_breaches(state, naive.decide(state)) == []


def test_who_waits_beside_free_room_is_found() -> None:
    state = make_case(make_gang("one", "a"))
    assert list(RestingWorld(state).find_debts()) == ["one waits beside 4 free devices"]


def test_who_takes_too_little_is_found() -> None:
    victims = [make_gang(f"v{n}", "a", on=[node]) for n, node in enumerate("nnmm")]
    debts = list(RestingWorld(make_case(*victims, make_gang("one", "b"), quota=1)).find_debts())
    assert debts == [f"one is within its quota and does not reclaim from v{n}" for n in range(4)]
    high = make_gang("high", "a", priority=75)
    debts = list(RestingWorld(make_case(*victims, high)).find_debts())
    assert debts == [f"high does not preempt v{n} of lower priority" for n in range(4)]
