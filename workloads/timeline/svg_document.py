"""A timeline as one SVG file that needs nothing else: for reports, and to be sent. Pure."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from html import escape

from workloads.timeline.lanes import Lane, LaneKind, Line, Mark, Segment, Timeline
from workloads.timeline.looks import MARK_LOOKS, SEGMENT_WORDS, SHAPES, Tint
from workloads.timeline.moments import format_exact
from workloads.timeline.ticks import list_ticks

WIDTH = 1280
LEFT, RIGHT = 190, 24
TOP = 64
ROW, TALL = 26, 72
BAR = 18
LONGEST_TITLE, LONGEST_NOTE = 26, 170
CHARACTER = 6.4
"""Width of a character in a label, more or less."""
LEGEND_COLUMNS = 4
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif"
COLOURS = {
    Tint.GREEN: "#1f7a45",
    Tint.CYAN: "#0b6e75",
    Tint.ORANGE: "#a65a00",
    Tint.YELLOW: "#7d6200",
    Tint.GREY: "#5f6b7d",
    Tint.RED: "#b3261e",
    Tint.BLUE: "#2461b8",
    Tint.PURPLE: "#6a3fb5",
    Tint.INK: "#151b28",
    Tint.UNKNOWN: "#d3d8e1",
}
INK, QUIET, RULE, GROUND = "#151b28", "#566072", "#e0e4eb", "#f0f2f6"
_INVALID = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not have, however they are written."""


