"""Plays alternatives in a process of its own: a pickled question in, each answer out at once.

Only the process that started it writes to it. It takes the time that others leave.
"""

import math
import os
import pickle
import signal
import sys
import time

from simulation.alternatives import play_alternatives
from simulation.forecasting import HORIZON

NICENESS = 10
KEPT_SHARE = 0.15
"""The share of its seconds that is kept for each place but the first."""


def main() -> None:
    """Read (places, seed, seconds) from input, and write answers, one pickle after the other.

    A place is (state, lengths, alternatives), the submission's own cluster first.
    """
    os.nice(NICENESS)
    question = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the process that started it
    places, seed, seconds = question
    # Who asked may be gone by then, killed, and nobody else would end it.
    signal.alarm(math.ceil(seconds * 2))
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
