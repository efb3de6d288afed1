"""Windows of logs as JSON: a head that says where they are, then a line each.

A program's output is a string, never markup.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from workloads.logbook import stamps, windows
from workloads.logbook.display import decode_line
from workloads.logbook.searching import Query
from workloads.logbook.windows import LogLine, Window
from workloads.models import Log
from workloads.views import logchoice

_encode = msgspec.json.Encoder().encode
Item = dict[str, Any]


def serialize_line(log_line: LogLine, query: Query | None = None) -> Item:
    """Return one line as JSON data.

    `l` log, `o` offset, `t` time, `x` text; where there are any, `s` colours, `m` matches, `cut`
    bytes not shown.
    """
    text = decode_line(log_line.raw)
    item: Item = {
        "l": log_line.log,
        "o": log_line.offset,
        "t": "" if log_line.ns is None else stamps.format_time(log_line.ns),
        "x": text.text,
    }
    if text.spans:
        item["s"] = text.spans
    if text.omitted_bytes:
        item["cut"] = text.omitted_bytes
    if query is not None and (marks := query.find_marks(text.text)):
        item["m"] = marks
    return item


def serialize_window(
    window: Window, logs: Mapping[int, Log], query: Query | None = None
) -> Iterator[Item]:
    """Yield the window's lines, with each gap before the line that came after it.

    A gap at the end comes at the end of its log.
    """
    for one in window.lines:
        for gap in logs[one.log].gaps:
            if _find_gap_offset(gap) == one.offset:
                yield _serialize_gap(one.log, gap)
        yield serialize_line(one, query)
    if window.at_end:
        yield from serialize_last_gaps(window, logs)


def serialize_last_gaps(window: Window, logs: Mapping[int, Log]) -> Iterator[Item]:
    """Yield the gaps behind the last line of settled logs."""
    for pk, log in logs.items():
        if log.state != Log.State.CAPTURING:
            for gap in log.gaps:
                if _find_gap_offset(gap) >= window.end.get(pk, 0):
                    yield _serialize_gap(pk, gap)


def serialize_head(
    window: Window, logs: Sequence[Log], notes: Sequence[str] = (), **more: Any
) -> Item:
    """Return the window's cursors, and the logs of its lines."""
    return {
        "start": windows.format_cursor(window.start),
        "end": windows.format_cursor(window.end),
        "at_start": window.at_start,
        "at_end": window.at_end,
        "logs": serialize_logs(logs),
        "notes": list(dict.fromkeys(note for note in notes if note)),
    } | more


def serialize_logs(logs: Sequence[Log]) -> dict[str, Item]:
    """Return what a line's label says of each log, by its id."""
    return {
        str(log.pk): {
            "pod": log.pod.name,
            "rank": log.pod.rank,
            "colour": logchoice.choose_colour(log.pod),
            "container": log.container,
            "run": log.run,
        }
        for log in logs
    }


def encode_lines(rows: Sequence[Item]) -> bytes:
    """Encode as JSON lines."""
    return b"".join(_encode(item) + b"\n" for item in rows)


def encode_text(data: object) -> str:
    """Encode as one JSON text without a newline, as an event's data."""
    return _encode(data).decode()


def _find_gap_offset(gap: Mapping[str, Any]) -> int:
    offset = gap.get("offset")
    return offset if isinstance(offset, int) else 0


def _serialize_gap(log: int, gap: Mapping[str, Any]) -> Item:
    return {"l": log, "gap": str(gap.get("cause", "")), "t": str(gap.get("at", ""))}
