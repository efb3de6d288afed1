"""Counts of open streams. Each costs the process something for as long as it lives."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class StreamCounter:
    """The open streams of one kind in this process: at most `limit` for each person."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._open: Counter[int] = Counter()

    def is_full(self, user_id: int) -> bool:
        """Return whether this person has as many open as allowed."""
        return self._open[user_id] >= self.limit

    @contextmanager
    def count_stream(self, user_id: int) -> Iterator[None]:
        """Count one more stream while the context lasts; one that nobody reads takes no place."""
        self._open[user_id] += 1
        try:
            yield
        finally:
            self._open[user_id] -= 1
            if not self._open[user_id]:
                del self._open[user_id]
