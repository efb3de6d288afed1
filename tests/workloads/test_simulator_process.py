"""The simulator in a process of its own."""

import pytest

from scheduling import ClusterState
from simulation import RunLengths, forecast_starts
from tests.scheduling.builders import make_gang, make_node, make_queue, make_state
from workloads.forecasting import simulator_process
from workloads.forecasting.simulator_process import (
    SimulatorFailed,
    SimulatorStopped,
    replay_apart,
    simulate_apart,
)

LENGTHS = {"runs": RunLengths([5000.0, 6000.0, 9000.0])}


def make_full_node() -> ClusterState:
    """Return a node that is full, and one gang that waits for it."""
    gangs = [make_gang("runs", "a", 2, on=["n1"]), make_gang("waits", "a", 2)]
    return make_state([make_node("n1", 2)], [make_queue("a")], gangs)


def test_its_answer_is_that_of_the_simulator() -> None:
    state = make_full_node()
    answer = simulate_apart(state, LENGTHS, seed=3, horizon=86_400.0)
    assert answer == forecast_starts(state, LENGTHS, seed=3)


def test_one_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(SimulatorFailed, match=r"took more than 0 s, and was stopped\."):
        simulate_apart(make_full_node(), LENGTHS, seed=3, horizon=86_400.0, most_seconds=0.001)


def test_one_whose_answer_nobody_wants_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    # Earlier than any process has started.
    monkeypatch.setattr(simulator_process, "LOOK_SECONDS", 0.001)
    answers = iter((True, True, False))
    with pytest.raises(SimulatorStopped):
        replay_apart(make_full_node(), {}, end=86_400.0, is_wanted=lambda: next(answers))


def test_a_long_question_is_asked_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not fit into a pipe, and its process is looked at before it has read it."""
    monkeypatch.setattr(simulator_process, "LOOK_SECONDS", 0.001)
    lengths = {f"run-{number}": 60.0 for number in range(50_000)}
    assert replay_apart(make_full_node(), lengths, end=1e10).until == 1e10


def test_one_that_fails_says_where_to_look() -> None:
    state = "not a state"
    with pytest.raises(SimulatorFailed, match="log says why"):
        simulate_apart(state, LENGTHS, seed=3, horizon=86_400.0)  # type: ignore[arg-type]
