"""How far a cluster's clock is from ours, as the Date of its answers tells."""

import email.utils
import time
from collections.abc import Callable
from datetime import timedelta

TOLERATED_SECONDS = 60.0
"""Seconds up to which clocks are taken for equal: answers take their time, and a Date is of whole
seconds.
"""


class ClockSkew:
    """`ahead` is by how much the cluster's clock is ahead of ours, in whole minutes; nothing while
    that is little or not known.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._ahead = 0.0

    @property
    def offset(self) -> timedelta:
        return timedelta(seconds=self._ahead)

    def record_date(self, date: str) -> None:
        """The cluster has just answered with this Date."""
        try:
            told = email.utils.parsedate_to_datetime(date).timestamp()
        except (ValueError, TypeError, IndexError, OverflowError):
            return
        ahead = told - self._clock()
        # It stays as it is as long as it may be so: moments that have been told must not be others
        # the next time.
        if abs(ahead - self._ahead) >= TOLERATED_SECONDS:
            self._ahead = 60.0 * round(ahead / 60) if abs(ahead) >= TOLERATED_SECONDS else 0.0
