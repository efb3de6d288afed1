"""The layout of messages between a rank and a data worker, sealed by their session.

A message has an envelope (kind, seal and header, which is JSON) and the frames that the header is
about. The seal signs the header, the lengths of all frames and the first, which describes the rest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from muster_delivery.authentication import SEAL_BYTES, NotAuthentic, Session
from muster_delivery.store import Buffer

HELLO, CHALLENGE, PROOF, WELCOME = b"H", b"C", b"P", b"W"
"""The four messages of the handshake."""
MESSAGE = b"M"
LARGEST_HEADER = 1 << 20
LARGEST_ENVELOPE = 1 + SEAL_BYTES + LARGEST_HEADER
LARGEST_SIGNED = 16 << 20
"""The first frame after the header is hashed, so it is not to be large."""
LARGEST_FRAME = 1 << 30
MOST_FRAMES = 4096


def measure(frame: Buffer) -> int:
    """Return the bytes of a frame."""
    return frame.nbytes if isinstance(frame, memoryview) else len(frame)


def check_frames(frames: Sequence[Buffer]) -> list[int]:
    """Return the bytes of each frame. Raises ValueError for those that no message carries."""
    lengths = [measure(frame) for frame in frames]
    if len(frames) > MOST_FRAMES:
        raise ValueError(
            f"A batch has {len(frames):,} large parts; {MOST_FRAMES:,} can be delivered. Collate "
            "its elements into fewer arrays."
        )
    if lengths and lengths[0] > LARGEST_SIGNED:
        raise ValueError(
            f"The description of a batch's containers has {lengths[0]:,} bytes; "
            f"{LARGEST_SIGNED:,} can be delivered. Collate its elements into arrays."
        )
    if lengths and max(lengths) > LARGEST_FRAME:
        raise ValueError(
            f"A batch has a part of {max(lengths):,} bytes; {LARGEST_FRAME:,} can be delivered."
        )
    return lengths


def build_message(
    session: Session, header: Mapping[str, object], frames: Sequence[Buffer] = ()
) -> list[Buffer]:
    """Return the parts of the next message of a session. Raises ValueError for one too large."""
    content = json.dumps(header, separators=(",", ":")).encode()
    if len(content) > LARGEST_HEADER:
        raise ValueError("A message of the delivery has too large a header.")
    lengths = check_frames(frames)
    seal = session.seal(*_list_signed(content, frames, lengths))
    return [MESSAGE + seal + content, *frames]


def open_message(session: Session, parts: Sequence[memoryview]) -> dict[str, Any]:
    """Return the header of a message; what follows it starts at the second part.

    Nothing is decoded before the seal was found right. Raises NotAuthentic.
    """
    if not 1 <= len(parts) <= MOST_FRAMES + 1 or bytes(parts[0][:1]) != MESSAGE:
        raise NotAuthentic("a message has another layout")
    envelope, frames = parts[0], parts[1:]
    lengths = [frame.nbytes for frame in frames]
    if envelope.nbytes > LARGEST_ENVELOPE or (lengths and lengths[0] > LARGEST_SIGNED):
        raise NotAuthentic("a message has too large a header")
    seal, content = bytes(envelope[1 : 1 + SEAL_BYTES]), bytes(envelope[1 + SEAL_BYTES :])
    session.unseal(seal, *_list_signed(content, frames, lengths))
    header = json.loads(content)
    if not isinstance(header, dict):
        raise NotAuthentic("a header is not an object")
    return header


def _list_signed(
    content: bytes, frames: Sequence[Buffer], lengths: Sequence[int]
) -> tuple[bytes, ...]:
    first = bytes(frames[0]) if frames else b""
    return content, b"".join(length.to_bytes(8, "big") for length in lengths), first


def read_parts(parts: Sequence[memoryview], *lengths: int) -> list[bytes]:
    """Return parts of exactly these lengths. Raises NotAuthentic for others."""
    if [part.nbytes for part in parts] != list(lengths):
        raise NotAuthentic("a message of the handshake has another layout")
    return [bytes(part) for part in parts]
