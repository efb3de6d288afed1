"""Writes that wait, the latest one for each subject; a few are done at a time.

So a machine with thousands of waiting pods is not kept busy by telling each of them how the numbers
changed.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable

from localkube.errors import ApiError

WRITES_PER_FLUSH = 16
"""How many writes one call of `run_writes` does: together about one slice of the controllers' loop.
"""

PAUSE_SECONDS = 0.05
"""Seconds until the next writes."""

SERVER_ERROR = 500
"""From this code on a refusal is not the object's fault."""

log = logging.getLogger(__name__)

Subject = tuple[str, ...]
Write = Callable[[], None]


class PendingWrites:
    """Writes that are still to be done."""

    def __init__(self) -> None:
        self._writes: OrderedDict[Subject, Write] = OrderedDict()

    def add_write(self, subject: Subject, write: Write) -> None:
        """Add a write, in the place of an older one about the same subject."""
        self._writes[subject] = write

    def run_writes(self) -> float | None:
        """Do some of the writes, oldest first.

        Returns the seconds until more are due, None when none are left.
        """
        for _ in range(min(WRITES_PER_FLUSH, len(self._writes))):
            subject, write = next(iter(self._writes.items()))
            try:
                write()
            except ApiError as refusal:
                if refusal.code >= SERVER_ERROR:
                    raise
                log.warning(
                    "%s cannot be told how its scheduling went: %s",
                    "/".join(subject),
                    refusal.message,
                )
            # Delete it only now: a write that the server failed is tried again.
            del self._writes[subject]
        return PAUSE_SECONDS if self._writes else None
