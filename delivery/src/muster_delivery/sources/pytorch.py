"""PyTorch's DataLoader: its sampler gives the order, its dataset and collate_fn the batches.

Nothing here imports torch: the script has, where its loader is one of torch.
"""

from __future__ import annotations

import copy
import math
import sys
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from muster_delivery.log_lines import write_text
from muster_delivery.seeding import mix_seed, preserve_generators, seed_generators
from muster_delivery.sources.plain import in_rank
from muster_delivery.sources.source import (
    EpochKey,
    Index,
    IndexedSource,
    LoadedBatch,
    LoaderOptions,
    LoaderSource,
    StreamSource,
)

LARGEST_TYPED_SEED = 1 << 32
"""What scripts and frameworks set as a seed is smaller."""


class TorchSource(LoaderSource):
    """What both kinds of torch's datasets share."""

    @property
    def has_new_memory(self) -> bool:
        # Torch's own functions copy the elements into a new batch.
        collate = getattr(self.loader.collate_fn, "__module__", "")
        return self.loader.batch_sampler is not None and str(collate).startswith("torch.")

    @property
    def seed(self) -> int:
        if self.options.seed is not None:
            return self.options.seed
        sampler = find_distributed_sampler(self.loader)
        for holder in (self.loader, sampler):
            if (generator := getattr(holder, "generator", None)) is not None:
                return int(generator.initial_seed())
        if sampler is not None:
            return int(getattr(sampler, "seed", 0))
        # Unless the script sets it, torch draws 64 bits in each process, which nobody types.
        seed = int(sys.modules["torch"].initial_seed())
        return seed if seed < LARGEST_TYPED_SEED else self.options.fallback_seed

    def finish_batch(self, value: Any) -> Any:
        torch = sys.modules["torch"]
        if self.loader.pin_memory and torch.cuda.is_available():
            return torch.utils.data._utils.pin_memory.pin_memory(value)
        return value

    def list_parts(self) -> Sequence[Any]:
        loader = self.loader
        parts = [loader.sampler, loader.batch_sampler, loader.dataset]
        parts.append(getattr(loader.batch_sampler, "sampler", None))
        return [
            part for place, part in enumerate(parts) if all(part is not e for e in parts[:place])
        ]


class MapDatasetSource(TorchSource, IndexedSource):
    """A dataset whose elements are had by index."""

    def __init__(self, loader: Any, options: LoaderOptions) -> None:
        super().__init__(loader, options)
        self.shards_itself = find_distributed_sampler(loader) is not None
        self.is_split = self.shards_itself or bool(options.split)

    @property
    def sampler_epoch(self) -> int | None:
        epoch = getattr(find_distributed_sampler(self.loader), "epoch", None)
        return epoch if isinstance(epoch, int) else None

    @property
    def can_load_in_ranks(self) -> bool:
        # What worker_init_fn sets up is meant for processes that load only.
        return self.loader.worker_init_fn is None

    @property
    def drops_last(self) -> bool:
        sampler = find_distributed_sampler(self.loader)
        return bool(getattr(sampler, "drop_last", False)) or self.options.drop_last

    def get_world(self, world: int, rank: int) -> tuple[int, int]:
        sampler = find_distributed_sampler(self.loader)
        return (world, rank) if sampler is None else (int(sampler.num_replicas), int(sampler.rank))

    def list_batches(self, key: EpochKey, world: int, rank: int) -> Sequence[Index]:
        order = self._build_sampler(key, world, rank)
        generators = self._list_generators()
        with preserve_generators(generators):
            seed_generators(mix_seed("order", key.seed, key.epoch), generators)
            pack = pack_element if self.loader.batch_sampler is None else pack_batch
            return [pack(index) for index in order]

    def _build_sampler(self, key: EpochKey, world: int, rank: int) -> Any:
        """Return the sampler of one rank; the script's own stays as it is."""
        loader = self.loader
        sampler = loader.sampler if loader.batch_sampler is None else loader.batch_sampler
        distributed = find_distributed_sampler(loader)
        if distributed is None:
            return sampler
        other = build_rank_sampler(distributed, key, world, rank)
        if sampler is distributed:
            return other
        sampler = copy.copy(sampler)
        sampler.sampler = other
        return sampler

    def _list_generators(self) -> list[Any]:
        holders = [self.loader, *self.list_parts()]
        generators = [getattr(holder, "generator", None) for holder in holders]
        unique = {id(generator): generator for generator in generators if generator is not None}
        return list(unique.values())

    def load_batch(self, index: Index, key: EpochKey) -> LoadedBatch:
        loader, dataset = self.loader, self.loader.dataset
        if loader.batch_sampler is None:
            data: Any = self._load_element(index, key)
            return LoadedBatch(loader.collate_fn(data), 1)
        indices = list(index)
        if callable(load_together := getattr(dataset, "__getitems__", None)):
            seed_generators(mix_seed(key.seed, key.epoch, indices[:1]))
            data = load_together(indices)
        else:
            data = [self._load_element(each, key) for each in indices]
        seed_generators(mix_seed("collate", key.seed, key.epoch, indices[:1]))
        return LoadedBatch(loader.collate_fn(data), len(indices))

    def _load_element(self, index: Index, key: EpochKey) -> Any:
        seed_generators(mix_seed(key.seed, key.epoch, index))
        return self.loader.dataset[index]

    def split_index(self, index: Index, parts: int) -> Sequence[Index] | None:
        if self.loader.batch_sampler is None:
            return None
        indices = list(index)
        return [pack_batch(indices[part::parts]) for part in range(parts)]

    def begin_work(self, worker: int, workers: int) -> None:
        if workers > 0 and self.loader.num_workers:
            set_worker_info(self.loader, worker, workers, self.loader.dataset)
        if self.loader.worker_init_fn is not None:
            self.loader.worker_init_fn(worker)

    def describe(self) -> str:
        loader = self.loader
        # With a sampler of its own a dataset needs no length.
        count = len(loader.dataset) if hasattr(loader.dataset, "__len__") else "some elements"
        return f"map-style dataset of {count} by {loader.batch_size}"


