"""Shares of a process's threads, for work that may wait long for somebody who does not answer."""

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from django.conf import settings

SLOW_SECONDS = 5.0
"""Work that takes longer is slow."""
SLOW_PERIOD = 60.0
"""For how many seconds after slow work its target is taken to be slow."""


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


class SlowTargets:
    """Leaves threads to others while work for some targets takes long.

    A target is taken to be slow after work for it took longer than SLOW_SECONDS. All slow targets
    have one share of the threads together.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._slow_until: dict[Hashable, float] = {}
        self._share = ThreadShare()

    @contextmanager
    def claim(self, target: Hashable) -> Iterator[bool]:
        """Yield whether this thread may work for a target now, and note how long it takes."""
        began_at = self._clock()
        if not self._is_slow(target, began_at):
            try:
                yield True
            finally:
                self._note_end(target, began_at)
            return
        with self._share.claim() as is_free:
            try:
                yield is_free
            finally:
                self._note_end(target, began_at)

    def _is_slow(self, target: Hashable, now: float) -> bool:
        with self._lock:
            return self._slow_until.get(target, 0.0) > now

    def _note_end(self, target: Hashable, began_at: float) -> None:
        now = self._clock()
        with self._lock:
            if now - began_at >= SLOW_SECONDS:
                self._slow_until[target] = now + SLOW_PERIOD
            elif self._slow_until.get(target, now) < now:
                del self._slow_until[target]
