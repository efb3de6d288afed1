"""What a rank asks of a data worker, read out of a message: every field with its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from muster_delivery.errors import DeliveryError
from muster_delivery.sources.source import EpochKey

MOST = 1 << 53
MAX_RANKS = 100_000


@dataclass(frozen=True)
class BatchRequest:
    """One batch that a rank wants."""

    key: EpochKey
    world: int
    rank: int
    number: int
    """The batch's number in the epoch, or in its stream."""
    ahead: int
    """How many batches the rank needs before this one."""
    index_text: str = ""
    must_send: bool = True
    """Whether the rank has room for it now; else it is kept here."""
    shard: int = 0
    stream: int = 0
    floor: int = 0
    """The lowest number that the rank still needs."""
    start: int = 0
    """Where the stream began for this world."""


def read_integer(request: Mapping[str, object], name: str, most: int = MOST) -> int:
    """Return a whole number from 0 to `most`."""
    value = request.get(name, 0)
    if not isinstance(value, int) or not 0 <= value <= most:
        raise DeliveryError(f"a request's {name} is out of range")
    return value


def read_place(request: Mapping[str, object]) -> tuple[int, int]:
    """Return world and rank."""
    world, rank = (read_integer(request, name, MAX_RANKS) for name in ("world", "rank"))
    if rank >= world:
        raise DeliveryError(f"there is no rank {rank} in a world of {world}")
    return world, rank


def read_batch_request(request: Mapping[str, object]) -> BatchRequest:
    """Read a request for a batch."""
    world, rank = read_place(request)
    seed = request.get("seed", 0)
    sampler_epoch = request.get("sampler_epoch")
    index_text = request.get("index", "")
    if not isinstance(seed, int) or not isinstance(index_text, str):
        raise DeliveryError("a request's seed or index is of another type")
    if sampler_epoch is not None and not isinstance(sampler_epoch, int):
        raise DeliveryError("a request's sampler_epoch is no number")
    return BatchRequest(
        key=EpochKey(read_integer(request, "epoch"), seed, sampler_epoch),
        world=world,
        rank=rank,
        number=read_integer(request, "number"),
        ahead=read_integer(request, "ahead"),
        index_text=index_text,
        must_send=bool(request.get("send", True)),
        shard=read_integer(request, "shard", MAX_RANKS),
        stream=read_integer(request, "stream"),
        floor=read_integer(request, "floor"),
        start=read_integer(request, "start"),
    )
