"""Blocks and deltas as bytes: msgpack, and of blocks zlib."""

import zlib
from collections.abc import Iterable
from typing import Final

import msgspec

from workloads.time_machine.deltas import Delta, apply_delta
from workloads.time_machine.states import Records, State

MAX_UNPACKED: Final = 512 << 20
"""Bytes that a block becomes at most: one that claims more is damaged."""
PACKING_LEVEL: Final = 6
"""Of zlib. A block is packed once or twice a day, and kept for months."""


class DamagedBlock(ValueError):
    """Bytes that are no block or delta."""


class Block(msgspec.Struct, array_like=True):
    """The state at the beginning, and what changed after it, in order of time."""

    at: int
    records: Records
    deltas: list[Delta] = []

    def build_state(self, until: int, later: Iterable[Delta] = ()) -> State:
        """Return the state at a moment; `later` are deltas that are not in the block yet."""
        state = State.from_records(self.records)
        for part in (self.deltas, later):
            for delta in part:
                if delta.at > until:
                    return state
                apply_delta(state, delta)
        return state


_ENCODER: Final = msgspec.msgpack.Encoder()
_BLOCK_DECODER: Final = msgspec.msgpack.Decoder(Block)
_DELTA_DECODER: Final = msgspec.msgpack.Decoder(Delta)


def encode_block(block: Block) -> tuple[bytes, int]:
    """Return the bytes of a block, and how many they are unpacked."""
    unpacked = _ENCODER.encode(block)
    return zlib.compress(unpacked, PACKING_LEVEL), len(unpacked)


def decode_block(data: bytes) -> Block:
    """Return the block of these bytes."""
    try:
        unpacker = zlib.decompressobj()
        unpacked = unpacker.decompress(data, MAX_UNPACKED)
        if not unpacker.eof:
            raise DamagedBlock("The block is longer than it may be, or cut off.")
        return _BLOCK_DECODER.decode(unpacked)
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedBlock(str(error)) from error


def encode_delta(delta: Delta) -> bytes:
    """Return the bytes of a delta that is not in its block yet."""
    return _ENCODER.encode(delta)


def decode_delta(data: bytes) -> Delta:
    """Return the delta of these bytes."""
    try:
        return _DELTA_DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedBlock(str(error)) from error
