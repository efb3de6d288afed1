"""What the sources of a cluster have seen and the writer has not written: bounded, jobs first."""

import threading
import time
from collections import Counter

from workloads.following.sources import (
    Heartbeat,
    Item,
    ListDone,
    ListPage,
    Source,
    SourceFailed,
    SourceRemoved,
)
from workloads.following.waiting_events import EVENTS_AT_ONCE, WaitingEvents
from workloads.journal import Observation, Subject, WorkloadNames, uid_of

OBJECTS = 1000
"""Changes of jobs, PodGroups and pods that may wait; their sources wait meanwhile."""
BATCH_SIZE = 400
"""Changes of jobs, PodGroups and pods of one write."""
POLL_SECONDS = 0.2
"""Seconds between two looks whether a source that waits for room is to end."""

Sign = Heartbeat | SourceFailed | SourceRemoved


class WaitingItems:
    """The queue between the sources of a cluster and its writer.

    Signs of life never wait for room and are taken first, then jobs and pods, then some events: a
    storm of events neither delays what happens to jobs nor makes the cluster look silent. An object
    that changes again while it waits is written once, in its latest state.
    """

    def __init__(self, names: WorkloadNames) -> None:
        self._condition = threading.Condition()
        self._names = names
        self._signs: dict[Source, list[Sign]] = {}
        self._objects: dict[object, Item] = {}
        self._arrived_at: dict[object, float] = {}
        """When each of the objects arrived first, in monotonic seconds."""
        self.oldest_taken_at: float | None = None
        """When the oldest object arrived that was taken last; None where there was none."""
        self._events = WaitingEvents(names)
        self._listing_number = 0
        self._page_count = 0
        self._is_stalled = False

    def add_item(self, item: Item, end: threading.Event) -> bool:
        """Let an item wait to be written. Return False once `end` is set."""
        with self._condition:
            while not end.is_set():
                if self._try_put(item):
                    self._condition.notify_all()
                    return True
                self._condition.wait(POLL_SECONDS)
        return False

    def wait(self, seconds: float) -> int:
        """Wait until something can be written. Return how many changes of objects wait."""
        deadline = time.monotonic() + seconds
        with self._condition:
            while not self._has_work() and (rest := deadline - time.monotonic()) > 0:
                self._condition.wait(rest)
            return len(self._objects)

    @property
    def has_page(self) -> bool:
        """Return whether a page of a listing waits, whose source waits until it is written."""
        return self._page_count > 0

    def measure_waiting(self) -> tuple[int, float]:
        """Return how many changes of objects wait, and for how many seconds the oldest does."""
        with self._condition:
            oldest_at = next(iter(self._arrived_at.values()), None)
            waited = 0.0 if oldest_at is None else time.monotonic() - oldest_at
            return len(self._objects), waited

    def take(self, event_limit: int = EVENTS_AT_ONCE) -> list[Item]:
        """Return what is to be written next, in this order; nothing if nothing waits."""
        with self._condition:
            batch: list[Item] = [sign for signs in self._signs.values() for sign in signs]
            self._signs.clear()
            # Objects lie in the order of their first arrival.
            self.oldest_taken_at = next(iter(self._arrived_at.values()), None)
            for _ in range(min(BATCH_SIZE, len(self._objects))):
                key = next(iter(self._objects))
                item = self._objects.pop(key)
                del self._arrived_at[key]
                batch.append(item)
                if isinstance(item, ListPage):
                    self._page_count -= 1
                    # Its source waits until it is written.
                    break
            batch += self._events.take(event_limit)
            self._condition.notify_all()
        return batch

    def refresh_names(self) -> None:
        """Read the names of new workloads if an event may be about one. Raises DatabaseError."""
        if not (self._events.has_unknown and self._names.is_refresh_due):
            return
        self._names.refresh()
        with self._condition:
            self._events.sort_unknown()
            self._condition.notify_all()

    def set_stalled(self, is_stalled: bool) -> None:
        """Say whether nothing can be written at the moment: events then wait, too."""
        with self._condition:
            self._is_stalled = is_stalled

    def take_left_out(self) -> Counter[Subject]:
        """Return how many events were left out since the last call, by workload."""
        with self._condition:
            left_out, self._events.left_out = self._events.left_out, Counter()
        return left_out

    def _has_work(self) -> bool:
        is_unknown_due = self._events.has_unknown and self._names.is_refresh_due
        return bool(self._signs or self._objects or self._events or is_unknown_due)

    def _try_put(self, item: Item) -> bool:
        """Let an item wait. Return False if there is no room for it."""
        match item:
            case Heartbeat() | SourceFailed() | SourceRemoved():
                self._put_sign(item)
                return True
            case ListPage() | ListDone() if item.source.kind == "event":
                self._events.add_page(item)
                return True
            case Observation() if item.kind == "event":
                return self._events.add_event(item, may_leave_out=not self._is_stalled)
        return self._put_object(item)

    def _put_sign(self, sign: Sign) -> None:
        """Let a sign of a source wait: its latest state, and the failure before it."""
        signs = self._signs.get(sign.source, [])
        failures = [each for each in signs if isinstance(each, SourceFailed)]
        is_recovery = isinstance(sign, Heartbeat)
        self._signs[sign.source] = [*failures, sign] if is_recovery else [sign]

    def _put_object(self, item: Item) -> bool:
        key: object = object()
        if isinstance(item, Observation):
            # What was seen before a listing is not replaced by what was seen after it: the listing
            # decides what has vanished, and is between them.
            key = (item.kind, uid_of(item.object) or key, self._listing_number)
            before = self._objects.get(key)
            if isinstance(before, Observation):
                self._objects[key] = before if before.is_gone and not item.is_gone else item
                return True
        if len(self._objects) >= OBJECTS:
            return False
        if not isinstance(item, Observation):
            self._listing_number += 1
            self._page_count += isinstance(item, ListPage)
        self._objects[key] = item
        self._arrived_at[key] = time.monotonic()
        return True
