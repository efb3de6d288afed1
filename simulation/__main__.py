"""Plays one cluster forward in a process of its own: a pickled question in, the answer out.

Only the process that started it writes to it. It takes the time that others leave.
"""

import math
import os
import pickle
import signal
import sys

from simulation.forecasting import forecast_starts

NICENESS = 10

DRAWING_SHARE = 0.5
"""The share of its seconds after which it begins no more draws: one may take long."""


def main() -> None:
    """Read (state, lengths, seed, horizon, seconds) from input, and write the forecasts."""
    os.nice(NICENESS)
    question = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the process that started it
    state, lengths, seed, horizon, seconds = question
    # Who asked may be gone by then, killed, and nobody else would end it.
    signal.alarm(math.ceil(seconds))
    forecasts = forecast_starts(
        state, lengths, seed=seed, horizon=horizon, most_seconds=seconds * DRAWING_SHARE
    )
    pickle.dump(dict(forecasts), sys.stdout.buffer)


if __name__ == "__main__":
    main()
