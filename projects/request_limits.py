"""How many requests over REST a user's tokens may make in a minute, over all web processes.

Each process counts in memory and adds what it counted to the database after every hundredth part
of the limit. So a request rarely writes, and all processes together let pass at most that part too
many for each of them. All tokens of a user count as one: a further one costs nothing.
"""

import logging
import math
import time
from dataclasses import dataclass
from threading import Lock

from django.conf import settings
from django.db import DatabaseError, models, transaction

from console.errors import UserError
from projects.models import RequestCount, User

log = logging.getLogger(__name__)

WINDOW_SECONDS = 60
PARTS = 100
"""The part of the limit that a process counts by itself is one of so many."""
KEEP_WINDOWS = 10
BATCH = 1000


class TooManyRequests(UserError):
    """The user's tokens have made all requests of this minute. `wait` is in seconds."""

    status = 429

    def __init__(self, limit: int, wait: int) -> None:
        unit = "second" if wait == 1 else "seconds"
        super().__init__(
            f"Your tokens made more than {limit:,} requests within a minute. Wait {wait} {unit}, "
            "and ask for more at once: lists have up to 500 items, and a batch 100 workloads."
        )
        self.wait = wait


@dataclass(slots=True)
class _Count:
    """What one process knows of a user's requests in one window."""

    total: int = 0
    """Of all processes, as the database last said."""
    unsaved: int = 0


class RequestCounter:
    """The counts of one process: of the present window only, so they do not grow."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._window = 0
        self._counts: dict[int, _Count] = {}

    def forget(self) -> None:
        """Start anew, as after a start of the process."""
        with self._lock:
            self._window, self._counts = 0, {}

    def count_request(self, user: User, limit: int) -> None:
        """Count a request. Raises TooManyRequests for one too many, which is not counted."""
        with self._lock:
            # Taken within the lock: a thread that waited would count in a minute that is over, and
            # forget the counts of this one.
            now = time.time()
            window = int(now // WINDOW_SECONDS)
            if window != self._window:
                self._window, self._counts = window, {}
            count = self._counts.setdefault(user.pk, _Count())
            if count.total + count.unsaved >= limit:
                wait = math.ceil((window + 1) * WINDOW_SECONDS - now)
                raise TooManyRequests(limit, max(1, wait))
            count.unsaved += 1
            if count.unsaved < max(1, limit // PARTS):
                return
            # Taken before the lock is given back: no other thread saves the same ones.
            unsaved, count.unsaved = count.unsaved, 0
            count.total += unsaved
        try:
            total = _add_requests(user.pk, window, unsaved)
        except DatabaseError:
            # A request that only reads can do so where nothing can be written, as on a full disk.
            log.exception("requests were not counted")
            return
        with self._lock:
            # Threads may come back in another order than they saved.
            count.total = max(count.total, total)


COUNTER = RequestCounter()
"""That of this process."""


def count_request(user: User) -> None:
    """Count a request of the user's tokens. Raises TooManyRequests for one too many."""
    limit = settings.OPTIONS.requests_per_minute
    if limit:
        COUNTER.count_request(user, limit)


def delete_old_counts() -> None:
    """Delete counts of minutes that are over."""
    old = RequestCount.objects.filter(minute__lt=int(time.time() // WINDOW_SECONDS) - KEEP_WINDOWS)
    while ids := list(old.order_by().values_list("pk", flat=True)[:BATCH]):
        RequestCount.objects.filter(pk__in=ids).delete()


def _add_requests(user_id: int, window: int, number: int) -> int:
    """Add requests to a user's count of a window, and return the count of all processes."""
    rows = RequestCount.objects.filter(user_id=user_id, minute=window)
    with transaction.atomic():
        added = models.F("requests") + number
        if not rows.update(requests=added):
            RequestCount.objects.bulk_create(
                [RequestCount(user_id=user_id, minute=window)], ignore_conflicts=True
            )
            rows.update(requests=added)
        return rows.values_list("requests", flat=True).get()
