"""Draws in processes side by side."""

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simulation import forecast_starts, forks
from tests.simulation.test_forecasting import make_busy_world

# Not in the process of the tests, which has threads.
PLAY_SIDE_BY_SIDE = """
import pickle, sys
from simulation import drawing, forecast_starts
from tests.simulation.test_forecasting import make_busy_world

drawing.WORTH_SECONDS = 0.0
state, lengths = make_busy_world(3, nodes=3, waiting=5)
together = forecast_starts(state, lengths, seed=5, processes=3)
soon = forecast_starts(state, lengths, seed=5, processes=3, most_seconds=0.0)
sys.stdout.buffer.write(pickle.dumps((together, soon)))
"""

PLAY_WITHOUT_END = """
from tests.simulation.test_forecasting import HOUR, make_busy_world
from simulation import drawing
from simulation.drawing import Drawing, iterate_draws
from simulation.playing import COARSE
from simulation.world import build_world

state, lengths = make_busy_world(3, nodes=3, waiting=5)
waiting = [gang.key for gang in state.gangs if not gang.pods[0].node]
drawing.WORTH_SECONDS = 0.0
forever = Drawing(build_world(state), lengths, 1, COARSE, 24 * HOUR, waiting)
for draw in iterate_draws(forever, 20, processes=2):
    print(draw.moments, flush=True)
"""


def test_draws_side_by_side_are_those_played_one_after_the_other() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", PLAY_SIDE_BY_SIDE], check=True, capture_output=True
    ).stdout
    state, lengths = make_busy_world(3, nodes=3, waiting=5)
    together, soon = pickle.loads(answer)
    assert together == forecast_starts(state, lengths, seed=5)
    assert {each.draws for each in soon.values()} == {1}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they end with their time")
def test_processes_end_with_the_one_that_began_them() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PLAY_WITHOUT_END], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for _ in range(3):
            assert int(process.stdout.readline())
        children = list_children(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        # Nobody else holds its output.
        process.stdout.read()
    assert len(children) == 2
    end = time.monotonic() + 20
    while any(is_running(child) for child in children):
        assert time.monotonic() < end
        time.sleep(0.05)


def list_children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_a_container_has_as_many_processors_as_it_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = tmp_path / "cpu.max"
    monkeypatch.setattr(forks, "PROCESSOR_BOUND", bound)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64))
    counts = []
    for text in ("max 100000", "50000 100000", "250000 100000", "nonsense"):
        bound.write_text(text)
        counts.append(forks.count_processors())
    bound.unlink()
    assert [*counts, forks.count_processors()] == [4, 1, 3, 4, 4]
