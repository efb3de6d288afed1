"""Windows: a part of one log, or of several merged by time, of bounded size.

A cursor contains the position in each log. Going on from a cursor neither loses nor repeats a line,
whatever order lines come in.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from workloads.logbook import stamps
from workloads.logbook.index import NO_TIME, find_time
from workloads.logbook.line_reading import (
    BLOCK_SIZE,
    align_to_line,
    find_last_line_end,
    read_backward,
    read_forward,
)
from workloads.logbook.log_files import OpenLog

Cursor = dict[int, int]
"""The byte offset in each log, by the log's id. A log that is not in it has not been begun."""

MOST_LINES = 500
MOST_BYTES = 256 << 10
MOST_READ = 4 << 20
"""Bytes of long lines that one window may span, though it shows fewer of them."""
MOST_LOGS = 256
LONGEST_SHOWN = 16 << 10
_MERGED_BLOCKS = 1 << 20
_SMALLEST_BLOCK = 4 << 10


class BadCursor(ValueError):
    """The text is not a cursor of ours."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line as stored, its time in front.

    `ns` is None for a line without a time; it then belongs to the line before it.
    """

    log: int
    offset: int
    ns: int | None
    raw: bytes

    @property
    def end(self) -> int:
        return self.offset + len(self.raw) + 1


@dataclass(frozen=True, slots=True)
class Window:
    """Lines in order, with the cursors to go on: upwards from `start`, downwards from `end`."""

    lines: Sequence[LogLine]
    start: Cursor
    end: Cursor
    at_start: bool
    at_end: bool


def format_cursor(cursor: Cursor) -> str:
    """Format a cursor as text that is fit for an address."""
    return "-".join(f"{log:x}.{offset:x}" for log, offset in sorted(cursor.items()))


def parse_cursor(text: str) -> Cursor:
    """Parse the text of a cursor. Raises BadCursor."""
    pairs = [pair.split(".") for pair in text.split("-")] if text else []
    try:
        if len(pairs) > 2 * MOST_LOGS or any(len(number) > 15 for pair in pairs for number in pair):
            raise BadCursor("this is no place in a log")
        cursor = {int(log, 16): int(offset, 16) for log, offset in pairs}
    except ValueError:
        raise BadCursor("this is no place in a log") from None
    if any(number < 0 for pair in cursor.items() for number in pair):
        raise BadCursor("this is no place in a log")
    return cursor


def end_cursor(logs: Iterable[OpenLog]) -> Cursor:
    """Return the cursor behind the last complete line of each log."""
    return {each.log.pk: find_last_line_end(each.source) for each in logs}


def start_cursor(logs: Iterable[OpenLog]) -> Cursor:
    return {each.log.pk: 0 for each in logs}


def cursor_at_time(logs: Iterable[OpenLog], ns: int) -> Cursor:
    """Return the cursor before the first line of that time or later."""
    return {each.log.pk: find_time(each.source, each.index, ns) for each in logs}


def cursor_at_line(logs: Sequence[OpenLog], log: int, offset: int) -> Cursor:
    """Return the cursor before the line of `log` that contains this byte.

    In the other logs it is before what they wrote at that time.
    """
    chosen = next((each for each in logs if each.log.pk == log), None)
    if chosen is None:
        return end_cursor(logs)
    offset = align_to_line(chosen.source, offset)
    ns = next(
        (
            time
            for _, line in read_forward(chosen.source, offset)
            if (time := stamps.parse_stamp(line)[0]) is not None
        ),
        None,
    )
    others = [each for each in logs if each is not chosen]
    return (end_cursor(others) if ns is None else cursor_at_time(others, ns)) | {log: offset}


def align_cursor(logs: Iterable[OpenLog], cursor: Cursor) -> Cursor:
    """Move a received cursor to beginnings of lines, and keep only these logs."""
    return {each.log.pk: align_to_line(each.source, cursor.get(each.log.pk, 0)) for each in logs}


