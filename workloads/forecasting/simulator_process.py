"""The simulator in a process of its own: minutes of computing hold up no other step."""

import logging
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import simulation
from scheduling import ClusterState
from simulation import RunLengths, StartForecast
from simulation.history import Replay

log = logging.getLogger(__name__)

FOLDER = Path(simulation.__file__).parent.parent
MOST_SECONDS = 120.0
"""Seconds after which the simulator is stopped."""
MOST_ERROR_CHARACTERS = 2_000


class SimulatorFailed(Exception):
    """The simulator gave no answer; the text says why, for people."""


def simulate_apart(
    state: ClusterState,
    lengths: Mapping[str, RunLengths],
    *,
    seed: int,
    horizon: float,
    most_seconds: float = MOST_SECONDS,
) -> Mapping[str, StartForecast]:
    """Return what `simulation.forecast_starts` does. Raises SimulatorFailed."""
    question = (state, dict(lengths), seed, horizon, most_seconds)
    forecasts: Mapping[str, StartForecast] = ask_apart("simulation", question, most_seconds)
    return forecasts


def replay_apart(
    state: ClusterState,
    lengths: Mapping[str, float],
    *,
    end: float,
    most_seconds: float = MOST_SECONDS,
) -> Replay:
    """Return what `simulation.history.replay_history` does. Raises SimulatorFailed."""
    question = (state, dict(lengths), end, most_seconds)
    replay: Replay = ask_apart("simulation.replay_process", question, most_seconds)
    return replay


def ask_apart(module: str, question: object, most_seconds: float) -> Any:
    """Return what a module answers to a question, in a process of its own.

    Raises SimulatorFailed.
    """
    try:
        process = subprocess.run(
            [sys.executable, "-m", module],
            input=pickle.dumps(question),
            capture_output=True,
            timeout=most_seconds,
            cwd=FOLDER,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SimulatorFailed(
            f"Playing the cluster forward took more than {most_seconds:.0f} s, and was stopped."
        ) from error
    if process.returncode:
        log.error(
            "%s ended with %d: %s",
            module,
            process.returncode,
            process.stderr.decode(errors="replace")[-MOST_ERROR_CHARACTERS:],
        )
        raise SimulatorFailed("The simulator failed; the worker's log says why.")
    return pickle.loads(process.stdout)  # noqa: S301
