"""What would help one gang: which alternatives start sooner, and in which order they are told."""

import pickle
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

from scheduling import GPU, Bound, ClusterState, Gang
from simulation import Outlook, RunLengths
from simulation.alternatives import Alternative, AlternativeStart, play_alternatives
from tests.scheduling.builders import NOW, make_gang, make_node, make_queue, make_state
from tests.simulation.test_forecasting import make_busy_world

HOUR = 3600.0


def runs(seconds: float) -> RunLengths:
    return RunLengths([seconds] * 3)


def make_wait(*, ends_in: float = HOUR) -> tuple[ClusterState, Mapping[str, RunLengths], Gang]:
    """Return two nodes of which one has one GPU free, and a gang that wants two."""
    gangs = [
        make_gang("runs", "a", 2, on=["n1"]),
        make_gang("other", "b", 1, on=["n2"]),
        make_gang("waits", "a", 2, created_at=NOW - 100),
    ]
    queues = [make_queue("a", quota=2, limit=4), make_queue("b", quota=2)]
    state = make_state([make_node("n1", 2), make_node("n2", 2)], queues, gangs)
    elapsed = NOW - (gangs[0].started_at or NOW)
    lengths = {"runs": runs(elapsed + ends_in), "other": runs(elapsed + 2 * ends_in)}
    return state, lengths, state.gangs[2]


def play(
    state: ClusterState,
    lengths: Mapping[str, RunLengths],
    alternatives: Sequence[Alternative],
    most_seconds: float = 60.0,
) -> Sequence[AlternativeStart]:
    return list(
        play_alternatives(
            state, lengths, alternatives, seed=1, horizon=24 * HOUR, most_seconds=most_seconds
        )
    )


def last_answers(answers: Sequence[AlternativeStart]) -> dict[str, AlternativeStart]:
    return {answer.key: answer for answer in answers}


def test_less_and_the_end_of_others_let_it_start_at_once() -> None:
    state, lengths, gang = make_wait()
    smaller = make_gang("waits", "a", 1, created_at=NOW)
    found = play(
        state,
        lengths,
        [
            Alternative("base", gang),
            Alternative("smaller", smaller),
            Alternative("ended", gang, ended="runs"),
            Alternative("same", gang),
        ],
    )
    assert [answer.key for answer in found[:2]] == ["smaller", "ended"]
    last = last_answers(found)
    assert (last["smaller"].likely, last["ended"].likely) == (0.0, 0.0)
    assert (last["base"].likely, last["base"].blockers) == (HOUR, ["runs"])
    assert "same" not in last


def test_the_soonest_is_told_first() -> None:
    state, lengths, gang = make_wait(ends_in=8 * HOUR)
    state = replace(state, nodes=[make_node("n1", 2), make_node("n2", 1)])
    other = state.gangs[1]
    lengths = {**lengths, "other": runs(NOW - (other.started_at or NOW) + HOUR)}
    smaller = make_gang("waits", "a", 1, created_at=NOW)
    found = play(
        state,
        lengths,
        [
            Alternative("base", gang),
            Alternative("smaller", smaller),
            Alternative("ended", gang, ended="runs"),
        ],
    )
    assert [answer.key for answer in found[:3]] == ["ended", "smaller", "base"]
    assert found[1].likely == HOUR
    assert found[2].likely == 8 * HOUR


def test_more_quota_lifts_what_a_limit_holds() -> None:
    state, lengths, gang = make_wait()
    narrow = make_queue("a", quota=2, limit=2)
    state = replace(state, queues=[narrow, state.queues[1]], gangs=state.gangs[:1])
    gang = make_gang("waits", "a", 1)
    wider = replace(narrow, bounds={**narrow.bounds, GPU: Bound(3, 3, 1)})
    found = last_answers(
        play(
            state, lengths, [Alternative("base", gang), Alternative("quota", gang, queues=[wider])]
        )
    )
    assert found["base"].likely == HOUR
    assert found["quota"].likely == 0.0


def test_what_starts_as_it_is_needs_no_help() -> None:
    state, lengths, _ = make_wait()
    gang = make_gang("waits", "a", 1)
    smaller = make_gang("waits", "a", 1, pods=1)
    found = play(state, lengths, [Alternative("base", gang), Alternative("smaller", smaller)])
    assert {(answer.key, answer.likely) for answer in found} <= {("base", 0.0), ("smaller", 0.0)}
    assert not last_answers(found).get("smaller", found[0]).sooner_share


