"""Plays alternatives in a process of its own: a pickled question in, each answer out at once."""

import sys
import time
from multiprocessing.connection import Connection

from simulation.alternatives import play_alternatives
from simulation.forecasting import HORIZON
from simulation.forks import count_processors
from simulation.questions import read_question

KEPT_SHARE = 0.15
"""The share of its seconds that is kept for each place but the first."""
MOST_PROCESSES = 2
"""Each has a part of the memory once more, and several people ask at once."""
GRACE = 2.0
"""After how many times its seconds it is ended: what is begun is played on."""


def main() -> None:
    """Read (places, seed, seconds) from input, and send answers; None is the last of them.

    A place is (state, lengths, alternatives, past), the submission's own cluster first.
    """
    places, seed, seconds = read_question(GRACE)
    end = time.monotonic() + seconds
    with Connection(sys.stdout.fileno(), readable=False) as answers:
        for number, (state, lengths, alternatives, past) in enumerate(places):
            reserved_seconds = seconds * KEPT_SHARE * (len(places) - 1 - number)
            most_seconds = end - time.monotonic() - reserved_seconds
            for answer in play_alternatives(
                state,
                lengths,
                alternatives,
                seed=seed,
                horizon=HORIZON,
                most_seconds=most_seconds,
                past=past,
                processes=min(count_processors(), MOST_PROCESSES),
            ):
                answers.send(answer)
        answers.send(None)


if __name__ == "__main__":
    main()
