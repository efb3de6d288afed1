"""What a data worker loads before any rank has started: its part of the first epoch."""

from __future__ import annotations

from abc import ABC, abstractmethod

from muster_delivery.plan import EpochPlan, build_batch_key, encode_index
from muster_delivery.requests import BatchRequest
from muster_delivery.settings import DeliverySettings
from muster_delivery.shelf import BatchShelf, NoRoom
from muster_delivery.sources.source import EpochKey, IndexedSource, StreamSource
from muster_delivery.streams import StreamReader


class Preparation(ABC):
    """Loads batch after batch until this worker's part of the units is here."""

    def __init__(self, part: int, shelf: BatchShelf) -> None:
        self.part = part
        """Elements that this worker prepares."""
        self.prepared = 0
        self.has_ended = False
        """Whether there is no more to prepare, or no more room."""
        self.is_full = False
        """Whether there is no more room."""
        self.shelf = shelf

    def is_over(self) -> bool:
        """Say whether the part is here or cannot become more."""
        return self.has_ended or self.prepared >= self.part

    @abstractmethod
    def prepare_next(self) -> None:
        """Load one batch and keep it."""

    def note_full(self) -> None:
        """End: there is no more room."""
        self.has_ended = self.is_full = True

    def list_prepared(self, world: int, seed: int) -> list[list[int]]:
        """Return ranges of what is still here for these ranks, as places of this worker."""
        return []


class IndexedPreparation(Preparation):
    """Loads every D-th batch of the first epoch, for D data workers."""

    def __init__(
        self, source: IndexedSource, settings: DeliverySettings, shelf: BatchShelf
    ) -> None:
        self._number, self._workers = settings.number, len(settings.workers)
        super().__init__(divide(settings.units, self._workers, self._number), shelf)
        self._source = source
        self._world = settings.world
        self._key = EpochKey(0, source.seed, source.sampler_epoch)
        self._place = 0
        self._plan: EpochPlan | None = None
        self._keys: dict[int, tuple[object, ...]] = {}

    def prepare_next(self) -> None:
        if self._plan is None:
            self._plan = EpochPlan(self._source, self._key, self._world)
        number = self._number + self._place * self._workers
        if number >= len(self._plan):
            self.has_ended = True
            return
        index = self._plan.get_index(number)
        batch = self._source.load_batch(index, self._key)
        key = build_batch_key(self._key, number, encode_index(index))
        if not self.shelf.keep(key, batch):
            self.note_full()
            return
        self._keys[self._place] = key
        self._place += 1
        self.prepared += batch.elements

    def list_prepared(self, world: int, seed: int) -> list[list[int]]:
        is_same_order = self._source.is_split and not self._source.shards_itself
        if world != self._world and not is_same_order:
            self.shelf.drop_keys(list(self._keys.values()))
            return []
        if seed != self._key.seed:
            # Not dropped: another rank may have the seed that this worker took.
            return []
        ranges: list[list[int]] = []
        # A copy: this is asked for in the server's thread, while another one may prepare.
        for place, key in list(self._keys.items()):
            if not self.shelf.has_batch(key):
                continue
            if ranges and ranges[-1][1] == place:
                ranges[-1][1] = place + 1
            else:
                ranges.append([place, place + 1])
        return ranges[:1000]


class StreamPreparation(Preparation):
    """Reads the streams of this worker in turns."""

    def __init__(
        self,
        source: StreamSource,
        settings: DeliverySettings,
        shelf: BatchShelf,
        reader: StreamReader,
    ) -> None:
        streams = source.shards * (1 if source.is_split else settings.world)
        workers = len(settings.workers)
        own = range(settings.number, streams, workers)
        super().__init__(sum(divide(settings.units, streams, each) for each in own), shelf)
        self._reader = reader
        self._requests = [
            BatchRequest(
                key=EpochKey(0, source.seed, source.sampler_epoch),
                world=settings.world,
                rank=stream // source.shards,
                number=0,
                ahead=0,
                shard=stream % source.shards,
                stream=stream,
            )
            for stream in own
        ]
        self._turn = 0

    def prepare_next(self) -> None:
        if not self._requests:
            self.has_ended = True
            return
        if self.shelf.fill >= 1:
            self.note_full()
            return
        turn = self._turn % len(self._requests)
        try:
            batch = self._reader.prepare_batch(self._requests[turn])
        except NoRoom:
            self.note_full()
            return
        if batch is None:
            del self._requests[turn]
            return
        self._turn = turn + 1
        self.prepared += batch.elements


def divide(amount: int, parts: int, part: int) -> int:
    """Return the size of one of so many parts; the first ones are larger by one."""
    return amount // parts + (part < amount % parts)
