"""Going on with a log after a break: the cluster tells again what was said since a whole second,
and exactly what is held is dropped.
"""

from collections.abc import Iterator

from workloads.logbook import stamps
from workloads.logbook.framing import Source, backward, forward

FURTHEST = 64 << 20
"""Bytes before the end in which lines of the last second are looked for."""


class Overlap:
    """Compares the lines that come with those held since the second of the last one; made for one
    answer of the cluster.

    `since` is what to ask the cluster for, None for everything. `missing` tells, once lines have
    come, that some between those held and those that came cannot be had any more.
    """

    def __init__(self, held: Source, size: int) -> None:
        self._held = held
        self._size = size
        last = (
            next(
                (
                    ns
                    for _, line in backward(held, size)
                    if (ns := stamps.read(line)[0]) is not None
                ),
                None,
            )
            if size
            else None
        )
        self.since = None if last is None else stamps.second(last)
        self.missing = False
        self._last = last
        self._floor = 0 if last is None else last // stamps.SECOND * stamps.SECOND
        self._ahead = self._told_from(self._begin())
        self._next = next(self._ahead, None)

    def fresh(self, line: bytes) -> bool:
        """Whether this line, the next one of the answer, is not held."""
        if self._next is None:
            return True
        if self._next[1] == line or self._found(line):
            self._next = next(self._ahead, None)
            return False
        ns, _ = stamps.read(line)
        if ns is not None and self._last is not None and ns > self._last:
            # The last line held was not told again: the cluster has forgotten it, and perhaps
            # others after it.
            self._next, self.missing = None, True
        return True

    def _found(self, line: bytes) -> bool:
        """Whether the line is held further on: then those before it are ones that the cluster has
        forgotten.
        """
        assert self._next is not None
        ahead = self._told_from(self._next[0])
        for at, held in ahead:
            if held == line:
                self._next, self._ahead = (at, held), ahead
                return True
        return False

    def _told_from(self, at: int) -> Iterator[tuple[int, bytes]]:
        """The held lines from there on that the cluster tells again: those older than what it was
        asked for are left out.
        """
        told = True
        for begin, line in forward(self._held, at, self._size):
            ns, _ = stamps.read(line)
            told = told if ns is None else ns >= self._floor
            if told:
                yield begin, line

    def _begin(self) -> int:
        begin = self._size
        for at, line in self._recent():
            ns, _ = stamps.read(line)
            # Times may fall a little where two streams are merged: a line older by a second ends
            # the search.
            if ns is not None and ns < self._floor - stamps.SECOND:
                break
            begin = at
        return begin

    def _recent(self) -> Iterator[tuple[int, bytes]]:
        for at, line in backward(self._held, self._size):
            if at < self._size - FURTHEST:
                return
            yield at, line
