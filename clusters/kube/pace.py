"""How often a cluster may be asked: a bucket of tokens that fills at a steady rate."""

import threading
import time
from collections.abc import Callable

from clusters.kube.errors import Unavailable

RATE = 20.0
"""Requests a second in the long run, of one process to one cluster."""
BURST = 40


class Pace:
    """Lets `burst` requests through at once and `rate` a second after that. Share one among all who talk to the same cluster."""

    def __init__(self, rate: float = RATE, burst: int = BURST, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        self._tokens = float(burst)
        self._filled = clock()
        self._lock = threading.Lock()

    def take(self, within: float = 10.0, stop: threading.Event | None = None) -> None:
        """Wait for one's turn. Raises Unavailable when it is more than `within` seconds away, or as soon as `stop` is set."""
        wait = self.reserve(within)
        if wait > 0 and (stop or threading.Event()).wait(wait):
            raise Unavailable("stopped while waiting for its turn")

    def reserve(self, within: float) -> float:
        """Take the next turn and give the seconds until it comes. Raises Unavailable, and takes none, when that is later than `within`."""
        with self._lock:
            now = self._clock()
            self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._rate)
            self._filled = now
            wait = max(0.0, (1.0 - self._tokens) / self._rate)
            if wait > within:
                raise Unavailable("too many requests wait for this cluster already", retry_after=wait)
            self._tokens -= 1.0
            return wait
