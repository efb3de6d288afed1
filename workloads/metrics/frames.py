"""Figures of many sources at one moment as few bytes: what rows of metrics hold. Pure.

A row's data is one frame after another, all little-endian. A frame is a head (seconds after the
row's start, number of sources, the metrics as bits of their codes, the first source's id), how far
the ids of the other sources are from the first, and the values, one metric after another, each as
the upper half of a float32. A value that is missing is NaN. The script of the metrics page reads
the same bytes (`static/js/metrics.js`).

Rows that are finished are packed, several as one. A packed row is one zlib stream after another.
What a stream has is all its bytes of even places, then those of odd places, of runs: the length and
the number of frames of one length, the first frame, and of each other what differs (XOR) from the
frame before. So ids vanish, and the upper bytes of values, which change little, lie together.
"""

import math
import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from clusters.metrics.catalogue import METRICS, METRICS_BY_NAME, Combination, combine_values

_HEAD = struct.Struct("<HHIQ")
_SECONDS = struct.Struct("<H")
_RUN = struct.Struct("<II")
MAX_SOURCES = 0xFFFF
"""Sources of one frame; what is beyond is left out by the writer."""
MAX_ID_SPAN = 0xFFFFFFFF
MAX_SECONDS = 0xFFFF
MAX_UNPACKED = 64 << 20
"""Bytes that a packed row becomes at most: one that claims more is damaged."""
PACKING_LEVEL = 1
"""Of zlib: the best level takes three times as long, and saves a twelfth."""
_NAN = math.nan
_HALF_STEP = 1 << 15
"""Half of what the last bit of the upper half stands for; added, cutting off becomes rounding."""
_OVER_TIME = {metric.code: metric.over_time for metric in METRICS}
_FAULTS = frozenset(metric.code for metric in METRICS if metric.is_fault)
_PRESENCE = METRICS_BY_NAME["presence"].code


class DamagedFrames(ValueError):
    """Bytes that are no frames."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The figures of sources at one moment: `values[codes.index(c) * len(ids) + i]`."""

    seconds: int
    """After the start of the row."""
    ids: Sequence[int]
    codes: Sequence[int]
    values: Sequence[float]

    def list_values(self, code: int) -> Sequence[float]:
        """Return the values of one metric, in the order of `ids`; empty where nobody has it."""
        if code not in self.codes:
            return ()
        start = self.codes.index(code) * len(self.ids)
        return self.values[start : start + len(self.ids)]

    def list_presence(self) -> Sequence[float]:
        """Return in which share of the frame's time each source was measured, by `ids`."""
        shares = self.list_values(_PRESENCE)
        if not shares:
            return [1.0] * len(self.ids)
        return [share if 0 < share <= 1 else 1.0 for share in shares]


def encode_frame(
    seconds: int, figures: Mapping[int, Mapping[int, float]], *, keeps_zero_faults: bool = True
) -> bytes:
    """Return one frame of figures by the ids of their sources; b"" where there are none.

    Sources beyond `MAX_SOURCES`, or too far from the first, are left out: those of the largest ids.
    Without `keeps_zero_faults` so is a metric of faults which no source has more than zero of.
    """
    ids = sorted(figures)[:MAX_SOURCES]
    ids = [each for each in ids if each - ids[0] <= MAX_ID_SPAN]
    rows = [figures[each] for each in ids]
    used_codes = {code for row in rows for code in row}
    if not keeps_zero_faults:
        used_codes -= {
            code for code in used_codes & _FAULTS if not any(row.get(code) for row in rows)
        }
    codes = sorted(used_codes)
    if not codes:
        return b""
    values = [row.get(code, _NAN) for code in codes for row in rows]
    return _encode(seconds, ids, codes, values)


