"""Pods' logs: captured while they run, kept when they end, and read in windows however large they
are.
"""

from workloads.logbook.collecting import collect
from workloads.logbook.keeping import give_up, is_kept, keep, retain
from workloads.logbook.live import follow, streams
from workloads.logbook.places import trouble
from workloads.logbook.texts import lines, placed_tail, tail

__all__ = [
    "collect",
    "follow",
    "give_up",
    "is_kept",
    "keep",
    "lines",
    "placed_tail",
    "retain",
    "streams",
    "tail",
    "trouble",
]