class IterableDatasetSource(TorchSource, StreamSource):
    """A dataset that is read from its start; num_workers says how many shards it has."""

    def __init__(self, loader: Any, options: LoaderOptions) -> None:
        super().__init__(loader, options)
        self.is_split = bool(options.split)
        self.shards = max(1, loader.num_workers)

    def open_stream(
        self, shard: int, key: EpochKey, world: int, rank: int
    ) -> Iterator[LoadedBatch]:
        loader = self.loader
        dataset = loader.dataset if self.shards == 1 else copy.deepcopy(loader.dataset)
        enter = self._enter_shard(shard, key, world, rank, dataset)
        with next(enter):
            if loader.worker_init_fn is not None and loader.num_workers:
                loader.worker_init_fn(shard)
            elements = iter(dataset)
        while True:
            with next(enter):
                if loader.batch_sampler is None:
                    batch = list(islice(elements, 1))
                    wanted = 1
                else:
                    batch, wanted = list(islice(elements, loader.batch_size)), loader.batch_size
                if not batch or (len(batch) < wanted and loader.drop_last):
                    return
                value = loader.collate_fn(batch[0] if loader.batch_sampler is None else batch)
            yield LoadedBatch(value, len(batch))

    def _enter_shard(
        self, shard: int, key: EpochKey, world: int, rank: int, dataset: Any
    ) -> Iterator[Any]:
        """Return contexts, one for each batch, in which random numbers and shard are the right."""
        number = 0
        while True:
            seed_generators(mix_seed(key.seed, key.epoch, shard, number))
            if self.loader.num_workers:
                set_worker_info(self.loader, shard, self.shards, dataset)
            yield in_rank(world, rank, self.is_split)
            number += 1

    def begin_work(self, worker: int, workers: int) -> None:
        """Do nothing: each shard is begun when it is opened, as in a process of torch."""

    def describe(self) -> str:
        name = type(self.loader.dataset).__name__
        return f"iterable dataset {name} by {self.loader.batch_size} in {self.shards}"


def find_distributed_sampler(loader: Any) -> Any:
    """Return the sampler that deals elements out to ranks; None where there is none."""
    batches = loader.batch_sampler
    order = loader.sampler if batches is None else getattr(batches, "sampler", None)
    for sampler in (batches, order):
        if hasattr(sampler, "num_replicas") and hasattr(sampler, "rank"):
            return sampler
    return None


def build_rank_sampler(sampler: Any, key: EpochKey, world: int, rank: int) -> Any:
    """Return a copy of a DistributedSampler as another rank of another world has it."""
    if (sampler.num_replicas, sampler.rank) == (world, rank) and key.sampler_epoch is None:
        return sampler
    other = copy.copy(sampler)
    other.num_replicas, other.rank = world, rank
    if hasattr(other, "num_samples") and hasattr(other, "total_size"):
        count = len(other.dataset)
        is_cut = bool(getattr(other, "drop_last", False)) and count % world
        other.num_samples = math.ceil((count - world if is_cut else count) / world)
        other.total_size = other.num_samples * world
    if key.sampler_epoch is not None and hasattr(other, "set_epoch"):
        other.set_epoch(key.sampler_epoch)
    return other


def pack_batch(indices: Any) -> Index:
    """Return the indices of a batch, compact where they are whole numbers."""
    items = [pack_element(item) for item in indices]
    if all(type(item) is int and -(2**63) <= item < 2**63 for item in items):
        return array("q", items)
    return items


def pack_element(index: Any) -> Index:
    """Return an element's index as a plain number, text, or list or tuple of such."""
    if hasattr(index, "tolist"):
        return index.tolist()
    if isinstance(index, (list, tuple)):
        return type(index)(pack_element(item) for item in index)
    return index


def set_worker_info(loader: Any, number: int, count: int, dataset: Any) -> None:
    """Let `get_worker_info` answer as in a worker process of torch."""
    worker = sys.modules["torch"].utils.data._utils.worker
    seed = sys.modules["torch"].initial_seed()
    try:
        info = worker.WorkerInfo(id=number, num_workers=count, seed=seed, dataset=dataset)
    except TypeError:
        write_text("this torch has no WorkerInfo as known: get_worker_info returns None")
        return
    worker._worker_info = info
