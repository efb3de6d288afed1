"""Fetching batches of streams: each shard is read whole by one worker at a time.

The shards take turns, as the worker processes of torch do. When the worker that reads a shard is
gone, another one reads it again from its start, and sends what was not here yet.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from muster_delivery.errors import DeliveryError
from muster_delivery.fetching import ArrivedBatch, Fetcher, RankPlace
from muster_delivery.links import WorkerLinks
from muster_delivery.sources.source import EpochKey, StreamSource
from muster_delivery.store import Buffer


class ShardCourse:
    """The batches of one shard that one rank gets, by their place among those."""

    def __init__(self, shard: int, stream: int, start: int, count: int) -> None:
        self.shard = shard
        self.stream = stream
        """The number by which workers are chosen, so that all ranks choose the same."""
        self.start = start
        self.count = count
        """How many the script has been handed."""
        self.end: int | None = None
        """How many there are, once known."""
        self.here: dict[int, ArrivedBatch] = {}
        self.requested: dict[int, float] = {}
        self.owner: int | None = None

    def is_over(self) -> bool:
        """Say whether the script has been handed all of it."""
        return self.end is not None and self.count >= self.end


class StreamFetcher(Fetcher):
    """Fetches shard by shard in turns."""

    def __init__(
        self,
        links: WorkerLinks,
        key: EpochKey,
        place: RankPlace,
        source: StreamSource,
        shards: Sequence[tuple[int, int]],
    ) -> None:
        super().__init__(links, key, place)
        self._step = place.world if source.is_split else 1
        self._offset = place.rank if source.is_split else 0
        first = 0 if source.is_split else place.rank * len(shards)
        self._courses = [
            ShardCourse(shard, first + shard, start, count)
            for shard, (start, count) in enumerate(shards)
        ]
        self._requests: dict[int, tuple[ShardCourse, int, int]] = {}

    @property
    def shards(self) -> list[tuple[int, int]]:
        """Return where each shard began and how much of it has been handed out."""
        return [(course.start, course.count) for course in self._courses]

    def find_next(self) -> ArrivedBatch | None:
        course = self._find_turn()
        batch = course.here.pop(course.count, None) if course else None
        if course is not None and batch is not None:
            course.count += 1
        return batch

    def _find_turn(self) -> ShardCourse | None:
        """Return the shard whose turn it is: the first of those that were handed out least."""
        open_courses = [course for course in self._courses if not course.is_over()]
        return min(open_courses, key=lambda course: course.count) if open_courses else None

    def is_over(self) -> bool:
        return self._find_turn() is None

    def add_worker(self, worker: int) -> None:
        self.dispatch()

    def remove_worker(self, worker: int) -> None:
        for course in self._courses:
            if course.owner == worker:
                course.owner = None
                course.requested.clear()
        numbers = [number for number, (_, _, owner) in self._requests.items() if owner == worker]
        for number in numbers:
            del self._requests[number]
        self.dispatch()

    def accept_answer(
        self, worker: int, answer: Mapping[str, Any], frames: Sequence[Buffer]
    ) -> None:
        request = self._requests.pop(answer.get("id", 0), None)
        if request is None:
            return
        course, place, _ = request
        course.requested.pop(place, None)
        state = answer.get("state")
        if state == "batch":
            if place >= course.count and place not in course.here:
                course.here[place] = self.read_batch(answer, frames)
        elif state == "end":
            self._note_end(course, place)
        elif state == "error":
            self.note_error(answer)
        self.dispatch()

    def hedge(self) -> None:
        """Wait on: another worker would have to read all that came before."""

    def _note_end(self, course: ShardCourse, place: int) -> None:
        course.end = place if course.end is None else min(course.end, place)
        if any(position >= course.end for position in course.here):
            self.error = DeliveryError(
                "a stream ended earlier when it was read again: a data worker can take over only "
                "what is the same each time it is read"
            )

    def dispatch(self) -> None:
        window = max(1, self.use.window // len(self._courses))
        for course in self._courses:
            self._request_missing(course, window)

    def _request_missing(self, course: ShardCourse, window: int) -> None:
        for place in range(course.count, course.count + window):
            if course.end is not None and place >= course.end:
                return
            if place in course.here or place in course.requested:
                continue
            if not self._request(course, place):
                return

    def _request(self, course: ShardCourse, place: int) -> bool:
        if course.owner is None:
            course.owner = self._choose_owner(course.stream)
        if course.owner is None:
            return False
        request = self.build_request("stream", place - course.count)
        request.update(shard=course.shard, stream=course.stream)
        request["number"] = self._number(course, place)
        request["floor"] = self._number(course, course.count)
        request["start"] = course.start
        number = self.links.send(course.owner, request)
        if number is None:
            course.owner = None
            course.requested.clear()
            return False
        self._requests[number] = (course, place, course.owner)
        course.requested[place] = time.monotonic()
        return True

    def _number(self, course: ShardCourse, place: int) -> int:
        """Return the number within the stream of a rank's own place."""
        return course.start + place * self._step + self._offset

    def _choose_owner(self, stream: int) -> int | None:
        """Return the first worker that is there, from the stream's own one on."""
        links = self.links.links
        order = [links[(stream + turn) % len(links)] for turn in range(len(links))]
        return next((link.number for link in order if link.is_ready), None)
