"""Plays one cluster forward in a process of its own: a pickled question in, the answer out."""

import pickle
import sys

from simulation.forecasting import forecast_starts
from simulation.forks import count_processors
from simulation.questions import read_question

DRAWING_SHARE = 0.5
"""The share of its seconds after which it begins no more draws: one may take long."""


def main() -> None:
    """Read (state, lengths, past, seed, horizon, seconds), and write the forecasts."""
    state, lengths, past, seed, horizon, seconds = read_question()
    forecasts = forecast_starts(
        state,
        lengths,
        seed=seed,
        horizon=horizon,
        most_seconds=seconds * DRAWING_SHARE,
        processes=count_processors(),
        past=past,
    )
    pickle.dump(dict(forecasts), sys.stdout.buffer)


if __name__ == "__main__":
    main()
