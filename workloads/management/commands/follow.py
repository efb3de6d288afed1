"""Follow every cluster into the journal, until SIGTERM or Ctrl-C."""

import contextlib
import ctypes
import gc
import signal
import threading
from argparse import ArgumentParser
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from console.checks import OPTIONS_TAG
from workloads.following import Follower

GC_THRESHOLD = 50_000
"""Allocations between two garbage collections.

Decoding makes very many objects at once, and next to no garbage cycles.
"""


_ARENA_MAX = -8
"""M_ARENA_MAX of malloc.h, which only the GNU C library knows."""


_CHECKPOINT_PAGES = 8_000
"""Pages of 4 KiB in SQLite's write-ahead log before a checkpoint."""


class Command(BaseCommand):
    requires_system_checks = (OPTIONS_TAG,)
    help = (
        "Follow every cluster: list, then watch, and write what changes into the database. Several "
        "may run; each cluster has one follower."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--holder",
            default="",
            help="the name in the leases, for one who makes sure that only one process has it",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()

        def end(number: int, frame: FrameType | None) -> None:
            stop.set()

        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGINT, end)
        connection_created.connect(_configure_sqlite)
        _spare_memory()
        Follower(options["holder"]).run(stop)


def _spare_memory() -> None:
    """Limit the process's memory: freeze loaded objects, and use one malloc arena.

    An arena for each of many threads would keep what that thread ever needed.
    """
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
