"""Plays alternatives in a process of its own: a pickled question in, each answer out at once."""

import pickle
import sys
import time

from simulation.alternatives import play_alternatives
from simulation.forecasting import HORIZON
from simulation.questions import read_question

KEPT_SHARE = 0.15
"""The share of its seconds that is kept for each place but the first."""
GRACE = 2.0
"""After how many times its seconds it is ended: what is begun is played on."""


def main() -> None:
    """Read (places, seed, seconds) from input, and write answers, one pickle after the other.

    A place is (state, lengths, alternatives), the submission's own cluster first.
    """
    places, seed, seconds = read_question(GRACE)
    end = time.monotonic() + seconds
    for number, (state, lengths, alternatives) in enumerate(places):
        kept = seconds * KEPT_SHARE * (len(places) - 1 - number)
        most_seconds = end - time.monotonic() - kept
        for answer in play_alternatives(
            state, lengths, alternatives, seed=seed, horizon=HORIZON, most_seconds=most_seconds
        ):
            pickle.dump(answer, sys.stdout.buffer)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
