"""Ballast: a file that reserves room on the data directory's disk for the day the disk is full.

It is removed then, so that the cluster can still report the full disk, end its pods and start
again. Without it the report itself could not be written.
"""

import contextlib
import os
from pathlib import Path

FILE_NAME = "ballast"
MAX_BYTES = 1 << 20
DISK_DIVISOR = 50
"""The ballast is at most one part in so many of the disk.

So removing it never makes a full disk look like one with room.
"""


def compute_size(disk_bytes: int) -> int:
    """Return the size in bytes of the ballast on a disk of `disk_bytes` bytes.

    It is enough for some dozen writes of the node's object.
    """
    return min(MAX_BYTES, disk_bytes // DISK_DIVISOR)


def create_ballast(data: Path, disk_bytes: int) -> None:
    """Create the ballast file, unless it exists. Do nothing when the disk refuses it."""
    path = data / FILE_NAME
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return
    try:
        # Real blocks: a sparse file would reserve nothing.
        os.posix_fallocate(handle, 0, compute_size(disk_bytes))
    except OSError:
        os.unlink(path)
    finally:
        os.close(handle)


def release_ballast(data: Path) -> bool:
    """Remove the ballast file, so that the next writer has room.

    Returns False when there was none.
    """
    with contextlib.suppress(OSError):
        os.unlink(data / FILE_NAME)
        return True
    return False
