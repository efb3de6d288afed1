"""Streams that somebody has open at once. Each costs the process something for as long as it lives,
so they are counted.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class StreamCounter:
    """Those of one kind in this process: at most so many for each person."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._open: Counter[int] = Counter()

    def is_full(self, user_id: int) -> bool:
        """Whether this person has as many open as may be."""
        return self._open[user_id] >= self.limit

    @contextmanager
    def count_stream(self, user_id: int) -> Iterator[None]:
        """One more, while it is read: one that nobody began to read takes no place."""
        self._open[user_id] += 1
        try:
            yield
        finally:
            self._open[user_id] -= 1
            if not self._open[user_id]:
                del self._open[user_id]
