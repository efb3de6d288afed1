"""Plays a past again in a process of its own: a pickled question in, the answer out.

Only the process that started it writes to it. It takes the time that others leave.
"""

import math
import os
import pickle
import signal
import sys

from simulation.__main__ import NICENESS
from simulation.history import replay_history

PLAYING_SHARE = 0.9
"""The share of its seconds after which it goes no further."""


def main() -> None:
    """Read (state, lengths, end, seconds) from input, and write the replay."""
    os.nice(NICENESS)
    state, lengths, end, seconds = pickle.load(sys.stdin.buffer)  # noqa: S301
    # Who asked may be gone by then, killed, and nobody else would end it.
    signal.alarm(math.ceil(seconds))
    replay = replay_history(state, lengths, end=end, most_seconds=seconds * PLAYING_SHARE)
    pickle.dump(replay, sys.stdout.buffer)


if __name__ == "__main__":
    main()
