"""Reading lines of a file, forwards and backwards, by ranged reads.

Memory and time do not depend on the size of the file.
"""

from collections.abc import Iterator
from typing import Protocol

LONGEST_LINE = 1 << 20
"""Bytes of one line that are kept. The rest is dropped, with a note in its place."""
BLOCK_SIZE = 64 << 10
LARGEST_BLOCK = 256 << 10
"""Bytes of one read within a long line: a merged view holds as much of each of its logs."""
_FIRST_BLOCK = 4 << 10
"""Bytes that nearly always contain the end of a line."""


class ByteSource(Protocol):
    """Bytes that can be read at any offset. Reading beyond the end returns what there is."""

    def size(self) -> int: ...
    def read(self, offset: int, count: int) -> bytes: ...


def read_forward(
    source: ByteSource, offset: int, end: int | None = None, block: int = BLOCK_SIZE
) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, line without its newline) from the beginning of a line on.

    A last line that is still being written is left out.
    """
    rest = b""
    begin, size = offset, block
    while end is None or begin + len(rest) < end:
        at = begin + len(rest)
        data = source.read(at, size if end is None else min(size, end - at))
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        # More of a line that is longer than a block, or each small block would copy all before it.
        size = block if lines else min(2 * size, LARGEST_BLOCK)
        for line in lines:
            yield begin, line
            begin += len(line) + 1


def read_backward(
    source: ByteSource, offset: int, block: int = BLOCK_SIZE
) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, line) of the lines before `offset`, the nearest first.

    `offset` must be the beginning of a line.
    """
    rest = b""
    end, size = offset, block
    while end > 0:
        begin = max(0, end - size)
        data = source.read(begin, end - begin) + rest
        if len(data) < end - begin:
            return
        # What stands before the first newline may go on in the block before; data ends with the
        # newline of the nearest line.
        first = data.find(b"\n", 0, -1) + 1 if begin else 0
        if begin and not first:
            rest, end, size = data, begin, min(2 * size, LARGEST_BLOCK)
            continue
        size = block
        at = begin + len(data)
        for line in reversed(data[first:-1].split(b"\n")):
            at -= len(line) + 1
            yield at, line
        rest, end = data[:first], begin


def find_last_line_end(source: ByteSource) -> int:
    """Return the offset after the last complete line: a half written one is left out."""
    return _find_line_begin(source, source.size())


def align_to_line(source: ByteSource, offset: int) -> int:
    """Return the offset of the line that contains this byte.

    Beyond the last complete line, return the end of that line.
    """
    end = find_last_line_end(source)
    at = max(0, min(offset, end))
    return at if at == end else _find_line_begin(source, at)


def _find_line_begin(source: ByteSource, end: int) -> int:
    """Return the offset after the last newline before `end`; 0 where there is none."""
    block = _FIRST_BLOCK
    while end > 0:
        begin = max(0, end - block)
        newline = source.read(begin, end - begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end, block = begin, BLOCK_SIZE
    return 0


class LineSplitter:
    """Splits chunks into lines.

    A line longer than LONGEST_LINE is cut, and ends with a note of how many bytes are missing.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._line_size = 0
        self._dropped_bytes = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this chunk completes, without their newlines."""
        *ends, rest = chunk.split(b"\n")
        lines = []
        for end in ends:
            self._add_part(end)
            lines.append(self._take_line())
        if rest:
            self._add_part(rest)
        return lines

    def take_rest(self) -> bytes | None:
        """Return the last line, if it came without a newline."""
        return self._take_line() if self._line_size or self._dropped_bytes else None

    def _add_part(self, part: bytes) -> None:
        room = max(0, LONGEST_LINE - self._line_size)
        self._parts.append(part[:room])
        self._line_size += min(len(part), room)
        self._dropped_bytes += max(0, len(part) - room)

    def _take_line(self) -> bytes:
        line = b"".join(self._parts)
        if self._dropped_bytes:
            line += b" [Muster: %d more bytes of this line were not kept]" % self._dropped_bytes
        self._parts, self._line_size, self._dropped_bytes = [], 0, 0
        return line
