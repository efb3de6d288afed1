"""The work loop of all controllers: a queue of keys without duplicates, timers, and retries with
growing delays.
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
"""What a controller looks at in one go: mostly (namespace, name)."""

Trigger = Callable[[Change], Iterable[Key]]
"""Says which keys a change concerns. Runs inside the write that made the change, so it must be
quick and must not write.
"""

SLICE_SECONDS = 0.010
"""Seconds of work after which the loop lets the API and the kubelet run."""

FIRST_RETRY_SECONDS = 0.1
MAX_RETRY_SECONDS = 30.0
"""Seconds before a failed key is tried again: the first, doubled each time up to the last."""

log = logging.getLogger(__name__)


class Controller(Protocol):
    """One kind of bringing in line. `reconcile` must be safe to run at any time, any number of
    times.

    The loop makes each call one transaction of the store; what it raises takes back all that it
    wrote.
    """

    @property
    def name(self) -> str: ...

    def triggers(self) -> Mapping[Resource, Trigger]:
        """For each kind to follow, which keys a change of it concerns."""
        ...

    def reconcile(self, key: Key) -> float | None:
        """Bring what `key` names in line with the store; gives the seconds after which to look
        again, if any.
        """
        ...


WorkItem = tuple[Controller, Key]


class ControllerLoop:
    """Runs controllers on the event loop's thread, one reconcile at a time. `elapsed` is a
    monotonic clock in seconds.
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
        """Follow what the controller follows from now on, and queue every key that exists
        already.
        """
        for resource, trigger in controller.triggers().items():
            for record in self._objects.store.list(resource.key):
                self._enqueue_all(controller, trigger(Change("ADDED", resource.key, record, None)))
            self._unsubscribe.append(
                self._objects.subscribe(resource, self._build_subscriber(controller, trigger))
            )

    def enqueue(self, controller: Controller, key: Key) -> None:
        """Look at the key soon; a key that waits already is not queued twice."""
        job = (controller, key)
        if job not in self._queued:
            self._queued.add(job)
            self._queue.append(job)
            self._work_added.set()

    async def run(self) -> None:
        """Work until `stop`."""
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
        """End `run` after the reconcile in hand, and follow nothing any more."""
        self._stopping = True
        self._work_added.set()
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe.clear()

    def run_until_idle(self, limit: int = 1000) -> int:
        """Run what is queued or due until nothing is; gives how many reconciles that took.

        For tests: an exception of a reconcile comes out here, and more than `limit` reconciles is a
        RuntimeError.
        """
        done = 0
        self._enqueue_due_timers()
        while self._queue:
            if done >= limit:
                controller, key = self._queue[0]
                raise RuntimeError(f"still busy after {limit} reconciles: {controller.name} {key}")
            job = self._pop_item()
            self._schedule_next(job, self._reconcile(job))
            self._enqueue_due_timers()
            done += 1
        return done

    def _build_subscriber(
        self, controller: Controller, trigger: Trigger
    ) -> Callable[[Change], None]:
        return lambda change: self._enqueue_all(controller, trigger(change))

    def _enqueue_all(self, controller: Controller, keys: Iterable[Key]) -> None:
        for key in keys:
            self.enqueue(controller, key)

    def _process_queue(self, seconds: float) -> float | None:
        """Work off the queue; gives 0 when more is waiting, else the seconds until the next timer
        (None: no timer).
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
        job = self._queue.popleft()
        self._queued.discard(job)
        # What the reconcile answers replaces the timer: it has seen everything the timer was set
        # for.
        self._due_times.pop(job, None)
        return job

    def _reconcile(self, item: WorkItem) -> float | None:
        """One reconcile is one transaction: killed or failing in the middle, it never happened."""
        controller, key = item
        with self._objects.store.transaction():
            return controller.reconcile(key)

    def _try_reconcile(self, item: WorkItem) -> None:
        controller, key = item
        try:
            again = self._reconcile(item)
        except Exception as error:
            # The edge of the loop: one bad object must not stop all the others.
            tries = self._failures.get(item, 0)
            self._failures[item] = tries + 1
            pause = min(MAX_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** min(tries, 16))
            # A refusal says all there is to say, and a full disk refuses every controller every
            # time.
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
            self._schedule_next(item, again)

    def _schedule_next(self, item: WorkItem, again: float | None) -> None:
        self._failures.pop(item, None)
        if again is None:
            return
        if again <= 0:
            self.enqueue(*item)
        else:
            self._set_timer(item, again)

    def _set_timer(self, item: WorkItem, seconds: float) -> None:
        due = self._elapsed() + seconds
        self._due_times[item] = due
        # The running number keeps controllers, which have no order, out of the comparison.
        self._timer_number += 1
        heapq.heappush(self._timers, (due, self._timer_number, item))

    def _enqueue_due_timers(self) -> None:
        now = self._elapsed()
        while self._timers and self._timers[0][0] <= now:
            due, _, job = heapq.heappop(self._timers)
            if self._due_times.get(job) == due:
                del self._due_times[job]
                self.enqueue(*job)