def decode_frames(data: bytes) -> Iterator[Frame]:
    """Yield the frames of a row. Raises DamagedFrames."""
    at = 0
    try:
        while at < len(data):
            seconds, count, mask, first = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            rest = struct.unpack_from(f"<{count - 1}I", data, at)
            at += 4 * (count - 1)
            codes = [code for code in range(32) if mask >> code & 1]
            size = 2 * count * len(codes)
            if at + size > len(data):
                raise DamagedFrames("a frame is cut off")
            values = _decode_values(data[at : at + size])
            at += size
            yield Frame(seconds, [first, *(first + each for each in rest)], codes, values)
    except struct.error as error:
        raise DamagedFrames(str(error)) from error


def merge_frames(frames: Sequence[Frame], seconds: int) -> bytes:
    """Return one frame of several, as rows of a coarser resolution hold it.

    Each value is the mean of those that are there, or what the metric's `over_time` says: that of
    a source is of its own time. Sources that were in a part of the frames have their share of the
    time as `presence`.
    """
    first = frames[0]
    is_alike = len({(tuple(each.ids), tuple(each.codes)) for each in frames}) == 1
    if is_alike and _PRESENCE not in first.codes:
        count = len(first.ids)
        columns = list(zip(*(each.values for each in frames), strict=True))
        values = [
            _merge_values(column, first.codes[number // count])
            for number, column in enumerate(columns)
        ]
        return _encode(seconds, first.ids, first.codes, values)
    # Each frame counts as much as the others, and a source in it as long as it was there.
    has_shares = any(_PRESENCE in each.codes for each in frames)
    collected: dict[int, dict[int, tuple[list[float], list[float]]]] = {}
    presence: dict[int, float] = {}
    for each in frames:
        shares = each.list_presence()
        for source, share in zip(each.ids, shares, strict=True):
            presence[source] = presence.get(source, 0.0) + share
        for number, code in enumerate(each.codes):
            if code == _PRESENCE:
                continue
            start = number * len(each.ids)
            for place, source in enumerate(each.ids):
                by_code = collected.setdefault(source, {})
                values, weights = by_code.setdefault(code, ([], []))
                values.append(each.values[start + place])
                if has_shares:
                    weights.append(shares[place])
    figures = {
        source: {
            code: _merge_values(values, code, weights)
            for code, (values, weights) in by_code.items()
        }
        for source, by_code in collected.items()
    }
    if any(share < len(frames) for share in presence.values()):
        for source, source_figures in figures.items():
            source_figures[_PRESENCE] = presence[source] / len(frames)
    return encode_frame(seconds, figures)


def combine_over_time(
    values: Sequence[float], weights: Sequence[float], combination: Combination
) -> float:
    """Return one value of several moments; a mean counts each as long as its weight says.

    There must be one at least, and no weight may be 0.
    """
    if combination is not Combination.MEAN:
        return combine_values(values, combination)
    total = sum(value * weight for value, weight in zip(values, weights, strict=True))
    return total / sum(weights)


def pack_rows(rows: Iterable[tuple[int, bytes]]) -> bytes:
    """Return the frames of several rows as those of one, in fewer bytes.

    With each row come the seconds that it starts after the first. Raises DamagedFrames.
    """
    frames = [
        _move_frame(data[begin:end], offset)
        for offset, data in rows
        for begin, end in _find_frames(data)
    ]
    parts: list[bytes] = []
    for length, run in groupby(frames, len):
        same = list(run)
        parts += (_RUN.pack(length, len(same)), same[0])
        numbers = (int.from_bytes(frame, "little") for frame in same)
        parts += ((one ^ other).to_bytes(length, "little") for one, other in pairwise(numbers))
    plain = b"".join(parts)
    return zlib.compress(plain[0::2] + plain[1::2], PACKING_LEVEL)


def unpack_frames(packed: bytes, most: int = MAX_UNPACKED) -> bytes:
    """Return the frames of a packed row, one after another.

    Raises DamagedFrames, also for what would be more than `most` bytes.
    """
    parts: list[bytes] = []
    while packed:
        stream = zlib.decompressobj()
        try:
            # One more than may be: so the end of what is just small enough is found, too.
            halves = stream.decompress(packed, most + 1)
        except zlib.error as error:
            raise DamagedFrames(str(error)) from error
        most -= len(halves)
        if not stream.eof or not halves or most < 0:
            raise DamagedFrames("a packed row is cut off, or too large")
        parts += _unpack_runs(halves)
        packed = stream.unused_data
    return b"".join(parts)


def space_frames(data: bytes, start: int, since: int, spacing: int, last: int) -> tuple[bytes, int]:
    """Return the first frame of each `spacing` seconds since 1970, and the number of the last such.

    `start` is that of the row; of the times up to that numbered `last` there is a frame already.
    What is before `since`, or damaged, is left out.
    """
    frames = []
    try:
        for begin, end in _find_frames(data):
            at = start + _SECONDS.unpack_from(data, begin)[0]
            number = at // spacing
            if at >= since and number > last:
                frames.append(data[begin:end])
                last = number
    except DamagedFrames:
        pass
    return b"".join(frames), last


def _find_frames(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each frame of a row begins and ends. Raises DamagedFrames."""
    at = 0
    while at < len(data):
        if at + _HEAD.size > len(data):
            raise DamagedFrames("a head is cut off")
        _, count, mask, _ = _HEAD.unpack_from(data, at)
        end = at + _HEAD.size + 4 * (count - 1) + 2 * count * mask.bit_count()
        if not count or end > len(data):
            raise DamagedFrames("a frame is cut off")
        yield at, end
        at = end


def _move_frame(frame: bytes, offset: int) -> bytes:
    """Return the frame for a row that starts so many seconds earlier. Raises DamagedFrames."""
    [seconds] = _SECONDS.unpack_from(frame)
    if seconds + offset > MAX_SECONDS:
        raise DamagedFrames("a frame is of long after the start of its row")
    return _SECONDS.pack(seconds + offset) + frame[_SECONDS.size :]


def _unpack_runs(halves: bytes) -> Iterator[bytes]:
    """Yield the frames of a stream. Raises DamagedFrames."""
    middle = len(halves) // 2
    if len(halves) % 2:
        raise DamagedFrames("a packed row has an odd length")
    stream = bytearray(len(halves))
    stream[0::2], stream[1::2] = halves[:middle], halves[middle:]
    at = 0
    while at < len(stream):
        if at + _RUN.size > len(stream):
            raise DamagedFrames("a run is cut off")
        length, number = _RUN.unpack_from(stream, at)
        at += _RUN.size
        if not length or not number or at + length * number > len(stream):
            raise DamagedFrames("a run is cut off")
        bits = 0
        for begin in range(at, at + length * number, length):
            bits ^= int.from_bytes(stream[begin : begin + length], "little")
            yield bits.to_bytes(length, "little")
        at += length * number


def _merge_values(values: Sequence[float], code: int, weights: Sequence[float] = ()) -> float:
    """Return one value of those that are there; without weights each counts the same."""
    known = [value for value in values if value == value]
    if not known or code not in _OVER_TIME:
        return _NAN
    if not weights:
        return combine_values(known, _OVER_TIME[code])
    weights = [weight for weight, value in zip(weights, values, strict=True) if value == value]
    return combine_over_time(known, weights, _OVER_TIME[code])


def _encode(
    seconds: int, ids: Sequence[int], codes: Sequence[int], values: Sequence[float]
) -> bytes:
    mask = sum(1 << code for code in codes)
    head = _HEAD.pack(seconds, len(ids), mask, ids[0])
    rest = struct.pack(f"<{len(ids) - 1}I", *(each - ids[0] for each in ids[1:]))
    bits = array("I", array("f", values).tobytes())
    rounded_bits = array("I", [each + _HALF_STEP for each in bits])
    if sys.byteorder == "big":
        rounded_bits.byteswap()
    octets = rounded_bits.tobytes()
    half = bytearray(2 * len(values))
    half[0::2], half[1::2] = octets[2::4], octets[3::4]
    return head + rest + half


def _decode_values(half: bytes) -> Sequence[float]:
    octets = bytearray(2 * len(half))
    octets[2::4], octets[3::4] = half[0::2], half[1::2]
    values = array("f", octets)
    if sys.byteorder == "big":
        values.byteswap()
    return values
