"""How often a cluster may be asked: a bucket of tokens that fills at a steady rate, and the
patience that the cluster itself asks for.
"""

import threading
import time
from collections.abc import Callable

from clusters.kube.errors import Unavailable

REQUESTS_PER_SECOND = 20.0
"""Requests a second in the long run, of one process to one cluster."""
BURST = 40
LONGEST_PAUSE = 120.0
"""Seconds. A cluster that asks for more patience is asked again sooner."""


class RateLimiter:
    """Lets `burst` requests through at once and `rate` a second after that. Share one among all who
    talk to the same cluster.
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

    def wait_turn(
        self, timeout: float = 10.0, stop: threading.Event | None = None, *, spare_turns: int = 0
    ) -> None:
        """Wait for one's turn. Raises Unavailable when it is more than `within` seconds away, or as
        soon as `stop` is set.

        Whoever can wait longer than others leaves some turns free: theirs does not come before so
        many others could follow at once.
        """
        stop = stop or threading.Event()
        deadline = self._clock() + timeout
        while spare_turns and (short := self._seconds_until_free(spare_turns + 1)) > 0:
            if self._clock() + short > deadline:
                raise Unavailable(
                    "too many requests wait for this cluster already", retry_after=short
                )
            if stop.wait(short):
                raise Unavailable("stopped while waiting for its turn")
        wait = self.reserve_turn(max(0.0, deadline - self._clock()))
        if wait > 0 and stop.wait(wait):
            raise Unavailable("stopped while waiting for its turn")

    def reserve_turn(self, timeout: float) -> float:
        """Take the next turn and give the seconds until it comes. Raises Unavailable, and takes
        none, when that is later than `within`.
        """
        with self._lock:
            held = self._refill()
            wait = held + max(0.0, (1.0 - self._tokens) / self._rate)
            if wait > timeout:
                text = (
                    "the cluster asked for patience"
                    if held
                    else "too many requests wait for this cluster already"
                )
                raise Unavailable(text, retry_after=wait)
            self._tokens -= 1.0
            return wait

    def _seconds_until_free(self, turns: int) -> float:
        """Seconds until so many turns are free at once."""
        with self._lock:
            return self._refill() + max(0.0, (min(turns, self._burst) - self._tokens) / self._rate)

    def _refill(self) -> float:
        """Let what has become free be free; the seconds for which everybody is held back."""
        now = self._clock()
        # While everybody is held back it is filled up to a moment that is still to come.
        self._tokens = min(self._burst, self._tokens + max(0.0, now - self._filled_at) * self._rate)
        self._filled_at = max(self._filled_at, now)
        return self._filled_at - now

    def pause(self, seconds: float) -> None:
        """The cluster asks for so much patience: nobody's turn comes earlier, and then they come
        one by one.
        """
        with self._lock:
            self._filled_at = max(self._filled_at, self._clock() + min(seconds, LONGEST_PAUSE))
            self._tokens = min(self._tokens, 1.0)