def read_down(logs: Sequence[OpenLog], cursor: Cursor) -> Iterator[LogLine]:
    """Yield the lines from a cursor on, by time; each log's own lines stay in order."""
    block = _block_size(logs)
    merged = [
        _read_log_down(each, order, cursor.get(each.log.pk, 0), block)
        for order, each in enumerate(logs)
    ]
    return (line for _, _, line in heapq.merge(*merged, key=lambda item: item[:2]))


def read_up(
    logs: Sequence[OpenLog], cursor: Cursor, floor: Cursor | None = None
) -> Iterator[LogLine]:
    """Yield the lines before a cursor, the latest first, down to a floor."""
    block = _block_size(logs)
    floors = floor or {}
    merged = [
        _read_log_up(each, order, cursor.get(each.log.pk, 0), floors.get(each.log.pk, 0), block)
        for order, each in enumerate(logs)
    ]
    return (line for _, _, line in heapq.merge(*merged, key=lambda item: item[:2], reverse=True))


def window_after(logs: Sequence[OpenLog], cursor: Cursor, most_lines: int = MOST_LINES) -> Window:
    """Return the window that begins at a cursor."""
    ahead = read_down(logs, cursor)
    lines, has_more = _take_lines(ahead, most_lines)
    end = start_cursor(logs) | {each.log.pk: cursor.get(each.log.pk, 0) for each in logs}
    for line in lines:
        end[line.log] = line.end
    return Window(lines, dict(cursor), end, not any(cursor.values()), not has_more)


def window_before(
    logs: Sequence[OpenLog],
    cursor: Cursor,
    most_lines: int = MOST_LINES,
    floor: Cursor | None = None,
) -> Window:
    """Return the window that ends at a cursor."""
    lines, has_more = _take_lines(read_up(logs, cursor, floor), most_lines)
    start = {each.log.pk: cursor.get(each.log.pk, 0) for each in logs}
    for line in lines:
        start[line.log] = line.offset
    return Window(lines[::-1], start, dict(cursor), not has_more, cursor == end_cursor(logs))


def find_tail_floor(logs: Sequence[OpenLog], lines: int) -> Cursor:
    """Return the cursor where the last so many lines begin."""
    floor = end_cursor(logs)
    lines_up = read_up(logs, dict(floor))
    for _, line in zip(range(lines), lines_up, strict=False):
        floor[line.log] = line.offset
    return floor


def _take_lines(source: Iterator[LogLine], most_lines: int) -> tuple[list[LogLine], bool]:
    """Return the lines of one window, at least one, and whether there are more."""
    lines: list[LogLine] = []
    shown_bytes = read_bytes = 0
    for line in source:
        size = min(len(line.raw), LONGEST_SHOWN) + 64
        if lines and (
            len(lines) >= most_lines
            or shown_bytes + size > MOST_BYTES
            or read_bytes + len(line.raw) > MOST_READ
        ):
            return lines, True
        lines.append(line)
        shown_bytes, read_bytes = shown_bytes + size, read_bytes + len(line.raw)
    return lines, False


def _block_size(logs: Sequence[OpenLog]) -> int:
    return max(_SMALLEST_BLOCK, min(BLOCK_SIZE, _MERGED_BLOCKS // max(1, len(logs))))


_KeyedLine = tuple[int, int, LogLine]


def _read_log_down(log: OpenLog, order: int, offset: int, block: int) -> Iterator[_KeyedLine]:
    # Lines without a time, or with an earlier one, get the time before them: heapq.merge needs
    # sorted keys, and must keep the order of each log.
    key = NO_TIME
    for at, raw in read_forward(log.source, offset, block=block):
        ns, _ = stamps.parse_stamp(raw)
        key = key if ns is None else max(key, ns)
        yield key, order, LogLine(log.log.pk, at, ns, raw)


def _read_log_up(
    log: OpenLog, order: int, offset: int, floor: int, block: int
) -> Iterator[_KeyedLine]:
    key = -NO_TIME
    for at, raw in read_backward(log.source, offset, block=block):
        if at < floor:
            return
        ns, _ = stamps.parse_stamp(raw)
        key = key if ns is None else min(key, ns)
        yield key, order, LogLine(log.log.pk, at, ns, raw)
