"""What the delivery knows of a loader, whatever its kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Union

Index = Any
"""What a batch is loaded by: a whole number, a string, or a list or tuple of such."""


@dataclass(frozen=True)
class LoaderOptions:
    """What the script says of its loader beside the loader."""

    seed: int | None = None
    split: bool | None = None
    """Deal the batches out among the ranks; None: unless it is a loader of torch."""
    shuffle: bool = False
    """Shuffle the items of a plain sequence by seed and epoch."""
    drop_last: bool = False
    """Leave out the batches of a last round that are too few for all ranks."""
    fallback_seed: int = 0
    """The seed of a script with torch that has set none: the same in all its processes."""


@dataclass(frozen=True)
class EpochKey:
    """What the order and the random numbers of an epoch depend on."""

    epoch: int
    seed: int
    sampler_epoch: int | None = None
    """The epoch that the script set in its sampler, where the sampler has one."""


@dataclass(frozen=True)
class LoadedBatch:
    """A batch, and how many elements of the dataset it has."""

    value: object
    elements: int


class LoaderSource(ABC):
    """A loader, and how its batches fall to ranks."""

    is_split: bool
    """Whether a batch goes to one rank only."""

    def __init__(self, loader: Any, options: LoaderOptions) -> None:
        self.loader = loader
        self.options = options

    @property
    def seed(self) -> int:
        """Return the seed of order and random numbers."""
        return self.options.seed or 0

    @property
    def sampler_epoch(self) -> int | None:
        """Return the epoch that the script has set in the sampler."""
        return None

    def set_epoch(self, epoch: int) -> None:
        """Pass an epoch on to what knows one: the loader, its sampler, its dataset."""
        for part in self.list_parts():
            if callable(setter := getattr(part, "set_epoch", None)):
                setter(epoch)

    def list_parts(self) -> Sequence[Any]:
        """Return the objects whose epoch may be set."""
        return (self.loader,)

    @property
    def has_new_memory(self) -> bool:
        """Return whether no batch shares memory with another one or with the dataset."""
        return False

    def finish_batch(self, value: Any) -> Any:
        """Return a batch as the rank's script gets it."""
        return value

    @abstractmethod
    def begin_work(self, worker: int, workers: int) -> None:
        """Prepare a data worker for loading, once in its process."""

    @abstractmethod
    def describe(self) -> str:
        """Return what must be the same in ranks and data workers."""


class IndexedSource(LoaderSource):
    """A loader whose batches can be loaded in any order."""

    shards_itself = False
    """Whether its sampler deals elements out to ranks."""

    def get_world(self, world: int, rank: int) -> tuple[int, int]:
        """Return world and rank as the sampler has them, where it has."""
        return world, rank

    @property
    def can_load_in_ranks(self) -> bool:
        """Return whether a rank may load a batch itself while no data worker is there."""
        return True

    @property
    def drops_last(self) -> bool:
        """Return whether what is too little for all ranks is left out."""
        return self.options.drop_last

    @abstractmethod
    def list_batches(self, key: EpochKey, world: int, rank: int) -> Sequence[Index]:
        """Return the batches of an epoch; those of one rank where the sampler shards."""

    @abstractmethod
    def load_batch(self, index: Index, key: EpochKey) -> LoadedBatch:
        """Load one batch, with random numbers of its own."""

    def split_index(self, index: Index, parts: int) -> Sequence[Index] | None:
        """Return the parts of a batch for several ranks; None where it is one piece."""
        return None


class StreamSource(LoaderSource):
    """A loader that is read from its start; its shards are streams of their own."""

    shards = 1

    @abstractmethod
    def open_stream(
        self, shard: int, key: EpochKey, world: int, rank: int
    ) -> Iterator[LoadedBatch]:
        """Read one shard from its start."""


Source = Union[IndexedSource, StreamSource]
