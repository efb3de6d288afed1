"""Makes pictures of pages small: a PNG of true colour, as Chromium writes it, becomes one of 256
colours.
"""

import struct
import zlib
from collections import Counter
from collections.abc import Iterator

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOURS = 256

Rgb = tuple[int, int, int]


def reduce_colours(png: bytes) -> bytes:
    """The same picture in 256 of its colours, each other pixel in the nearest of them."""
    width, height, channels, rows = _parse_png(png)
    pixels = [_colours(row, channels) for row in rows]
    used = Counter[Rgb]()
    for row in pixels:
        used.update(row)
    palette = _palette(used)
    place = {colour: number for number, colour in enumerate(palette)}
    for colour in used:
        if colour not in place:
            place[colour] = min(
                range(len(palette)), key=lambda number: _distance(palette[number], colour)
            )
    data = b"".join(b"\0" + bytes(map(place.__getitem__, row)) for row in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    plte = bytes(value for colour in palette for value in colour)
    return SIGNATURE + b"".join(
        (
            _chunk(b"IHDR", head),
            _chunk(b"PLTE", plte),
            _chunk(b"IDAT", zlib.compress(data, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _palette(used: Counter[Rgb]) -> list[Rgb]:
    """The most used colours, leaving out what is hardly told from one of them: else shades of grey
    take the places of a small red word. What fills a thousandth of the picture keeps its own.
    """
    large = [
        colour for colour, count in used.most_common(COLOURS // 2) if count * 1000 >= used.total()
    ]
    for apart in (192, 96, 48, 0):
        chosen = list(large)
        for colour, _ in used.most_common():
            if all(_distance(colour, each) > apart for each in chosen):
                chosen.append(colour)
            if len(chosen) == COLOURS:
                return chosen
    return chosen


def _parse_png(png: bytes) -> tuple[int, int, int, Iterator[bytes]]:
    """Width, height, bytes a pixel, and the rows."""
    assert png.startswith(SIGNATURE), "this is no PNG"
    at, head, packed = len(SIGNATURE), b"", b""
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + length]
        head, packed = (
            (body if kind == b"IHDR" else head),
            (packed + body if kind == b"IDAT" else packed),
        )
        at += 12 + length
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", head)
    assert (depth, interlaced) == (8, 0), "not a picture as Chromium writes it"
    assert colour in (2, 6), "not of true colour"
    channels = 3 if colour == 2 else 4
    return (
        width,
        height,
        channels,
        _unfilter_rows(zlib.decompress(packed), width * channels, channels),
    )


def _unfilter_rows(data: bytes, length: int, channels: int) -> Iterator[bytes]:
    """Undoes the filter of each row (PNG specification, section 9)."""
    above = bytearray(length)
    for start in range(0, len(data), length + 1):
        row = bytearray(data[start + 1 : start + 1 + length])
        _UNFILTER[data[start]](row, above, channels)
        yield bytes(row)
        above = row


def _unfilter_none(row: bytearray, above: bytearray, step: int) -> None:
    """It is as it is."""


def _unfilter_sub(row: bytearray, above: bytearray, step: int) -> None:
    for at in range(step, len(row)):
        row[at] = (row[at] + row[at - step]) & 255


def _unfilter_up(row: bytearray, above: bytearray, step: int) -> None:
    # Most rows of a page are as the one above.
    row[:] = (
        bytes((mine + upper) & 255 for mine, upper in zip(row, above, strict=True))
        if any(row)
        else above
    )


def _unfilter_average(row: bytearray, above: bytearray, step: int) -> None:
    for at in range(len(row)):
        left = row[at - step] if at >= step else 0
        row[at] = (row[at] + (left + above[at]) // 2) & 255


def _unfilter_paeth(row: bytearray, above: bytearray, step: int) -> None:
    if not any(row):
        row[:] = above
        return
    for at in range(len(row)):
        left, corner = (row[at - step], above[at - step]) if at >= step else (0, 0)
        upper = above[at]
        to_left, to_upper, to_corner = (
            abs(upper - corner),
            abs(left - corner),
            abs(left + upper - corner - corner),
        )
        guess = (
            left
            if to_left <= to_upper and to_left <= to_corner
            else upper
            if to_upper <= to_corner
            else corner
        )
        row[at] = (row[at] + guess) & 255


_UNFILTER = (_unfilter_none, _unfilter_sub, _unfilter_up, _unfilter_average, _unfilter_paeth)


def _colours(row: bytes, channels: int) -> list[Rgb]:
    return list(zip(row[0::channels], row[1::channels], row[2::channels], strict=True))


def _distance(one: Rgb, other: Rgb) -> int:
    red, green, blue = one[0] - other[0], one[1] - other[1], one[2] - other[2]
    return red * red + green * green + blue * blue


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
