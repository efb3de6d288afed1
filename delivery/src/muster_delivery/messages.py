"""The layout of messages between a rank and a data worker, sealed by their session.

A message has the frames: kind, seal, header (JSON), then what the header is about. The seal signs
kind, header, the lengths of all frames and the first of them, which describes the rest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Union

from muster_delivery.authentication import NotAuthentic, Session
from muster_delivery.store import Buffer

HELLO, CHALLENGE, PROOF, WELCOME = b"H", b"C", b"P", b"W"
"""The four messages of the handshake."""
MESSAGE = b"M"
LARGEST_HEADER = 1 << 20
LARGEST_SIGNED = 16 << 20
"""The first frame after the header is hashed, so it is not to be large."""
LARGEST_FRAME = 1 << 30
MOST_FRAMES = 4096

Part = Union[bytes, memoryview]


def measure(frame: Buffer) -> int:
    """Return the bytes of a frame."""
    return frame.nbytes if isinstance(frame, memoryview) else len(frame)


def build_message(
    session: Session, header: Mapping[str, object], frames: Sequence[Buffer] = ()
) -> list[Buffer]:
    """Return the parts of the next message of a session. Raises ValueError for one too large."""
    content = json.dumps(header, separators=(",", ":")).encode()
    lengths = [measure(frame) for frame in frames]
    if len(content) > LARGEST_HEADER or len(frames) > MOST_FRAMES:
        raise ValueError("A message of the delivery has too large a header or too many frames.")
    if lengths and (lengths[0] > LARGEST_SIGNED or max(lengths) > LARGEST_FRAME):
        raise ValueError(
            f"A batch has a part of {max(lengths):,} bytes; {LARGEST_FRAME:,} can be delivered."
        )
    seal = session.seal(*_list_signed(content, frames, lengths))
    return [MESSAGE, seal, content, *frames]


def open_message(session: Session, parts: Sequence[memoryview]) -> dict[str, Any]:
    """Return the header of a message; what follows it starts at the fourth part.

    Nothing is decoded before the seal was found right. Raises NotAuthentic.
    """
    if not 3 <= len(parts) <= MOST_FRAMES + 3 or bytes(parts[0][:2]) != MESSAGE:
        raise NotAuthentic("a message has another layout")
    frames = parts[3:]
    lengths = [frame.nbytes for frame in frames]
    if parts[2].nbytes > LARGEST_HEADER or (lengths and lengths[0] > LARGEST_SIGNED):
        raise NotAuthentic("a message has too large a header")
    if parts[1].nbytes > 64:
        raise NotAuthentic("a seal has the wrong length")
    content = bytes(parts[2])
    session.unseal(bytes(parts[1]), *_list_signed(content, frames, lengths))
    header = json.loads(content)
    if not isinstance(header, dict):
        raise NotAuthentic("a header is not an object")
    return header


def _list_signed(
    content: bytes, frames: Sequence[Buffer], lengths: Sequence[int]
) -> tuple[bytes, ...]:
    first = bytes(frames[0]) if frames else b""
    return content, b"".join(length.to_bytes(8, "big") for length in lengths), first
