"""Room on the data directory's disk, held for the day it is full: given back then, so that the
cluster can still say so, end its pods and start again. Without it the one thing that a full disk
would not take is the news that it is full.
"""

import contextlib
import os
from pathlib import Path

FILE_NAME = "ballast"
MAX_BYTES = 1 << 20
DISK_DIVISOR = 50
"""At most one part in so many of the disk, so that giving it back never makes a full disk look like
one with room.
"""


def compute_size(disk_bytes: int) -> int:
    """How much is held of a disk of `total` bytes: some dozen writes of the node's object at
    least.
    """
    return min(MAX_BYTES, disk_bytes // DISK_DIVISOR)


def create_ballast(data: Path, disk_bytes: int) -> None:
    """Hold the room, unless it is held. Does nothing where the disk refuses it."""
    path = data / FILE_NAME
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return
    try:
        os.posix_fallocate(handle, 0, compute_size(disk_bytes))
    except OSError:
        os.unlink(path)
    finally:
        os.close(handle)


def release_ballast(data: Path) -> bool:
    """Give the room to whoever writes next; False when none was held."""
    with contextlib.suppress(OSError):
        os.unlink(data / FILE_NAME)
        return True
    return False
