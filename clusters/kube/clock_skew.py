"""How far a cluster's clock differs from ours, measured by the Date header of its answers."""

import email.utils
import time
from collections.abc import Callable
from datetime import timedelta

TOLERATED_SECONDS = 60.0
"""Seconds up to which two clocks count as equal: answers take time, and a Date has whole seconds.
"""


class ClockSkew:
    """The difference between a cluster's clock and ours. `offset` is how far the cluster's clock is
    ahead, in whole minutes; zero while it is small or unknown.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._ahead = 0.0

    @property
    def offset(self) -> timedelta:
        return timedelta(seconds=self._ahead)

    def record_date(self, date: str) -> None:
        """Take in the Date header of an answer that has just arrived."""
        try:
            server_time = email.utils.parsedate_to_datetime(date).timestamp()
        except (ValueError, TypeError, IndexError, OverflowError):
            return
        ahead = server_time - self._clock()
        # It stays as it is as long as it may be so: moments that have been told must not be others
        # the next time.
        if abs(ahead - self._ahead) >= TOLERATED_SECONDS:
            self._ahead = 60.0 * round(ahead / 60) if abs(ahead) >= TOLERATED_SECONDS else 0.0
