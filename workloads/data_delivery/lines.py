"""The lines that data workers and ranks write about the delivery of data.

Everything in a log is hostile: what is not within bounds is no line of the library.
"""

from typing import Annotated

import msgspec

PREFIX = b"muster-delivery: "
LONGEST_LINE = 2000
"""Bytes of a line behind its prefix; the library keeps to 1,000."""
LONGEST_TEXT = 300

_LARGEST = 10**12
_Worker = Annotated[int, msgspec.Meta(ge=0, lt=8)]
_Rank = Annotated[int, msgspec.Meta(ge=0, le=10_000)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=_LARGEST)]
_Amount = Annotated[float, msgspec.Meta(ge=0, le=_LARGEST)]
# The library's counters are of ten minutes. Moments are computed with them, and none may overflow.
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=86_400)]
_Depth = Annotated[int, msgspec.Meta(ge=0, le=10**9)]


class PreparingLine(msgspec.Struct, tag_field="event", tag="preparing", frozen=True):
    """A data worker has prepared so many units of its part."""

    worker: _Worker
    units: _Count
    of: _Count
    rate: _Amount = 0.0
    """Units a second."""


class ReadyLine(msgspec.Struct, tag_field="event", tag="ready", frozen=True):
    """A data worker has prepared its part; with `ended`, its dataset had no more."""

    worker: _Worker
    units: _Count
    of: _Count
    ended: bool = False


class WorkerFailedLine(msgspec.Struct, tag_field="event", tag="failed", frozen=True):
    """The loader raised in a data worker."""

    worker: _Worker
    error: str = ""
    where: str = ""


class RankLine(msgspec.Struct, tag_field="event", tag="rank", frozen=True):
    """What a rank waited, computed and got in its last `span` seconds."""

    rank: _Rank
    waited: _Seconds
    computed: _Seconds
    span: _Seconds
    depth: _Depth = 0
    rate: _Amount = 0.0
    delivered: _Count = 0
    epoch: _Depth = 0


Line = PreparingLine | ReadyLine | WorkerFailedLine | RankLine

_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


def parse_line(text: bytes) -> Line | None:
    """Return what a line without its time says; None for any other line."""
    if not text.startswith(PREFIX):
        return None
    body = text[len(PREFIX) :]
    if not body.startswith(b"{") or len(body) > LONGEST_LINE:
        return None
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
