"""How long a rank waited for data and how long it computed, as a line that Muster reads."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from muster_delivery.log_lines import write_event

SPAN = 600.0
"""Seconds that the sums reach back."""
FIRST_SECONDS, FIRST_PAUSE, LATER_PAUSE = 120.0, 10.0, 30.0
"""A line each ten seconds in the first two minutes, then each thirty."""


class RankCounters:
    """Sums of the last ten minutes, second by second; one thread writes."""

    def __init__(self, rank: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rank = rank
        self._clock = clock
        self._started = self._written = clock()
        self._seconds: deque[list[float]] = deque()
        """Second, waited, computed, elements."""

    def add(self, *, waited: float = 0.0, computed: float = 0.0, elements: int = 0) -> None:
        """Add to the sums of this second."""
        now = self._clock()
        if not self._seconds or self._seconds[-1][0] != int(now):
            self._seconds.append([int(now), 0.0, 0.0, 0.0])
        for place, amount in enumerate((waited, computed, elements), start=1):
            self._seconds[-1][place] += amount
        while self._seconds[0][0] < now - SPAN:
            self._seconds.popleft()

    def write_line(self, *, depth: int, delivered: int, epoch: int, force: bool = False) -> None:
        """Write the rank's line, unless the last one is too young."""
        now = self._clock()
        pause = FIRST_PAUSE if now - self._started < FIRST_SECONDS else LATER_PAUSE
        if not force and now - self._written < pause:
            return
        self._written = now
        span = min(SPAN, now - self._started)
        waited, computed, elements = (
            sum(second[place] for second in self._seconds) for place in (1, 2, 3)
        )
        write_event(
            {
                "event": "rank",
                "rank": self._rank,
                "waited": round(min(waited, span), 2),
                "computed": round(min(computed, span), 2),
                "span": round(span, 2),
                "depth": depth,
                "rate": round(elements / max(span, 1e-3), 2),
                "delivered": delivered,
                "epoch": epoch,
            }
        )
