"""Follows every cluster into the journal, until SIGTERM or Ctrl-C."""

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
"""Objects after which Python looks for garbage: decoding makes very many at once, and next to none
that would need to be looked for.
"""


_ARENA_MAX = -8
"""A number of malloc.h, which only the GNU C library knows."""


_CHECKPOINT_PAGES = 8_000
"""Pages of 4 KiB after which SQLite's log is filed into the database."""


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
    """What is loaded is no garbage, and the heaps that the C library makes for many threads would
    keep what any of them has ever needed.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, *gc.get_threshold()[1:])
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def _configure_sqlite(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """SQLite for one who writes much and reads little: its file is not mapped, and what a listing
    writes need not be filed at once.
    """
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA mmap_size=0")
            cursor.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")
