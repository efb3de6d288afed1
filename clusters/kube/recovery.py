"""How the threads that wait for a cluster which does not answer learn that it answers again: one of
them tries it at a time, and its success wakes the others.
"""

import threading
import time
from collections.abc import Callable

PROBE_SECONDS = 1.0
"""Seconds between the failure of one try and the next one, whoever makes it. A cluster that does
not answer is tried no more often, however many threads wait for it.
"""
LONGEST_PROBE = 60.0
"""Seconds after which the result of a try is not waited for any longer."""


class Recovery:
    """Whether a cluster answers, and who waits until it does. One for each client."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._is_out = False
        self.count = 0
        """How often the cluster has answered again after an outage."""
        self._next_probe_at = 0.0
        self._holder: threading.Event | None = None
        """The event of the thread whose turn it is to try the cluster."""
        self._waiting: set[threading.Event] = set()

    def record_answer(self) -> None:
        """Record that the cluster answered; after an outage, wake everybody who waits."""
        # Without the lock: nearly every answer comes while there is no outage.
        if not self._is_out:
            return
        with self._lock:
            self._is_out, self._holder = False, None
            self.count += 1
            for wakeup in self._waiting:
                wakeup.set()

    def record_failure(self) -> None:
        """Record that no usable answer came; the next try is due soon."""
        with self._lock:
            self._is_out = True
            self._plan_next_try()

    def give_back(self, wakeup: threading.Event) -> None:
        """End the turn of the owner of `wakeup`, if it has it: others may try soon.

        Who took a turn has to call this when its try is over without an answer or a failure that
        was recorded here, and when it makes none: nobody else tries meanwhile.
        """
        with self._lock:
            if self._holder is wakeup:
                self._plan_next_try()

    def wait(
        self, seconds: float, known_count: int, wakeup: threading.Event, stop: threading.Event
    ) -> bool:
        """Wait for so many seconds; return whether the cluster answered again meanwhile.

        `known_count` is `count` from before the try that failed: between that and this call the
        cluster may have answered somebody else. It ends early where the cluster answers, where it
        is the caller's turn to try it (see `give_back`), and where `stop` is set, of which `wakeup`
        has to tell: that event belongs to the caller alone.
        """
        deadline = self._clock() + seconds
        with self._lock:
            self._waiting.add(wakeup)
        try:
            while not stop.is_set():
                wakeup.clear()
                with self._lock:
                    if self.count != known_count:
                        return True
                    remaining = self._take_turn(deadline, wakeup)
                if remaining <= 0:
                    break
                wakeup.wait(remaining)
            if stop.is_set():
                # It may have been set since the turn was taken.
                self.give_back(wakeup)
            return False
        finally:
            with self._lock:
                self._waiting.discard(wakeup)

    def _plan_next_try(self) -> None:
        """Let whoever waits take the next turn soon; nobody has it until then."""
        self._holder, self._next_probe_at = None, self._clock() + PROBE_SECONDS
        # Those who wait for a try that is now over are due sooner than they reckoned.
        for wakeup in self._waiting:
            wakeup.set()

    def _take_turn(self, deadline: float, wakeup: threading.Event) -> float:
        """Take the turn of the next try if it is due; return the seconds until the caller may try.

        Nobody else has a turn until it is given back, or LONGEST_PROBE is over.
        """
        now = self._clock()
        if self._is_out and now >= self._next_probe_at:
            self._holder, self._next_probe_at = wakeup, now + LONGEST_PROBE
            return 0.0
        due = min(deadline, self._next_probe_at) if self._is_out else deadline
        return due - now
