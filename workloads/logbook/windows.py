"""A part of one log, or of several merged by time: bounded however large they are.

A cursor says of each log how far one is in it, so going on from a cursor neither loses nor repeats
a line, whatever order lines come in.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from workloads.logbook import stamps
from workloads.logbook.framing import BLOCK, aligned, backward, forward, whole_end
from workloads.logbook.index import NEVER, seek_time
from workloads.logbook.reading import Opened

Cursor = dict[int, int]
"""The byte offset in each log, by the log's id. A log that is not named has not been begun."""

MOST_LINES = 500
MOST_BYTES = 256 << 10
MOST_READ = 4 << 20
"""Bytes of long lines that one window may span, though it shows less of them."""
MOST_LOGS = 256
LONGEST_SHOWN = 16 << 10
_MERGED_BLOCKS = 1 << 20
_SMALLEST_BLOCK = 4 << 10


class BadCursor(ValueError):
    """What was given is no cursor of ours."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line as stored, its time in front. `ns` is None for a line without one; it then belongs
    to the line before it.
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
    """Lines in order, and where one goes on from: upwards from `start`, downwards from `end`."""

    lines: Sequence[Line]
    start: Cursor
    end: Cursor
    at_start: bool
    at_end: bool


def write(cursor: Cursor) -> str:
    """A cursor as text that is fit for an address."""
    return "-".join(f"{log:x}.{offset:x}" for log, offset in sorted(cursor.items()))


def read(text: str) -> Cursor:
    """The other way round. Raises BadCursor."""
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


def ends(logs: Iterable[Opened]) -> Cursor:
    """Behind the last whole line of each."""
    return {each.log.pk: whole_end(each.source) for each in logs}


def starts(logs: Iterable[Opened]) -> Cursor:
    return {each.log.pk: 0 for each in logs}


def at_time(logs: Iterable[Opened], ns: int) -> Cursor:
    """Before the first line of that time or later."""
    return {each.log.pk: seek_time(each.source, each.index, ns) for each in logs}


def at_line(logs: Sequence[Opened], log: int, offset: int) -> Cursor:
    """Before the line of `log` that holds this byte, and before what the others wrote at that
    time.
    """
    there = next((each for each in logs if each.log.pk == log), None)
    if there is None:
        return ends(logs)
    offset = aligned(there.source, offset)
    ns = next(
        (
            time
            for _, line in forward(there.source, offset)
            if (time := stamps.read(line)[0]) is not None
        ),
        None,
    )
    others = [each for each in logs if each is not there]
    return (ends(others) if ns is None else at_time(others, ns)) | {log: offset}


def sound(logs: Iterable[Opened], cursor: Cursor) -> Cursor:
    """A cursor that somebody sent, with every offset at a line's beginning and only of these
    logs.
    """
    return {each.log.pk: aligned(each.source, cursor.get(each.log.pk, 0)) for each in logs}


def downwards(logs: Sequence[Opened], cursor: Cursor) -> Iterator[Line]:
    """The lines from a cursor on, by time; each log's own lines stay in its order."""
    block = _block(logs)
    runs = [
        _down(each, order, cursor.get(each.log.pk, 0), block) for order, each in enumerate(logs)
    ]
    return (line for _, _, line in heapq.merge(*runs, key=lambda item: item[:2]))


def upwards(logs: Sequence[Opened], cursor: Cursor, floor: Cursor | None = None) -> Iterator[Line]:
    """The lines before a cursor, the latest first, down to a floor."""
    block = _block(logs)
    low = floor or {}
    runs = [
        _up(each, order, cursor.get(each.log.pk, 0), low.get(each.log.pk, 0), block)
        for order, each in enumerate(logs)
    ]
    return (line for _, _, line in heapq.merge(*runs, key=lambda item: item[:2], reverse=True))


def after(logs: Sequence[Opened], cursor: Cursor, most_lines: int = MOST_LINES) -> Window:
    """The window that begins at a cursor."""
    run = downwards(logs, cursor)
    lines, more = _bounded(run, most_lines)
    end = starts(logs) | {each.log.pk: cursor.get(each.log.pk, 0) for each in logs}
    for line in lines:
        end[line.log] = line.end
    return Window(lines, dict(cursor), end, not any(cursor.values()), not more)


def before(
    logs: Sequence[Opened],
    cursor: Cursor,
    most_lines: int = MOST_LINES,
    floor: Cursor | None = None,
) -> Window:
    """The window that ends at a cursor."""
    lines, more = _bounded(upwards(logs, cursor, floor), most_lines)
    start = {each.log.pk: cursor.get(each.log.pk, 0) for each in logs}
    for line in lines:
        start[line.log] = line.offset
    return Window(lines[::-1], start, dict(cursor), not more, cursor == ends(logs))


def tail_floor(logs: Sequence[Opened], lines: int) -> Cursor:
    """Where the last so many lines begin."""
    floor = ends(logs)
    run = upwards(logs, dict(floor))
    for _, line in zip(range(lines), run, strict=False):
        floor[line.log] = line.offset
    return floor


def _bounded(run: Iterator[Line], most_lines: int) -> tuple[list[Line], bool]:
    """As many lines as one window may have, one at least, and whether there are more."""
    lines: list[Line] = []
    shown = taken = 0
    for line in run:
        size = min(len(line.raw), LONGEST_SHOWN) + 64
        if lines and (
            len(lines) >= most_lines
            or shown + size > MOST_BYTES
            or taken + len(line.raw) > MOST_READ
        ):
            return lines, True
        lines.append(line)
        shown, taken = shown + size, taken + len(line.raw)
    return lines, False


def _block(logs: Sequence[Opened]) -> int:
    return max(_SMALLEST_BLOCK, min(BLOCK, _MERGED_BLOCKS // max(1, len(logs))))


_Keyed = tuple[int, int, Line]


def _down(log: Opened, order: int, offset: int, block: int) -> Iterator[_Keyed]:
    key = NEVER
    for at, raw in forward(log.source, offset, block=block):
        ns, _ = stamps.read(raw)
        key = key if ns is None else max(key, ns)
        yield key, order, Line(log.log.pk, at, ns, raw)


def _up(log: Opened, order: int, offset: int, floor: int, block: int) -> Iterator[_Keyed]:
    key = -NEVER
    for at, raw in backward(log.source, offset, block=block):
        if at < floor:
            return
        ns, _ = stamps.read(raw)
        key = key if ns is None else min(key, ns)
        yield key, order, Line(log.log.pk, at, ns, raw)
