"""The sparse index beside a log: for a line about every 64 KiB where it begins, which it is, and
the latest time before it.

It says where a moment is without reading the log. It may lag behind the log, or be missing: then
more of the log is read.
"""

import struct
from collections.abc import Callable

from workloads.logbook import stamps
from workloads.logbook.framing import Source, forward

EVERY = 64 << 10
ENTRY = struct.Struct("<QQq")
NEVER = -(1 << 63)
"""Stands for "no time so far"."""
Entry = tuple[int, int, int]
START: Entry = (0, 0, NEVER)


class Index:
    """Reads entries by ranged reads."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._count = source.size() // ENTRY.size

    def before(self, goes_on: Callable[[Entry], bool]) -> Entry:
        """The last entry for which `goes_on` is true; it is true up to some entry, and false from
        there on.
        """
        low, high = 0, self._count
        found = START
        while low < high:
            middle = (low + high) // 2
            data = self._source.read(middle * ENTRY.size, ENTRY.size)
            if len(data) == ENTRY.size and goes_on(entry := ENTRY.unpack(data)):
                low, found = middle + 1, entry
            else:
                high = middle
        return found


def seek_time(log: Source, index: Index, ns: int) -> int:
    """Where the first line of that time or later begins; the end of the last whole line where there
    is none.
    """
    offset, _, _ = index.before(lambda entry: entry[2] < ns)
    end = offset
    for at, line in forward(log, offset):
        time, _ = stamps.read(line)
        if time is not None and time >= ns:
            return at
        end = at + len(line) + 1
    return end
