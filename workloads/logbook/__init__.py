"""Pods' logs: captured while they run, kept after their end, read in windows."""

from workloads.logbook.capturer import Capturer
from workloads.logbook.live_logs import follow_log, streams
from workloads.logbook.log_paths import describe_trouble
from workloads.logbook.object_store import StoreFailed
from workloads.logbook.plain_text import (
    describe_missing,
    read_lines,
    read_lines_behind,
    read_tail,
    read_tail_with_offset,
)
from workloads.logbook.retention import (
    abandon_logs,
    are_logs_kept,
    remove_old_logs,
    wait_until_logs_kept,
)

__all__ = [
    "Capturer",
    "StoreFailed",
    "abandon_logs",
    "are_logs_kept",
    "describe_missing",
    "describe_trouble",
    "follow_log",
    "read_lines",
    "read_lines_behind",
    "read_tail",
    "read_tail_with_offset",
    "remove_old_logs",
    "streams",
    "wait_until_logs_kept",
]
