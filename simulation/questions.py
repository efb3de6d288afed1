"""What a process of the simulator does first: it takes the time that others leave, reads its
question, and sees to it that it ends.
"""

import gc
import math
import os
import pickle
import signal
import sys
from typing import Any

NICENESS = 10
RARE_COLLECTIONS = (50_000, 20, 100)
"""Little of a world is garbage, and looking through all of it takes a tenth of the time."""


def read_question(grace: float = 1.0) -> Any:
    """Return the pickled question on standard input; its last part is for how many seconds.

    The process is killed after `grace` times as long: who asked may be gone by then, killed, and
    nobody else would end it. Only the process that started this one writes to it.
    """
    os.nice(NICENESS)
    gc.set_threshold(*RARE_COLLECTIONS)
    question = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the process that started it
    signal.alarm(math.ceil(question[-1] * grace))
    return question
