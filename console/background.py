"""What the processes that hold leases have in common: how they end, and how they spare memory."""

import contextlib
import ctypes
import gc
import signal
import threading
from types import FrameType
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

GC_THRESHOLD = 50_000
"""Allocations between two garbage collections.

Decoding makes very many objects at once, and next to no garbage cycles.
"""
_ARENA_MAX = -8
"""M_ARENA_MAX of malloc.h, which only the GNU C library knows."""
_CHECKPOINT_PAGES = 8_000
"""Pages of 4 KiB in SQLite's write-ahead log before a checkpoint."""


def stop_at_signals() -> threading.Event:
    """Return an event that SIGTERM and Ctrl-C set from now on."""
    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    return stop


def spare_memory() -> None:
    """Limit the process's memory: freeze loaded objects, and use one malloc arena.

    An arena for each of many threads would keep what that thread ever needed. SQLite's file is not
    memory-mapped.
    """
    connection_created.connect(_configure_sqlite)
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, *gc.get_threshold()[1:])
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def _configure_sqlite(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Set up SQLite for a process that writes much and reads little.

    The file is not memory-mapped, and a listing's writes need no checkpoint at once.
    """
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA mmap_size=0")
            cursor.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")
