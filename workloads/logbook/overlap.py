"""Going on with a log after a break: the cluster tells again what was said since a whole second,
and exactly what is held is dropped.
"""

from collections.abc import Iterator

from workloads.logbook import stamps
from workloads.logbook.line_reading import ByteSource, read_backward, read_forward

MAX_SEARCH_BYTES = 64 << 20
"""Bytes before the end in which lines of the last second are looked for."""


class Overlap:
    """Compares the lines that come with those held since the second of the last one; made for one
    answer of the cluster.

    `since` is what to ask the cluster for, None for everything. `missing` tells, once lines have
    come, that some between those held and those that came cannot be had any more.
    """

    def __init__(self, stored: ByteSource, size: int) -> None:
        self._stored = stored
        self._size = size
        last = (
            next(
                (
                    ns
                    for _, line in read_backward(stored, size)
                    if (ns := stamps.parse_stamp(line)[0]) is not None
                ),
                None,
            )
            if size
            else None
        )
        self.since = None if last is None else stamps.format_second(last)
        self.has_missing_lines = False
        self._last_ns = last
        self._floor_ns = 0 if last is None else last // stamps.SECOND * stamps.SECOND
        self._expected_lines = self._repeated_lines(self._find_begin())
        self._next_expected = next(self._expected_lines, None)

    def is_new(self, line: bytes) -> bool:
        """Whether this line, the next one of the answer, is not held."""
        if self._next_expected is None:
            return True
        if self._next_expected[1] == line or self._skip_to(line):
            self._next_expected = next(self._expected_lines, None)
            return False
        ns, _ = stamps.parse_stamp(line)
        if ns is not None and self._last_ns is not None and ns > self._last_ns:
            # The last line held was not told again: the cluster has forgotten it, and perhaps
            # others after it.
            self._next_expected, self.has_missing_lines = None, True
        return True

    def _skip_to(self, line: bytes) -> bool:
        """Whether the line is held further on: then those before it are ones that the cluster has
        forgotten.
        """
        assert self._next_expected is not None
        ahead = self._repeated_lines(self._next_expected[0])
        for at, held in ahead:
            if held == line:
                self._next_expected, self._expected_lines = (at, held), ahead
                return True
        return False

    def _repeated_lines(self, at: int) -> Iterator[tuple[int, bytes]]:
        """The held lines from there on that the cluster tells again: those older than what it was
        asked for are left out.
        """
        told = True
        for begin, line in read_forward(self._stored, at, self._size):
            ns, _ = stamps.parse_stamp(line)
            told = told if ns is None else ns >= self._floor_ns
            if told:
                yield begin, line

    def _find_begin(self) -> int:
        begin = self._size
        for at, line in self._read_recent():
            ns, _ = stamps.parse_stamp(line)
            # Times may fall a little where two streams are merged: a line older by a second ends
            # the search.
            if ns is not None and ns < self._floor_ns - stamps.SECOND:
                break
            begin = at
        return begin

    def _read_recent(self) -> Iterator[tuple[int, bytes]]:
        for at, line in read_backward(self._stored, self._size):
            if at < self._size - MAX_SEARCH_BYTES:
                return
            yield at, line
