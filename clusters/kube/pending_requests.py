"""The requests of a client that wait for an answer: a cluster that takes connections and says
nothing holds a thread for each.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SILENT_SECONDS = 3.0
"""Seconds for which a request waits, and none is answered, until the cluster counts as silent."""


class PendingRequests:
    """Counts the requests that wait, and knows whether the cluster is silent."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._started_at: dict[object, float] = {}
        self._answered_at = clock()
        self._has_timed_out = False

    @contextmanager
    def track(self) -> Iterator[None]:
        """Count a request as waiting, within the block."""
        key = object()
        with self._lock:
            self._started_at[key] = self._clock()
        try:
            yield
        finally:
            with self._lock:
                del self._started_at[key]

    def record_answer(self) -> None:
        """Record that the cluster answered a request."""
        with self._lock:
            self._answered_at, self._has_timed_out = self._clock(), False

    def record_timeout(self) -> None:
        """Record that a request was given up."""
        with self._lock:
            self._has_timed_out = True

    def is_crowded(self, threads: int) -> bool:
        """Return whether the cluster is silent, and so many threads wait for it already."""
        with self._lock:
            if len(self._started_at) < threads:
                return False
            if self._has_timed_out:
                return True
            silent_since = max(self._answered_at, min(self._started_at.values()))
            return self._clock() - silent_since >= SILENT_SECONDS
