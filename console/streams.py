"""Streams that somebody has open at once. Each costs the process something for as long as it lives,
so they are counted.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Streams:
    """Those of one kind in this process: at most so many for each person."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._open: Counter[int] = Counter()

    def full(self, person: int) -> bool:
        """Whether this person has as many open as may be."""
        return self._open[person] >= self.most

    @contextmanager
    def counted(self, person: int) -> Iterator[None]:
        """One more, while it is read: one that nobody began to read takes no place."""
        self._open[person] += 1
        try:
            yield
        finally:
            self._open[person] -= 1
            if not self._open[person]:
                del self._open[person]