def render_svg(timeline: Timeline, title: str, subtitle: str = "") -> str:
    """Return the picture as a file; all texts in it are escaped."""
    rows = list(_place_lanes(timeline.lanes))
    bottom = rows[-1][0] + rows[-1][1] if rows else TOP
    legend = list(_list_legend(timeline))
    notes = [line for note in timeline.notes for line in textwrap.wrap(note, LONGEST_NOTE)]
    legend_top = bottom + 40
    notes_top = legend_top + 22 * (-(-len(legend) // LEGEND_COLUMNS)) + 12
    height = notes_top + 18 * len(notes) + 16
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="{escape(_FONT)}" font-size="12" role="img">'
        f"<title>{escape_xml(title)}</title>"
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        _text(24, 26, title, size=16, weight=600),
        _text(24, 45, subtitle, fill=QUIET),
        *_draw_axis(timeline, bottom),
    ]
    for top, row_height, lane in rows:
        parts += _draw_lane(lane, timeline, top, row_height)
    for number, (look, shape, words) in enumerate(legend):
        column, row = number % LEGEND_COLUMNS, number // LEGEND_COLUMNS
        x = LEFT + column * (WIDTH - LEFT - RIGHT) / LEGEND_COLUMNS
        parts += _draw_key(x, legend_top + 22 * row, look, shape, words)
    for number, line in enumerate(notes):
        parts.append(_text(24, notes_top + 18 * number, line, fill=QUIET))
    return "".join([*parts, "</svg>\n"])


def escape_xml(text: str) -> str:
    """Return a text as XML has it, without characters that XML cannot have."""
    return escape(_INVALID.sub("", text))


def _place_lanes(lanes: Sequence[Lane]) -> Iterator[tuple[int, int, Lane]]:
    """Yield each lane with its top and its height."""
    top = TOP
    for lane in lanes:
        height = TALL if lane.is_tall else ROW
        yield top, height, lane
        top += height


def _draw_axis(timeline: Timeline, bottom: int) -> Iterator[str]:
    for at, words in list_ticks(timeline.begin, timeline.end):
        x = _find_x(at, timeline)
        yield f'<path d="M{x:.1f} {TOP - 6}V{bottom + 4}" stroke="{RULE}"/>'
        yield _text(x, bottom + 16, words, fill=QUIET, anchor="middle", size=11)


def _draw_lane(lane: Lane, timeline: Timeline, top: int, height: int) -> Iterator[str]:
    bar = height - (ROW - BAR)
    y = top + (height - bar) / 2
    yield (
        f'<rect x="{LEFT}" y="{y:.1f}" width="{WIDTH - LEFT - RIGHT}" height="{bar}" '
        f'fill="{GROUND}"/>'
    )
    title = f"{lane.title} · {lane.note}" if lane.note else lane.title
    yield _text(LEFT - 10, top + height / 2 + 4, _cut_text(title, LONGEST_TITLE), anchor="end")
    for segment in lane.segments:
        yield from _draw_segment(segment, timeline, y, bar)
    for line in lane.lines:
        yield from _draw_line(line, y, bar)
    for mark in lane.marks:
        yield _draw_mark(mark, timeline, y + bar / 2)


def _draw_segment(segment: Segment, timeline: Timeline, y: float, bar: int) -> Iterator[str]:
    x, right = _find_x(segment.begin, timeline), _find_x(segment.end, timeline)
    width = max(1.0, right - x)
    if segment.rest is not None:
        yield _rect(x, y, width, bar, COLOURS[segment.rest], "")
    height = max(1.0, bar * segment.share)
    words = f"{segment.text} {_format_span(segment)}"
    # Bounds have to be seen across a tall bar.
    opacity = 0.45 if segment.state == "pods" else 1.0
    yield _rect(x, y + bar - height, width, height, COLOURS[segment.look], words, opacity)
    room = int((width - 8) / CHARACTER)
    if segment.label and room >= min(4, len(segment.label)):
        yield _text(x + 5, y + bar / 2 + 4, _cut_text(segment.label, room), fill="#fff", size=11)


def _draw_line(line: Line, y: float, bar: int) -> Iterator[str]:
    at = y + bar * (1 - line.share)
    dash = {"quota": "", "least": "6 4", "most": "2 3"}.get(line.name, "8 3")
    yield (
        f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" fill="none" stroke="{INK}" '
        f'stroke-dasharray="{dash}"><title>{escape_xml(line.text)}</title></path>'
    )


def _draw_mark(mark: Mark, timeline: Timeline, y: float) -> str:
    look = MARK_LOOKS[mark.kind]
    words = f"{mark.text} {format_exact(mark.at)}"
    return (
        f'<path transform="translate({_find_x(mark.at, timeline):.1f} {y:.1f})" '
        f'd="{SHAPES[look.shape]}" fill="{COLOURS[look.look]}" stroke="#fff" paint-order="stroke" '
        f'stroke-width="2"><title>{escape_xml(words)}</title></path>'
    )


def _list_legend(timeline: Timeline) -> Iterator[tuple[Tint, str, str]]:
    """Yield what the legend has: a colour, a shape or "" for a bar, and words."""
    for look in timeline.pod_looks:
        yield look, "", SEGMENT_WORDS[look]
    for kind in timeline.mark_kinds:
        yield MARK_LOOKS[kind].look, MARK_LOOKS[kind].shape, MARK_LOOKS[kind].title
    for lane in timeline.lanes:
        if lane.kind is LaneKind.POD_COUNT:
            yield Tint.BLUE, "", "pods on nodes"
            yield from ((Tint.INK, f"line-{line.name}", line.text) for line in lane.lines)


def _draw_key(x: float, y: float, look: Tint, shape: str, words: str) -> Iterator[str]:
    if shape.startswith("line-"):
        dash = {"quota": "", "least": "6 4", "most": "2 3"}.get(shape[5:], "8 3")
        yield f'<path d="M{x:.1f} {y}h16" stroke="{INK}" stroke-dasharray="{dash}"/>'
    elif shape:
        yield (
            f'<path transform="translate({x + 8:.1f} {y})" d="{SHAPES[shape]}" '
            f'fill="{COLOURS[look]}"/>'
        )
    else:
        yield _rect(x, y - 5, 16, 10, COLOURS[look], "")
    yield _text(x + 24, y + 4, words, fill=QUIET)


def _rect(
    x: float,
    y: float,
    width: float,
    height: float,
    colour: str,
    words: str,
    opacity: float = 1.0,
) -> str:
    shape = f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    fill = f'fill="{colour}"' + (f' fill-opacity="{opacity}"' if opacity < 1 else "")
    title = f"><title>{escape_xml(words)}</title></rect>" if words else "/>"
    return f"{shape} {fill}{title}"


def _text(
    x: float,
    y: float,
    words: str,
    *,
    fill: str = INK,
    anchor: str = "start",
    size: int = 12,
    weight: int = 400,
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}" text-anchor="{anchor}" font-size="{size}" '
        f'font-weight="{weight}">{escape_xml(words)}</text>'
    )


def _find_x(at: float, timeline: Timeline) -> float:
    share = (at - timeline.begin) / (timeline.end - timeline.begin)
    return LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, max(0.0, share))


def _cut_text(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: max(0, most - 1)]}…"


def _format_span(segment: Segment) -> str:
    until = "now" if segment.is_open else format_exact(segment.end)
    return f"{format_exact(segment.begin)} to {until}"
