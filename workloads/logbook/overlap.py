"""Resuming a log after a break: exactly the stored lines that the cluster repeats are dropped.

The repetition starts at a whole second.
"""

from collections.abc import Iterator

from workloads.logbook import stamps
from workloads.logbook.line_reading import ByteSource, read_backward, read_forward

MAX_SEARCH_BYTES = 64 << 20
"""Bytes before the end that are searched for lines of the last second."""


class Overlap:
    """Compares the lines of one answer with those stored since the second of the last one.

    `since` is the time to ask the cluster for, None for everything. `has_missing_lines` tells, once
    lines have come, that lines between the stored ones and these cannot be had any more.
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
        """Return whether this line, the next one of the answer, is not stored yet."""
        if self._next_expected is None:
            return True
        if self._next_expected[1] == line or self._skip_to(line):
            self._next_expected = next(self._expected_lines, None)
            return False
        ns, _ = stamps.parse_stamp(line)
        if ns is not None and self._last_ns is not None and ns > self._last_ns:
            # The last stored line was not repeated: the kubelet has rotated it away, and perhaps
            # others after it.
            self._next_expected, self.has_missing_lines = None, True
        return True

    def _skip_to(self, line: bytes) -> bool:
        """Skip to this line if it is stored further on; return whether it is.

        The cluster has forgotten the lines before it.
        """
        assert self._next_expected is not None
        further = self._repeated_lines(self._next_expected[0])
        for at, stored in further:
            if stored == line:
                self._next_expected, self._expected_lines = (at, stored), further
                return True
        return False

    def _repeated_lines(self, at: int) -> Iterator[tuple[int, bytes]]:
        """Yield the stored lines from there on that the cluster repeats.

        Lines older than what it was asked for are left out.
        """
        is_repeated = True
        for begin, line in read_forward(self._stored, at, self._size):
            ns, _ = stamps.parse_stamp(line)
            is_repeated = is_repeated if ns is None else ns >= self._floor_ns
            if is_repeated:
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
