"""The work loop of all controllers: a queue of unique keys, timers, and retries with growing
delays.
"""

import asyncio
import heapq
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from localkube.errors import ApiError
from localkube.objects import Objects
from localkube.resources.resource import Resource
from localkube.store import Change

Key = tuple[str, str]
"""What a controller reconciles at once: mostly (namespace, name)."""

Trigger = Callable[[Change], Iterable[Key]]
"""Returns the keys that a change affects.

Runs inside the write that made the change, so it must be quick and must not write.
"""

SLICE_SECONDS = 0.010
"""Seconds of work after which the loop yields to the API and the kubelet."""

FIRST_RETRY_SECONDS = 0.1
MAX_RETRY_SECONDS = 30.0
"""The longest delay before a failed key is tried again; the delay doubles from the first."""

log = logging.getLogger(__name__)


class Controller(Protocol):
    """A controller that the loop runs. `reconcile` must be safe to run at any time, any number of
    times.

    The loop makes each call one store transaction; an exception rolls back all that it wrote.
    """

    @property
    def name(self) -> str: ...

    def triggers(self) -> Mapping[Resource, Trigger]:
        """Return, for each kind to follow, the function that finds the affected keys."""
        ...

    def reconcile(self, key: Key) -> float | None:
        """Bring the objects that `key` names in line with the store.

        Returns the seconds until the next reconciliation, or None.
        """
        ...


WorkItem = tuple[Controller, Key]
"""A controller and a key to reconcile."""


class ControllerLoop:
    """Run controllers on the event loop's thread, one reconcile at a time.

    `elapsed` is a monotonic clock in seconds.
    """

    def __init__(self, objects: Objects, *, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._objects = objects
        self._elapsed = elapsed
        self._queue: deque[WorkItem] = deque()
        self._queued: set[WorkItem] = set()
        self._timers: list[tuple[float, int, WorkItem]] = []
        self._due_times: dict[WorkItem, float] = {}
        self._failures: dict[WorkItem, int] = {}
        self._timer_number = 0
        self._work_added = asyncio.Event()
        self._stopping = False
        self._unsubscribe: list[Callable[[], None]] = []

    def add_controller(self, controller: Controller) -> None:
        """Follow the controller's kinds from now on, and queue every key that already exists."""
        for resource, trigger in controller.triggers().items():
            for record in self._objects.store.list(resource.key):
                self._enqueue_all(controller, trigger(Change("ADDED", resource.key, record, None)))
            self._unsubscribe.append(
                self._objects.subscribe(resource, self._build_subscriber(controller, trigger))
            )

    def enqueue(self, controller: Controller, key: Key) -> None:
        """Queue a key for reconciliation, unless it already waits."""
        item = (controller, key)
        if item not in self._queued:
            self._queued.add(item)
            self._queue.append(item)
            self._work_added.set()

    async def run(self) -> None:
        """Work until `stop` is called."""
        while not self._stopping:
            self._enqueue_due_timers()
            pause = self._process_queue(SLICE_SECONDS)
            if pause == 0:
                await asyncio.sleep(0)
                continue
            self._work_added.clear()
            try:
                await asyncio.wait_for(self._work_added.wait(), pause)
            except TimeoutError:
                continue

    def stop(self) -> None:
        """End `run` after the current reconcile, and follow nothing any more."""
        self._stopping = True
        self._work_added.set()
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe.clear()

    def run_until_idle(self, limit: int = 1000) -> int:
        """Run all queued and due keys until none is left; return the number of reconciles.

        For tests: exceptions of reconciles are raised, and more than `limit` reconciles is a
        RuntimeError.
        """
        count = 0
        self._enqueue_due_timers()
        while self._queue:
            if count >= limit:
                controller, key = self._queue[0]
                raise RuntimeError(f"still busy after {limit} reconciles: {controller.name} {key}")
            item = self._pop_item()
            self._schedule_next(item, self._reconcile(item))
            self._enqueue_due_timers()
            count += 1
        return count

    def _build_subscriber(
        self, controller: Controller, trigger: Trigger
    ) -> Callable[[Change], None]:
        return lambda change: self._enqueue_all(controller, trigger(change))

    def _enqueue_all(self, controller: Controller, keys: Iterable[Key]) -> None:
        for key in keys:
            self.enqueue(controller, key)

    def _process_queue(self, seconds: float) -> float | None:
        """Process the queue for at most `seconds`.

        Returns 0 when more is waiting, else the seconds until the next timer, or None without
        timers.
        """
        end = self._elapsed() + seconds
        while self._queue:
            self._try_reconcile(self._pop_item())
            if self._elapsed() >= end:
                return 0
        if not self._timers:
            return None
        return max(0.0, self._timers[0][0] - self._elapsed())

    def _pop_item(self) -> WorkItem:
        item = self._queue.popleft()
        self._queued.discard(item)
        # Drop the item's timer: this reconcile sees all that the timer was set for, and its answer
        # sets the next one.
        self._due_times.pop(item, None)
        return item

    def _reconcile(self, item: WorkItem) -> float | None:
        """Reconcile one item as one transaction: killed or failing midway, it never happened."""
        controller, key = item
        with self._objects.store.transaction():
            return controller.reconcile(key)

    def _try_reconcile(self, item: WorkItem) -> None:
        controller, key = item
        try:
            delay = self._reconcile(item)
        except Exception as error:
            # Catch everything: one bad object must not stop all the others.
            tries = self._failures.get(item, 0)
            self._failures[item] = tries + 1
            pause = min(MAX_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** min(tries, 16))
            # No traceback for a refusal: its message says all, and a full disk refuses every
            # controller every time.
            trace = None if isinstance(error, ApiError) else error
            log.error(
                "%s could not reconcile %s: %s; next try in %.1f s",
                controller.name,
                "/".join(key),
                error,
                pause,
                exc_info=trace,
            )
            self._set_timer(item, pause)
        else:
            self._schedule_next(item, delay)

    def _schedule_next(self, item: WorkItem, delay: float | None) -> None:
        self._failures.pop(item, None)
        if delay is None:
            return
        if delay <= 0:
            self.enqueue(*item)
        else:
            self._set_timer(item, delay)

    def _set_timer(self, item: WorkItem, seconds: float) -> None:
        due = self._elapsed() + seconds
        self._due_times[item] = due
        # The number breaks ties, as heapq would otherwise compare controllers, which have no order.
        self._timer_number += 1
        heapq.heappush(self._timers, (due, self._timer_number, item))

    def _enqueue_due_timers(self) -> None:
        now = self._elapsed()
        while self._timers and self._timers[0][0] <= now:
            due, _, item = heapq.heappop(self._timers)
            if self._due_times.get(item) == due:
                del self._due_times[item]
                self.enqueue(*item)
