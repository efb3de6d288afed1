"""Writes that wait, the latest one for each subject; the subjects take turns, a few at a time.

So a machine with thousands of waiting pods is not kept busy by telling each of them how the numbers
changed.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable

from localkube.errors import ApiError

WRITES_PER_FLUSH = 8
"""How many writes one call of `run_writes` does: together about one slice of the controllers' loop.
"""

PAUSE_SECONDS = 0.05
"""Seconds until the next writes."""

SERVER_ERROR = 500
"""From this code on a refusal is not the object's fault."""

log = logging.getLogger(__name__)

Subject = tuple[str, ...]
Write = Callable[[], bool]
"""Does one write; returns whether the subject has more of them, which wait for its next turn."""


class PendingWrites:
    """Writes that are still to be done."""

    def __init__(self) -> None:
        self._writes: OrderedDict[Subject, Write] = OrderedDict()

    def add_write(self, subject: Subject, write: Write) -> None:
        """Add a write, in the place of an older one about the same subject."""
        self._writes[subject] = write

    def run_writes(self, seconds: float) -> float | None:
        """Do some of the writes, oldest first, and begin none after `seconds`.

        Returns the seconds until more are due, None when none are left.
        """
        end = time.monotonic() + seconds
        for _ in range(WRITES_PER_FLUSH):
            if not self._writes or time.monotonic() >= end:
                break
            subject, write = next(iter(self._writes.items()))
            has_more = False
            try:
                has_more = write()
            except ApiError as refusal:
                if refusal.code >= SERVER_ERROR:
                    raise
                log.warning(
                    "%s cannot be told how its scheduling went: %s",
                    "/".join(subject),
                    refusal.message,
                )
            # Only now: a write that the server failed is tried again.
            if has_more:
                self._writes.move_to_end(subject)
            else:
                del self._writes[subject]
        return PAUSE_SECONDS if self._writes else None