def test_what_never_starts_and_what_waits_for_an_unknown_end_say_so() -> None:
    state, _, gang = make_wait()
    huge = make_gang("waits", "a", 4)
    found = last_answers(play(state, {}, [Alternative("base", gang), Alternative("huge", huge)]))
    assert found["base"].outlook is Outlook.NO_END
    assert set(found["base"].blockers) == {"runs", "other"}
    assert "huge" not in found
    never = play(state, {}, [Alternative("base", huge), Alternative("smaller", gang)])
    assert (never[0].key, never[0].outlook) == ("base", Outlook.NEVER)
    ends = {"runs": runs(2 * HOUR)}
    never = play(state, ends, [Alternative("base", huge), Alternative("one", gang)])
    assert (never[-1].key, never[-1].likely, never[-1].sooner_share) == ("one", HOUR, 1.0)


def test_what_is_not_known_in_time_is_not_told() -> None:
    state, lengths, gang = make_wait()
    assert play(state, lengths, [Alternative("base", gang)], most_seconds=0.0) == []


# Not in the process of the tests, which has threads.
PLAY_SIDE_BY_SIDE = """
import pickle, sys
from tests.simulation.test_alternatives import play_busy_world

sys.stdout.buffer.write(pickle.dumps(play_busy_world(processes=3)))
"""

PLAY_AND_KILL = """
import os, signal, time
from pathlib import Path
from tests.simulation.test_alternatives import iterate_busy_world

answers = iterate_busy_world(processes=2)
print(next(answers).key)
pid = os.getpid()
children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
for child in children:
    os.kill(int(child), signal.SIGKILL)
try:
    list(answers)
except EOFError:
    print(len(children), "killed")
"""


def iterate_busy_world(processes: int) -> Iterator[AlternativeStart]:
    """Play so many that wait that draws are as coarse as they get."""
    state, lengths = make_busy_world(3, nodes=3, waiting=400)
    gang = next(gang for gang in state.gangs if gang.key == "g83")
    alternatives = [
        Alternative("base", gang),
        *(Alternative(f"priority {each}", replace(gang, priority=each)) for each in (75, 100)),
        *(
            Alternative(f"end of {each.key}", gang, ended=each.key)
            for each in [each for each in state.gangs if each.pods[0].node][:4]
        ),
    ]
    return play_alternatives(
        state,
        lengths,
        alternatives,
        seed=1,
        horizon=2 * HOUR,
        most_seconds=600,
        processes=processes,
    )


def play_busy_world(processes: int) -> Mapping[str, AlternativeStart]:
    """Return the answers after the first draws, by their keys."""
    answers: dict[str, AlternativeStart] = {}
    for answer in iterate_busy_world(processes):
        if answer.draws > 2:
            break
        answers[answer.key] = answer
    return answers


def test_alternatives_side_by_side_are_those_played_in_one_process() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", PLAY_SIDE_BY_SIDE], check=True, capture_output=True
    ).stdout
    together = pickle.loads(answer)
    assert together == play_busy_world(processes=1)
    assert len(together) > 2


@pytest.mark.skipif(sys.platform != "linux", reason="children are read from /proc")
def test_an_answer_that_is_lost_is_no_answer() -> None:
    text = subprocess.run(
        [sys.executable, "-c", PLAY_AND_KILL], check=True, capture_output=True, text=True
    ).stdout
    assert text.splitlines()[1:] == ["2 killed"]


PLAY_AND_FAIL = """
from simulation.alternative_draws import AlternativeDraw, AlternativesFailed, PlayedAlternative

def fail(world):
    raise ValueError("no such world")

alternatives = [PlayedAlternative(key, key, None, key == "base") for key in ("base", "other")]
try:
    list(AlternativeDraw(alternatives, fail, 1.0, float("inf")).run(2))
except AlternativesFailed as error:
    print(error)
"""


def test_an_error_of_a_process_is_told_with_its_traceback() -> None:
    text = subprocess.run(
        [sys.executable, "-c", PLAY_AND_FAIL], check=True, capture_output=True, text=True
    ).stdout
    assert "ValueError: no such world" in text
    assert "Traceback" in text
