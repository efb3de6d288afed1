"""The room for logs: what a log that still grows may have while all together are too large."""

import threading

NO_ROOM = (
    "All logs together are larger than the {} MiB that are kept, and this one is larger than its "
    "share: capture pauses until there is room."
)


class LogRoom:
    """The share of one log, for the threads that capture.

    As long as ended logs can make room there is none: a log may have any size.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._share: int | None = None
        self._total = 0

    def limit_to(self, share: int | None, total: int) -> None:
        """Let no log grow beyond `share` bytes, of `total` for all; None lifts the limit."""
        with self._lock:
            self._share, self._total = share, total

    def has_room(self, size: int) -> bool:
        """Return whether a log of this size may grow."""
        share = self._share
        return share is None or size < share

    def describe(self) -> str:
        """Return in a sentence why a log does not grow."""
        return NO_ROOM.format(self._total >> 20)
