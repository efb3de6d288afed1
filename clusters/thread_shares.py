"""Shares of a process's threads, for work that may wait long for somebody who does not answer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings


def count_silent_threads() -> int:
    """Return how many threads of this process may wait for clusters that do not answer.

    The others are left to the clusters that do.
    """
    return max(1, settings.OPTIONS.worker_threads // 4)


class ThreadShare:
    """At most a quarter of this process's threads, for one sort of work that may hang."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claimed = 0

    @contextmanager
    def claim(self) -> Iterator[bool]:
        """Yield whether this thread may do such work now.

        Whoever may not leaves it to a later sweep.
        """
        with self._lock:
            is_free = self._claimed < count_silent_threads()
            self._claimed += is_free
        try:
            yield is_free
        finally:
            with self._lock:
                self._claimed -= is_free
