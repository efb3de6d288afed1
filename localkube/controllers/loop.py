"""The work loop of all controllers: keys that take turns, timers, retries with growing delays."""

import asyncio
import heapq
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from localkube.errors import ApiError
from localkube.objects import Objects
from localkube.resources.resource import Resource
from localkube.store import Change
from localkube.turns import TurnWatch

Key = tuple[str, str]
"""What a controller reconciles at once: mostly (namespace, name)."""

Trigger = Callable[[Change], Iterable[Key]]
"""Returns the keys that a change affects.

Runs inside the write that made the change, so it must be quick and must not write.
"""

MAX_EMPTY_LANES = 1000

SLICE_SECONDS = 0.010
"""Seconds of work after which the loop yields to the API and the kubelet."""

TURNS_OF_OTHERS = 4
"""How often all others on the event loop get a turn between two slices.

A request takes several turns: to read it, to answer it, and one for each part of a long list.
"""

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

Lane = tuple[str, str]
"""A controller and the first part of its keys: mostly a namespace."""


class WorkQueue:
    """Keys that wait, each once, in lanes that share the time: the one that has used least is next.

    So ten thousand keys of one namespace do not stand before the first key of another, and a
    controller with much to do, or with long turns, does not stand before the others.
    """

    def __init__(self) -> None:
        self._lanes: dict[Lane, dict[WorkItem, None]] = {}
        self._order: list[tuple[float, int, Lane]] = []
        """A heap of the lanes with items: the time used, when it was entered, and its name."""
        self._entries = 0
        self._used: dict[Lane, float] = {}
        """The time that lanes without items have used, as far as it still counts."""
        self._now = 0.0
        """The time that the lane of the last item had used: a new lane begins there."""

    def __bool__(self) -> bool:
        return bool(self._order)

    def add(self, item: WorkItem) -> bool:
        """Add an item at the end of its lane; return False when it already waits."""
        name = _find_lane(item)
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = {}
            # A lane that was empty for a moment does not come before those that waited.
            self._enter(name, max(self._now, self._used.pop(name, 0.0)))
        if item in lane:
            return False
        lane[item] = None
        return True

    def peek(self) -> WorkItem:
        return next(iter(self._lanes[self._order[0][2]]))

    def pop(self) -> WorkItem:
        """Remove and return the next item; `charge` must follow."""
        self._now, _, name = heapq.heappop(self._order)
        lane = self._lanes[name]
        item = next(iter(lane))
        del lane[item]
        return item

    def charge(self, item: WorkItem, seconds: float) -> None:
        """Count the time of the item that was popped last to its lane."""
        name = _find_lane(item)
        if self._lanes[name]:
            self._enter(name, self._now + seconds)
        else:
            del self._lanes[name]
            self._used[name] = self._now + seconds
            if len(self._used) > MAX_EMPTY_LANES:
                self._used = {lane: used for lane, used in self._used.items() if used > self._now}

    def _enter(self, name: Lane, used: float) -> None:
        # The number lets lanes that have used the same take turns.
        self._entries += 1
        heapq.heappush(self._order, (used, self._entries, name))


def _find_lane(item: WorkItem) -> Lane:
    controller, key = item
    return controller.name, key[0]


class ControllerLoop:
    """Run controllers on the event loop's thread, one reconcile at a time.

    `elapsed` is a monotonic clock in seconds. `turns` measures each reconcile.
    """

    def __init__(
        self,
        objects: Objects,
        *,
        elapsed: Callable[[], float] = time.monotonic,
        turns: TurnWatch | None = None,
    ) -> None:
        self._objects = objects
        self._elapsed = elapsed
        self.turns = turns or TurnWatch()
        self._queue = WorkQueue()
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
            subscriber = self._build_subscriber(controller, trigger)
            for record in self._objects.store.list(resource.key):
                subscriber(Change("ADDED", resource.key, record, None))
            self._unsubscribe.append(self._objects.subscribe(resource, subscriber))

    def enqueue(self, controller: Controller, key: Key) -> None:
        """Queue a key for reconciliation, unless it already waits."""
        if self._queue.add((controller, key)):
            self._work_added.set()

    async def run(self) -> None:
        """Work until `stop` is called."""
        while not self._stopping:
            self._enqueue_due_timers()
            pause = self._process_queue(SLICE_SECONDS)
            if pause == 0:
                for _ in range(TURNS_OF_OTHERS):
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
                controller, key = self._queue.peek()
                raise RuntimeError(f"still busy after {limit} reconciles: {controller.name} {key}")
            item = self._pop_item()
            try:
                delay = self._reconcile(item)
            finally:
                self._queue.charge(item, 0)
            self._schedule_next(item, delay)
            self._enqueue_due_timers()
            count += 1
        return count

    def _build_subscriber(
        self, controller: Controller, trigger: Trigger
    ) -> Callable[[Change], None]:
        def follow(change: Change) -> None:
            try:
                for key in trigger(change):
                    self.enqueue(controller, key)
            except Exception:
                # Catch everything: an object that one controller cannot read must neither fail the
                # write that stored it nor, at the start, stop the server.
                log.exception(
                    "%s could not read %s %s/%s",
                    controller.name,
                    change.key,
                    change.record.namespace,
                    change.record.name,
                )

        return follow

    def _process_queue(self, seconds: float) -> float | None:
        """Process the queue for at most `seconds`.

        Returns 0 when more is waiting, else the seconds until the next timer, or None without
        timers.
        """
        end = self._elapsed() + seconds
        while self._queue:
            started, item = self._elapsed(), self._pop_item()
            self._try_reconcile(item)
            self._queue.charge(item, self._elapsed() - started)
            if self._elapsed() >= end:
                return 0
        if not self._timers:
            return None
        return max(0.0, self._timers[0][0] - self._elapsed())

    def _pop_item(self) -> WorkItem:
        item = self._queue.pop()
        # Drop the item's timer: this reconcile sees all that the timer was set for, and its answer
        # sets the next one.
        self._due_times.pop(item, None)
        return item

    def _reconcile(self, item: WorkItem) -> float | None:
        """Reconcile one item as one transaction: killed or failing midway, it never happened."""
        controller, key = item
        with (
            self.turns.measure(controller.name, "/".join(key)),
            self._objects.store.transaction(),
        ):
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
