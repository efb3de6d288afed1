"""Plays a past again in a process of its own: a pickled question in, the answer out."""

import pickle
import sys

from simulation.history import replay_history
from simulation.questions import read_question

PLAYING_SHARE = 0.9
"""The share of its seconds after which it goes no further."""


def main() -> None:
    """Read (state, lengths, end, seconds) from input, and write the replay."""
    state, lengths, end, seconds = read_question()
    replay = replay_history(state, lengths, end=end, most_seconds=seconds * PLAYING_SHARE)
    pickle.dump(replay, sys.stdout.buffer)


if __name__ == "__main__":
    main()
