"""The sparse index beside a log.

About every 64 KiB it has a line's offset, number, and the latest time before it.

It finds a moment without reading the log. It may lag behind the log, or be missing: then more of
the log is read.
"""

import struct
from collections.abc import Callable
from contextlib import AbstractContextManager

from workloads.logbook import stamps
from workloads.logbook.line_reading import ByteSource, read_forward

ENTRY_SPACING = 64 << 10
ENTRY_FORMAT = struct.Struct("<QQq")
NO_TIME = -(1 << 63)
"""Stands for "no time so far"."""
Entry = tuple[int, int, int]
START_ENTRY: Entry = (0, 0, NO_TIME)
OpenSource = Callable[[], AbstractContextManager[ByteSource]]


class LogIndex:
    """Reads entries by ranged reads; nothing is open between two look-ups.

    Most windows need no index, and a merged one has hundreds of logs.
    """

    def __init__(self, open_source: OpenSource | None = None) -> None:
        self._open_source = open_source

    def find_last(self, goes_on: Callable[[Entry], bool]) -> Entry:
        """Return the last entry for which `goes_on` is true.

        It must be true up to some entry, and false from there on.
        """
        if self._open_source is None:
            return START_ENTRY
        with self._open_source() as source:
            return _find_last_entry(source, goes_on)


def _find_last_entry(source: ByteSource, goes_on: Callable[[Entry], bool]) -> Entry:
    low, high = 0, source.size() // ENTRY_FORMAT.size
    last = START_ENTRY
    while low < high:
        middle = (low + high) // 2
        data = source.read(middle * ENTRY_FORMAT.size, ENTRY_FORMAT.size)
        if len(data) == ENTRY_FORMAT.size and goes_on(entry := ENTRY_FORMAT.unpack(data)):
            low, last = middle + 1, entry
        else:
            high = middle
    return last


def find_time(log: ByteSource, index: LogIndex, ns: int) -> int:
    """Return the offset of the first line of that time or later.

    Return the end of the last complete line where there is none.
    """
    offset, _, _ = index.find_last(lambda entry: entry[2] < ns)
    end = offset
    for at, line in read_forward(log, offset):
        time, _ = stamps.parse_stamp(line)
        if time is not None and time >= ns:
            return at
        end = at + len(line) + 1
    return end
