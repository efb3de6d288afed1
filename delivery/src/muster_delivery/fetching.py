"""A rank's window on its batches: what is here, what is asked of whom, and what comes next."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muster_delivery.errors import DeliveryError, EpochOver, LoadFailed
from muster_delivery.links import WorkerLinks
from muster_delivery.sources.source import EpochKey
from muster_delivery.store import Buffer

WINDOW = 16
"""Batches that a rank keeps in its own memory at most."""
WINDOW_BYTES = 256 << 20
"""About as many bytes that a rank keeps in its own memory, and at least one batch."""


@dataclass(frozen=True)
class ArrivedBatch:
    """A batch as it came over the line."""

    frames: Sequence[Buffer]
    elements: int
    size: int


@dataclass(frozen=True)
class RankPlace:
    """Which rank of which world a fetcher fetches for."""

    world: int
    rank: int


@dataclass
class BufferUse:
    """How much of a rank's memory the batches take that are here."""

    batches: int = 0
    size: int = 0
    largest: int = field(default=1)

    def add(self, batch: ArrivedBatch) -> None:
        """Count a batch that has arrived."""
        self.batches += 1
        self.size += batch.size
        self.largest = max(batch.size, self.largest)

    def remove(self, batch: ArrivedBatch) -> None:
        """Count a batch no longer."""
        self.batches -= 1
        self.size -= batch.size

    @property
    def window(self) -> int:
        """Return how many batches may be here or on their way."""
        return max(1, min(WINDOW, WINDOW_BYTES // self.largest))


class Fetcher(ABC):
    """Fetches the batches of one rank in one epoch, in order, from whoever has or makes them."""

    def __init__(self, links: WorkerLinks, key: EpochKey, place: RankPlace) -> None:
        self.links = links
        self.key = key
        self.place = place
        self.use = BufferUse()
        self.error: DeliveryError | None = None

    def start(self) -> None:
        """Begin to ask for batches."""
        with self.links.changed:
            self.links.listen(self)
            # An iteration that was left early has asked for more than it took.
            self.links.withdraw_requests({"world": self.place.world, "rank": self.place.rank})
            self.dispatch()

    def take(self, timeout: float) -> ArrivedBatch | None:
        """Wait for the next batch; None when the time is over.

        Raises EpochOver after the last one."""
        deadline = time.monotonic() + timeout
        with self.links.changed:
            while True:
                if (error := self.error or self.links.error) is not None:
                    raise error
                if (batch := self.find_next()) is not None:
                    self.use.remove(batch)
                    self.dispatch()
                    return batch
                if self.is_over():
                    raise EpochOver
                seconds_left = deadline - time.monotonic()
                if seconds_left <= 0:
                    self.hedge()
                    return None
                self.links.changed.wait(seconds_left)

    @property
    def depth(self) -> int:
        """Return how many batches are here already."""
        return self.use.batches

    def build_request(self, operation: str, ahead: int) -> dict[str, object]:
        """Return what all requests for a batch say."""
        key, place = self.key, self.place
        return {
            "op": operation,
            "epoch": key.epoch,
            "seed": key.seed,
            "sampler_epoch": key.sampler_epoch,
            "world": place.world,
            "rank": place.rank,
            "ahead": ahead,
        }

    def read_batch(self, answer: Mapping[str, Any], frames: Sequence[Buffer]) -> ArrivedBatch:
        """Return the batch of an answer."""
        size = sum(memoryview(frame).nbytes for frame in frames)
        batch = ArrivedBatch(frames, int(answer.get("elements", 1)), size)
        self.use.add(batch)
        return batch

    def note_error(self, answer: Mapping[str, Any]) -> None:
        """Keep what a data worker says of its loader; the script gets it raised."""
        self.error = LoadFailed(str(answer.get("error", "the loader raised on a data worker")))

    @abstractmethod
    def hedge(self) -> None:
        """Ask another worker for what is late."""

    @abstractmethod
    def accept_answer(
        self, worker: int, answer: Mapping[str, Any], frames: Sequence[Buffer]
    ) -> None:
        """Take an answer of a data worker."""

    @abstractmethod
    def add_worker(self, worker: int) -> None:
        """Use a worker that has come."""

    @abstractmethod
    def remove_worker(self, worker: int) -> None:
        """Give to others what a worker owed that has gone."""

    @abstractmethod
    def find_next(self) -> ArrivedBatch | None:
        """Return the next batch in order and step on; None while it is not here."""

    @abstractmethod
    def is_over(self) -> bool:
        """Say whether the epoch has no more batches."""

    @abstractmethod
    def dispatch(self) -> None:
        """Ask for as much as there is room and workers for."""
