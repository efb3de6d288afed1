"""Fetching batches that any data worker can load: whoever is free gets the next one.

A batch that is far ahead stays with its worker until the rank has room: so all workers load always,
and a rank's memory stays small. The work of a worker that is gone is given out again.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster_delivery.fetching import ArrivedBatch, Fetcher, RankPlace
from muster_delivery.links import WorkerLink, WorkerLinks
from muster_delivery.plan import PlannedBatch, RankPlan, encode_index
from muster_delivery.sources.source import EpochKey
from muster_delivery.store import Buffer

LOOKAHEAD = 2048
"""Batches ahead of the script that are given out at most."""
FULL = 0.8
"""A store as full as this gets nothing more that it would have to keep."""
LATE_SECONDS = 5.0
"""A batch that is awaited so long is asked of another worker too."""


@dataclass(frozen=True)
class LoadRequest:
    """One request on its way."""

    worker: int
    position: int
    is_load: bool
    """Whether the worker loads for it; else the batch lies there ready."""
    since: float


class IndexedFetcher(Fetcher):
    """Fetches by position; `plan` says what each position is."""

    def __init__(
        self, links: WorkerLinks, key: EpochKey, place: RankPlace, plan: RankPlan, start: int
    ) -> None:
        super().__init__(links, key, place)
        self._plan = plan
        self._head = self._next = start
        self._returned: list[int] = []
        """Positions before `_next` that nobody works on: a heap."""
        self._here: dict[int, ArrivedBatch] = {}
        self._kept: dict[int, int] = {}
        """Positions that a worker keeps ready, and which."""
        self._kept_order: list[int] = []
        """Positions that are or were kept: a heap."""
        self._requests: dict[int, LoadRequest] = {}
        self._requested: dict[int, set[int]] = {}
        """The workers of which a position is requested."""
        self._load_seconds = 1.0
        """How long a worker takes for a batch, smoothed."""
        self._has_measured = False

    def get_head(self) -> PlannedBatch:
        """Return the next batch in order."""
        with self.links.changed:
            return self._plan.get_batch(self._head)

    def step_on(self) -> None:
        """Go on after a batch that the rank has loaded itself."""
        with self.links.changed:
            if (batch := self._here.pop(self._head, None)) is not None:
                self.use.remove(batch)
            self._head += 1
            self.dispatch()

    def find_next(self) -> ArrivedBatch | None:
        batch = self._here.pop(self._head, None)
        if batch is not None:
            self._head += 1
        return batch

    def is_over(self) -> bool:
        return self._head >= len(self._plan)

    def add_worker(self, worker: int) -> None:
        self.dispatch()

    def remove_worker(self, worker: int) -> None:
        positions = [position for position, keeper in self._kept.items() if keeper == worker]
        for position in positions:
            del self._kept[position]
            heapq.heappush(self._returned, position)
        for number, request in list(self._requests.items()):
            if request.worker == worker:
                del self._requests[number]
                self._drop_request(request)
        self.dispatch()

    def _drop_request(self, request: LoadRequest) -> None:
        """Give a position out again that no other worker works on."""
        workers = self._requested.get(request.position)
        if workers is None:
            return
        workers.discard(request.worker)
        if not workers:
            del self._requested[request.position]
            heapq.heappush(self._returned, request.position)

    def accept_answer(
        self, worker: int, answer: Mapping[str, Any], frames: Sequence[Buffer]
    ) -> None:
        request = self._requests.pop(answer.get("id", 0), None)
        if request is None:
            return
        if isinstance(seconds := answer.get("seconds"), (int, float)):
            share = 0.2 if self._has_measured else 1.0
            self._load_seconds += share * (float(seconds) - self._load_seconds)
            self._has_measured = True
        state = answer.get("state")
        if state == "batch":
            self._accept_batch(request, answer, frames)
        elif state == "kept":
            if self._is_awaited(request.position):
                self._note_kept(request.position, worker)
                self._requested.pop(request.position, None)
        elif state == "error":
            self.note_error(answer)
        else:
            self._drop_request(request)
        self.dispatch()

    def _is_awaited(self, position: int) -> bool:
        """Say whether a position is still to come and neither here nor kept."""
        return position >= self._head and position not in self._here and position not in self._kept

    def _accept_batch(
        self, request: LoadRequest, answer: Mapping[str, Any], frames: Sequence[Buffer]
    ) -> None:
        # Two workers may have loaded the same batch: the first one counts.
        if request.position >= self._head and request.position not in self._here:
            self._here[request.position] = self.read_batch(answer, frames)
            self._kept.pop(request.position, None)
        self._requested.pop(request.position, None)

    def dispatch(self) -> None:
        window = self._head + self.use.window
        while (position := self._find_unassigned()) is not None:
            self._fetch_kept(window)
            worker = self._choose_worker(must_send=position < window)
            if worker is None:
                return
            self._step_over(position)
            self._request(worker, position, is_load=True)
        self._fetch_kept(window)

    def _find_unassigned(self) -> int | None:
        """Return the next position that nobody works on, within the lookahead."""
        while self._returned and not self._is_open(self._returned[0]):
            heapq.heappop(self._returned)
        if self._returned:
            return self._returned[0]
        limit = min(len(self._plan), self._head + LOOKAHEAD)
        while self._next < limit:
            keeper = self._find_keeper(self._next)
            if keeper is None:
                return self._next
            self._note_kept(self._next, keeper)
            self._next += 1
        return None

    def _note_kept(self, position: int, worker: int) -> None:
        self._kept[position] = worker
        heapq.heappush(self._kept_order, position)

    def _fetch_kept(self, window: int) -> None:
        """Ask for what lies ready and has room here now."""
        while self._kept_order and self._kept_order[0] < window:
            position = heapq.heappop(self._kept_order)
            keeper = self._kept.pop(position, None)
            if keeper is not None:
                self._request(keeper, position, is_load=False)

    def _is_open(self, position: int) -> bool:
        return self._is_awaited(position) and position not in self._requested

    def _step_over(self, position: int) -> None:
        if self._returned and self._returned[0] == position:
            heapq.heappop(self._returned)
        elif position == self._next:
            self._next += 1

    def _find_keeper(self, position: int) -> int | None:
        """Return the worker that has prepared a position before this rank started."""
        number = self._plan.get_batch(position).number
        link = self.links.links[number % len(self.links.links)]
        if not link.is_ready:
            return None
        prepared = link.greeting.get("prepared")
        if not isinstance(prepared, list) or link.greeting.get("epoch") != self.key.epoch:
            return None
        place = number // len(self.links.links)
        return link.number if any(start <= place < stop for start, stop in prepared) else None

    def _choose_worker(self, *, must_send: bool) -> int | None:
        """Return the worker with the least to do; None where all have enough."""
        loads = dict.fromkeys((link.number for link in self.links.list_ready()), 0)
        for request in self._requests.values():
            if request.is_load and request.worker in loads:
                loads[request.worker] += 1
        free = [
            number
            for number, load in loads.items()
            if load < self._pipeline and (must_send or self._has_room(self.links.links[number]))
        ]
        return min(free, key=lambda number: loads[number]) if free else None

    @staticmethod
    def _has_room(link: WorkerLink) -> bool:
        return link.fill < FULL

    @property
    def _pipeline(self) -> int:
        """Return how many loads one worker is asked for at once.

        A batch that waits behind another cannot be taken by whoever is free first: so only quick
        loads are lined up, to hide the way there and back.
        """
        if self._load_seconds >= 0.2:
            return 1
        return 2 if self._load_seconds >= 0.02 else 8

    def _request(self, worker: int, position: int, *, is_load: bool) -> None:
        batch = self._plan.get_batch(position)
        request = self.build_request("load", position - self._head)
        request["number"] = batch.number
        request["index"] = encode_index(batch.index)
        request["send"] = position < self._head + self.use.window
        number = self.links.send(worker, request)
        if number is None:
            heapq.heappush(self._returned, position)
            return
        self._requests[number] = LoadRequest(worker, position, is_load, time.monotonic())
        self._requested.setdefault(position, set()).add(worker)

    def hedge(self) -> None:
        workers = self._requested.get(self._head)
        if not workers:
            return
        since = min(r.since for r in self._requests.values() if r.position == self._head)
        if time.monotonic() - since < max(LATE_SECONDS, 4 * self._load_seconds):
            return
        busy = {request.worker for request in self._requests.values() if request.is_load}
        idle = [
            link.number for link in self.links.list_ready() if link.number not in busy | workers
        ]
        if idle:
            self._request(idle[0], self._head, is_load=True)
