"""Streams that a data worker reads: each open one with where it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from muster_delivery.requests import BatchRequest
from muster_delivery.shelf import BatchShelf, NoRoom
from muster_delivery.sources.source import EpochKey, LoadedBatch, StreamSource

StreamName = tuple[EpochKey, int]
"""An epoch and the number of a stream in it."""
MOST_OPEN = 1024
"""Streams that are open at once; the oldest is closed, and read again when it is needed."""


@dataclass
class OpenStream:
    """One stream that is being read."""

    batches: Iterator[LoadedBatch]
    next_number: int = 0
    is_over: bool = False
    floors: dict[int, int] = field(default_factory=dict)
    """The lowest number that each rank still needs."""

    def find_floor(self, request: BatchRequest, *, is_split: bool) -> int:
        """Return the lowest number that any rank still needs."""
        self.floors[request.rank] = request.floor
        if is_split and len(self.floors) < request.world:
            return request.start
        return min(self.floors.values())


class StreamReader:
    """Reads streams as far as they are asked for, and keeps what others will ask for."""

    def __init__(self, source: StreamSource, shelf: BatchShelf) -> None:
        self._source = source
        self._shelf = shelf
        self._open: dict[StreamName, OpenStream] = {}

    def build_key(self, key: EpochKey, stream: int, number: int) -> tuple[object, ...]:
        """Return what a batch of a stream is kept by."""
        return ("stream", key.epoch, key.seed, stream, number)

    def read_batch(self, request: BatchRequest) -> LoadedBatch | None:
        """Return the batch of a number; None where the stream has ended before."""
        stream = self._open.get((request.key, request.stream))
        floors = stream.floors if stream else {}
        if stream is None or stream.next_number > request.number:
            stream = self._open_stream(request, floors)
        floor = stream.find_floor(request, is_split=self._source.is_split)
        while not stream.is_over:
            number, batch = stream.next_number, next(stream.batches, None)
            if batch is None:
                stream.is_over = True
                break
            stream.next_number += 1
            if number == request.number:
                return batch
            if number >= floor:
                # Without room it is read again when it is asked for.
                self._shelf.keep(self.build_key(request.key, request.stream, number), batch)
        return None

    def prepare_batch(self, request: BatchRequest) -> LoadedBatch | None:
        """Read the next batch of a stream and keep it; None at its end. Raises NoRoom."""
        stream = self._open.get((request.key, request.stream)) or self._open_stream(request, {})
        batch = None if stream.is_over else next(stream.batches, None)
        if batch is None:
            stream.is_over = True
            return None
        key = self.build_key(request.key, request.stream, stream.next_number)
        stream.next_number += 1
        if not self._shelf.keep(key, batch):
            raise NoRoom
        return batch

    def _open_stream(self, request: BatchRequest, floors: dict[int, int]) -> OpenStream:
        name = (request.key, request.stream)
        stale = [each for each in self._open if each[0].epoch < request.key.epoch]
        stale += list(self._open)[: max(0, len(self._open) - len(stale) - MOST_OPEN)]
        for each in [*stale, name]:
            self._open.pop(each, None)
        batches = self._source.open_stream(request.shard, request.key, request.world, request.rank)
        self._open[name] = OpenStream(batches, floors=floors)
        return self._open[name]
