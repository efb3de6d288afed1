"""Which batches of an epoch fall to a rank, at which position: the same wherever it is worked out.

Every batch of an epoch has a number. Where batches are dealt out, rank r of a world w has the
numbers r, r + w, r + 2w and so on; where each rank gets them all, each rank has numbers of its own.
After a change of the world, what is left is dealt out in the same way from where it stopped.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from muster_delivery.errors import DeliveryError
from muster_delivery.messages import LARGEST_HEADER
from muster_delivery.sources.source import EpochKey, Index, IndexedSource

LARGEST_INDEX = LARGEST_HEADER - 4096
"""Characters of an index as a request has it, which has some numbers beside it."""
History = Sequence[tuple[int, int]]
"""World and delivered positions of each rank, of the parts of an epoch before this one."""


@dataclass(frozen=True)
class PlannedBatch:
    """One batch of the epoch: its number and what it is loaded by."""

    number: int
    index: Index


class EpochPlan:
    """The batches of one epoch by their numbers, for any rank of a world."""

    def __init__(self, source: IndexedSource, key: EpochKey, world: int) -> None:
        self._source = source
        self._key = key
        self._world = world
        self._lists: dict[int, Sequence[Index]] = {}

    def __len__(self) -> int:
        return len(self._list_batches(0)) * (1 if self._is_one_list else self._world)

    @property
    def _is_one_list(self) -> bool:
        """Whether all ranks share one list of batches."""
        return self._source.is_split and not self._source.shards_itself

    def get_index(self, number: int) -> Index:
        """Return what a batch is loaded by."""
        if self._is_one_list:
            return self._list_batches(0)[number]
        return self._list_batches(number % self._world)[number // self._world]

    def _list_batches(self, rank: int) -> Sequence[Index]:
        # Without shards, each rank has the same list.
        rank = rank if self._source.shards_itself else 0
        if rank not in self._lists:
            self._lists[rank] = self._source.list_batches(self._key, self._world, rank)
        return self._lists[rank]


class RankPlan:
    """The batches of one rank from a point of an epoch on, by position."""

    def __init__(
        self, source: IndexedSource, key: EpochKey, world: int, rank: int, history: History
    ) -> None:
        self._world, self._rank = world, rank
        self._source = source
        is_dealt_anew = bool(history) and source.is_split
        self._plan = EpochPlan(source, key, history[0][0] if is_dealt_anew else world)
        self._first = (
            sum(w * k for w, k in history)
            if source.is_split
            else (world * sum(k for _, k in history))
        )
        self._is_dealt_anew = is_dealt_anew
        rest = max(0, len(self._plan) - self._first)
        self._rounds, self._remainder = divmod(rest, world)
        self._last = self._plan_last_round()

    def __len__(self) -> int:
        return self._rounds + (self._last is not None)

    def get_batch(self, position: int) -> PlannedBatch:
        """Return the batch at a position of this rank."""
        if position < self._rounds:
            number = self._first + position * self._world + self._rank
            return PlannedBatch(number, self._plan.get_index(number))
        if self._last is None:
            raise IndexError(position)
        return self._last

    def _plan_last_round(self) -> PlannedBatch | None:
        """Return this rank's batch of a last round that has fewer batches than ranks."""
        if not self._remainder or self._source.drops_last:
            return None
        start = self._first + self._rounds * self._world
        numbers = range(start, start + self._remainder)
        if self._is_dealt_anew and self._source.shards_itself:
            return self._split_last_round(numbers)
        if self._rank >= self._remainder:
            return None
        return PlannedBatch(numbers[self._rank], self._plan.get_index(numbers[self._rank]))

    def _split_last_round(self, numbers: Sequence[int]) -> PlannedBatch | None:
        """Split the elements of the last batches, so that every rank has as many batches.

        Where there are fewer elements than ranks, some get one that another has too, as the sampler
        pads its own end.
        """
        elements = [each for number in numbers for each in self._plan.get_index(number)]
        parts = self._source.split_index(elements, self._world)
        if parts is None:
            return None
        part = parts[self._rank]
        if not len(part):
            part = parts[self._rank % len(elements)]
        return PlannedBatch(len(self._plan) + self._rank, part)


def encode_index(index: Any) -> str:
    """Return an index as JSON; tuples stay tuples. Raises DeliveryError where no request has it."""
    try:
        text = json.dumps(_simplify_index(index), separators=(",", ":"))
    except TypeError as error:
        raise DeliveryError(
            "the sampler yields indices that are neither numbers nor texts nor lists or tuples of "
            f"such: {error}"
        ) from error
    # In a request it is a text of JSON, where quotation marks and backslashes are two characters.
    size = len(text) + text.count('"') + text.count("\\")
    if size > LARGEST_INDEX:
        raise DeliveryError(
            f"the indices of a batch have {size:,} characters; {LARGEST_INDEX:,} can be asked of a "
            "data worker: let the sampler yield numbers or shorter texts, or make batches smaller"
        )
    return text


def decode_index(text: str) -> Index:
    """Return the index that `encode_index` has written."""
    return _restore_index(json.loads(text))


def _simplify_index(index: Any) -> Any:
    if isinstance(index, tuple):
        return {"tuple": [_simplify_index(item) for item in index]}
    if isinstance(index, (str, int, float)) or index is None:
        return index
    # Bytes, sets and mappings can be iterated over too, and would come back as something else.
    if not isinstance(index, (list, array, range)):
        raise TypeError(f"{type(index).__name__} {index!r:.100}")
    return [_simplify_index(item) for item in index]


def _restore_index(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(_restore_index(item) for item in value["tuple"])
    if isinstance(value, list):
        return [_restore_index(item) for item in value]
    return value


def build_batch_key(key: EpochKey, number: int, index_text: str) -> tuple[str, int, int, str]:
    """Return what a prepared batch is kept by: another seed or order is another batch."""
    digest = blake2b(f"{key.seed}:{index_text}".encode(), digest_size=12).hexdigest()
    return ("batch", key.epoch, number, digest)
