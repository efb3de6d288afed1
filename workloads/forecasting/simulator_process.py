"""The simulator in a process of its own: minutes of computing hold up no other step."""

import logging
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import simulation
from scheduling import ClusterState
from simulation import Past, RunLengths, StartForecast
from simulation.arrivals import NOTHING_PAST
from simulation.history import Replay

log = logging.getLogger(__name__)

FOLDER = Path(simulation.__file__).parent.parent
MOST_SECONDS = 120.0
"""Seconds after which the simulator is stopped."""
LOOK_SECONDS = 2.0
"""Seconds after which it is looked at again whether the answer is wanted still."""
MOST_ERROR_CHARACTERS = 2_000


class SimulatorFailed(Exception):
    """The simulator gave no answer; the text says why, for people."""


class SimulatorStopped(SimulatorFailed):
    """The simulator was stopped, since nobody wants its answer any more."""

    def __init__(self) -> None:
        super().__init__("It was stopped: nobody waits for its answer any more.")


def simulate_apart(
    state: ClusterState,
    lengths: Mapping[str, RunLengths],
    *,
    seed: int,
    horizon: float,
    past: Past = NOTHING_PAST,
    most_seconds: float = MOST_SECONDS,
) -> Mapping[str, StartForecast]:
    """Return what `simulation.forecast_starts` does. Raises SimulatorFailed."""
    question = (state, dict(lengths), past, seed, horizon, most_seconds)
    forecasts: Mapping[str, StartForecast] = ask_apart("simulation", question, most_seconds)
    return forecasts


def replay_apart(
    state: ClusterState,
    lengths: Mapping[str, float],
    *,
    end: float,
    most_seconds: float = MOST_SECONDS,
    is_wanted: Callable[[], bool] = lambda: True,
) -> Replay:
    """Return what `simulation.history.replay_history` does. Raises SimulatorFailed."""
    question = (state, dict(lengths), end, most_seconds)
    replay: Replay = ask_apart("simulation.replay_process", question, most_seconds, is_wanted)
    return replay


def ask_apart(
    module: str,
    question: object,
    most_seconds: float,
    is_wanted: Callable[[], bool] = lambda: True,
) -> Any:
    """Return what a module answers to a question, in a process of its own.

    It is stopped as soon as `is_wanted` says no. Raises SimulatorFailed.
    """
    data = pickle.dumps(question)
    with (
        subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=FOLDER,
        ) as process,
        ThreadPoolExecutor(1) as pool,
    ):
        # In a thread, since `communicate` with a timeout does not send the rest of a question when
        # it is called again (Python 3.11).
        exchange = pool.submit(process.communicate, data)
        try:
            output, errors = _wait_for_answer(exchange, most_seconds, is_wanted)
        finally:
            # Leaving waits for its end.
            process.kill()
    if process.returncode:
        log.error(
            "%s ended with %d: %s",
            module,
            process.returncode,
            errors.decode(errors="replace")[-MOST_ERROR_CHARACTERS:],
        )
        raise SimulatorFailed("The simulator failed; the worker's log says why.")
    return pickle.loads(output)  # noqa: S301


def _wait_for_answer(
    exchange: "Future[tuple[bytes, bytes]]", most_seconds: float, is_wanted: Callable[[], bool]
) -> tuple[bytes, bytes]:
    """Return what a process writes to its output, and as its errors. Raises SimulatorFailed."""
    stop_at = time.monotonic() + most_seconds
    while (remaining_seconds := stop_at - time.monotonic()) > 0:
        try:
            return exchange.result(min(remaining_seconds, LOOK_SECONDS))
        except TimeoutError:
            if not is_wanted():
                raise SimulatorStopped from None
    raise SimulatorFailed(
        f"Playing the cluster forward took more than {most_seconds:.0f} s, and was stopped."
    )
