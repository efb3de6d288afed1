"""Room on the data directory's disk, held for the day it is full: given back then, so that the
cluster can still say so, end its pods and start again. Without it the one thing that a full disk
would not take is the news that it is full.
"""

import contextlib
import os
from pathlib import Path

NAME = "ballast"
MOST_BYTES = 1 << 20
SHARE = 50
"""At most one part in so many of the disk, so that giving it back never makes a full disk look like
one with room.
"""


def size(total: int) -> int:
    """How much is held of a disk of `total` bytes: some dozen writes of the node's object at
    least.
    """
    return min(MOST_BYTES, total // SHARE)


def take(data: Path, total: int) -> None:
    """Hold the room, unless it is held. Does nothing where the disk refuses it."""
    path = data / NAME
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return
    try:
        os.posix_fallocate(handle, 0, size(total))
    except OSError:
        os.unlink(path)
    finally:
        os.close(handle)


def give_back(data: Path) -> bool:
    """Give the room to whoever writes next; False when none was held."""
    with contextlib.suppress(OSError):
        os.unlink(data / NAME)
        return True
    return False
