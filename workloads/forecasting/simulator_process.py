"""The simulator in a process of its own: minutes of computing hold up no other step."""

import logging
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import simulation
from scheduling import ClusterState
from simulation import RunLengths, StartForecast

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
    question = pickle.dumps((state, dict(lengths), seed, horizon, most_seconds))
    try:
        process = subprocess.run(
            [sys.executable, "-m", "simulation"],
            input=question,
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
            "the simulator ended with %d: %s",
            process.returncode,
            process.stderr.decode(errors="replace")[-MOST_ERROR_CHARACTERS:],
        )
        raise SimulatorFailed("The simulator failed; the worker's log says why.")
    forecasts: Mapping[str, StartForecast] = pickle.loads(process.stdout)  # noqa: S301
    return forecasts
