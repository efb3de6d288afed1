"""Plays one cluster forward in a process of its own: a pickled question in, the answer out.

Only the process that started it writes to it. It takes the time that others leave.
"""

import os
import pickle
import sys

from simulation.forecasting import forecast_starts

NICENESS = 10


def main() -> None:
    """Read (state, lengths, seed, horizon) from standard input, write the forecasts to output."""
    os.nice(NICENESS)
    state, lengths, seed, horizon = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own process
    forecasts = forecast_starts(state, lengths, seed=seed, horizon=horizon)
    pickle.dump(dict(forecasts), sys.stdout.buffer)


if __name__ == "__main__":
    main()
