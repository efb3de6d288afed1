"""How often a cluster may be asked: a token bucket that fills at a steady rate, and the pauses that
the cluster itself asks for.
"""

import threading
import time
from collections.abc import Callable

from clusters.kube.errors import Unavailable

REQUESTS_PER_SECOND = 20.0
"""Requests a second in the long run, of one process to one cluster."""
BURST = 40
LONGEST_PAUSE = 120.0
"""Seconds. A cluster that asks for a longer pause is asked again sooner."""


class RateLimiter:
    """Lets `burst` requests through at once and `rate` a second after that. Share one among all
    clients of a cluster.
    """

    def __init__(
        self,
        rate: float = REQUESTS_PER_SECOND,
        burst: int = BURST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        self._tokens = float(burst)
        self._filled_at = clock()
        self._lock = threading.Lock()

    def wait_turn(self, timeout: float = 10.0, stop: threading.Event | None = None) -> None:
        """Wait for a turn. Raises Unavailable when it is more than `timeout` seconds away, or as
        soon as `stop` is set.
        """
        stop = stop or threading.Event()
        wait = self.reserve_turn(timeout)
        if wait > 0 and stop.wait(wait):
            raise Unavailable("stopped while waiting for its turn")

    def reserve_turn(self, timeout: float) -> float:
        """Take the next turn and return the seconds until it comes.

        Raises Unavailable, and takes no turn, when it comes later than `timeout` seconds.
        """
        with self._lock:
            paused = self._refill()
            wait = paused + max(0.0, (1.0 - self._tokens) / self._rate)
            if wait > timeout:
                text = (
                    "the cluster asked for patience"
                    if paused
                    else "too many requests wait for this cluster already"
                )
                raise Unavailable(text, retry_after=wait)
            self._tokens -= 1.0
            return wait

    def _refill(self) -> float:
        """Add the tokens that have become free, and return the seconds for which everybody is
        paused.
        """
        now = self._clock()
        # During a pause `_filled_at` lies in the future: no token is added before it is over.
        self._tokens = min(self._burst, self._tokens + max(0.0, now - self._filled_at) * self._rate)
        self._filled_at = max(self._filled_at, now)
        return self._filled_at - now

    def pause(self, seconds: float) -> None:
        """Let no turn come for so many seconds, as the cluster asks; after that they come one by
        one.
        """
        with self._lock:
            self._filled_at = max(self._filled_at, self._clock() + min(seconds, LONGEST_PAUSE))
            self._tokens = min(self._tokens, 1.0)
