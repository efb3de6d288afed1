"""Processes that play beside the one that began them: how many, and how they end with it."""

import ctypes
import math
import os
import signal
import sys
from pathlib import Path

MOST_PROCESSES = 4
WORTH_SECONDS = 0.1
"""How long a draw takes where processes are worth their start."""
PROCESSOR_BOUND = Path("/sys/fs/cgroup/cpu.max")
"""How many processors a container has: microseconds in a period, or `max` (cgroups, version 2)."""
_DIE_WITH_PARENT = 1


def count_processors() -> int:
    """Return how many processors there are to play on, a few at most."""
    usable = getattr(os, "sched_getaffinity", None)
    count = len(usable(0)) if usable else os.cpu_count() or 1
    try:
        quota, period = PROCESSOR_BOUND.read_text().split()
    except (OSError, ValueError):
        quota = "max"
    if quota != "max":
        count = min(count, math.ceil(int(quota) / int(period)))
    return max(1, min(count, MOST_PROCESSES))


def get_seconds_left() -> float:
    """Return after how many seconds this process is ended; 0 where that is not set."""
    return signal.getitimer(signal.ITIMER_REAL)[0]


def begin_fork(seconds: float) -> None:
    """Let this process end after so many seconds at most (0 sets no end), and write nowhere.

    On Linux it ends with its parent as well.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    # Who asked the parent reads its output until nobody holds that any more.
    null_device = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_device, 1)
    os.dup2(null_device, 2)
