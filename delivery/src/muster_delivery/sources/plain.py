"""Loaders without torch: sequences of batches, and whatever can be iterated over again."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster_delivery.seeding import mix_seed, seed_generators
from muster_delivery.sources.source import (
    EpochKey,
    Index,
    IndexedSource,
    LoadedBatch,
    LoaderOptions,
    StreamSource,
)


def is_sequence(loader: Any) -> bool:
    """Say whether any item of a loader can be had by its number."""
    has_items = hasattr(loader, "__getitem__") and hasattr(loader, "__len__")
    return has_items and not isinstance(loader, (Mapping, str, bytes))


def count_elements(loader: Any) -> int:
    """Return how many elements each batch counts as: the loader's batch_size, or one."""
    size = getattr(loader, "batch_size", None)
    return size if isinstance(size, int) and size > 0 else 1


class SequenceSource(IndexedSource):
    """Items of a sequence; each is a batch."""

    def __init__(self, loader: Any, options: LoaderOptions) -> None:
        super().__init__(loader, options)
        self.is_split = options.split is not False

    def list_batches(self, key: EpochKey, world: int, rank: int) -> Sequence[Index]:
        numbers = range(len(self.loader))
        if not self.options.shuffle:
            return numbers
        order = list(numbers)
        # A generator for an order of training data guards nothing.
        random.Random(mix_seed("order", key.seed, key.epoch)).shuffle(order)  # noqa: S311
        return order

    def load_batch(self, index: Index, key: EpochKey) -> LoadedBatch:
        seed_generators(mix_seed(key.seed, key.epoch, index))
        return LoadedBatch(self.loader[index], count_elements(self.loader))

    def begin_work(self, worker: int, workers: int) -> None:
        return

    def describe(self) -> str:
        return f"sequence of {len(self.loader)}"


class IterableSource(StreamSource):
    """One stream of batches, which is the same each time it is read."""

    def __init__(self, loader: Any, options: LoaderOptions) -> None:
        super().__init__(loader, options)
        self.is_split = options.split is not False

    def open_stream(
        self, shard: int, key: EpochKey, world: int, rank: int
    ) -> Iterator[LoadedBatch]:
        elements = count_elements(self.loader)
        with in_rank(world, rank, self.is_split):
            seed_generators(mix_seed("open", key.seed, key.epoch, shard))
            iterator = iter(self.loader)
        for value in read_seeded(iterator, key, shard, world, rank, is_split=self.is_split):
            yield LoadedBatch(value, elements)

    def begin_work(self, worker: int, workers: int) -> None:
        return

    def describe(self) -> str:
        return f"iterable {type(self.loader).__name__}"


def read_seeded(
    iterator: Iterator[Any], key: EpochKey, shard: int, world: int, rank: int, *, is_split: bool
) -> Iterator[Any]:
    """Read items, each with random numbers of its own."""
    number = 0
    while True:
        with in_rank(world, rank, is_split):
            seed_generators(mix_seed(key.seed, key.epoch, shard, number))
            try:
                value = next(iterator)
            except StopIteration:
                return
        yield value
        number += 1


@contextlib.contextmanager
def in_rank(world: int, rank: int, is_split: bool) -> Iterator[None]:
    """Name the rank in the environment: a stream may choose its part by RANK and WORLD_SIZE."""
    if is_split:
        yield
        return
    names = {"RANK": str(rank), "WORLD_SIZE": str(world)}
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
