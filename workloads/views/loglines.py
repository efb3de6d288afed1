"""Windows of logs as JSON: a head that says where they stand, then a line each. What a program
wrote is a string, never markup.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from workloads.logbook import stamps, windows
from workloads.logbook.display import shown
from workloads.logbook.searching import Query
from workloads.logbook.windows import Line, Window
from workloads.models import Log
from workloads.views import logchoice

_encode = msgspec.json.Encoder().encode
Item = dict[str, Any]


def line(one: Line, query: Query | None = None) -> Item:
    """`l` log, `o` offset, `t` time, `x` text; where there are any, `s` colours, `m` matches, `cut`
    bytes not shown.
    """
    text = shown(one.raw)
    item: Item = {
        "l": one.log,
        "o": one.offset,
        "t": "" if one.ns is None else stamps.text(one.ns),
        "x": text.text,
    }
    if text.spans:
        item["s"] = text.spans
    if text.cut:
        item["cut"] = text.cut
    if query is not None and (marks := query.marks(text.text)):
        item["m"] = marks
    return item


def items(window: Window, logs: Mapping[int, Log], query: Query | None = None) -> Iterator[Item]:
    """The window's lines, each gap before the line that came after it, or at the end of its log."""
    for one in window.lines:
        for gap in logs[one.log].gaps:
            if _offset(gap) == one.offset:
                yield _gap(one.log, gap)
        yield line(one, query)
    if window.at_end:
        yield from last_gaps(window, logs)


def last_gaps(window: Window, logs: Mapping[int, Log]) -> Iterator[Item]:
    """What is missing behind the last line of logs that are settled."""
    for pk, log in logs.items():
        if log.state != Log.State.CAPTURING:
            for gap in log.gaps:
                if _offset(gap) >= window.end.get(pk, 0):
                    yield _gap(pk, gap)


def head(window: Window, logs: Sequence[Log], notes: Sequence[str] = (), **more: Any) -> Item:
    """Where the window stands, and who wrote its lines."""
    return {
        "start": windows.write(window.start),
        "end": windows.write(window.end),
        "at_start": window.at_start,
        "at_end": window.at_end,
        "logs": who(logs),
        "notes": list(dict.fromkeys(note for note in notes if note)),
    } | more


def who(logs: Sequence[Log]) -> dict[str, Item]:
    """Of each log, by its id, what a line's label says."""
    return {
        str(log.pk): {
            "pod": log.pod.name,
            "rank": log.pod.rank,
            "colour": logchoice.colour(log.pod),
            "container": log.container,
            "run": log.run,
        }
        for log in logs
    }


def encoded(found: Sequence[Item]) -> bytes:
    """JSON lines."""
    return b"".join(_encode(item) + b"\n" for item in found)


def as_text(found: object) -> str:
    """One JSON text without a newline, as an event's data."""
    return _encode(found).decode()


def _offset(gap: Mapping[str, Any]) -> int:
    offset = gap.get("offset")
    return offset if isinstance(offset, int) else 0


def _gap(log: int, gap: Mapping[str, Any]) -> Item:
    return {"l": log, "gap": str(gap.get("cause", "")), "t": str(gap.get("at", ""))}
