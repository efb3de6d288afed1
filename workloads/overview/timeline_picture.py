"""A timeline as the values of its page: places in percent of the width, and texts. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from workloads.timeline import (
    MARK_LOOKS,
    SHAPES,
    Lane,
    Line,
    Mark,
    MarkKind,
    RankChoice,
    Segment,
    Timeline,
    Tint,
)
from workloads.timeline.looks import SEGMENT_WORDS
from workloads.timeline.ticks import list_ticks

HEIGHT, TALL = 22, 72
"""Pixels of a lane."""
EDGE_PERCENT = 2.5
"""Ticks that are nearer to an edge would stand out of the picture."""
LEAST_PERCENT = 0.12
"""A segment is not drawn narrower than this: it would not be seen."""


@dataclass(frozen=True, slots=True)
class SegmentShape:
    """A segment: `x` and `width` in percent of the lane, `y` and `height` in pixels."""

    x: str
    width: str
    y: str
    height: str
    look: str
    rest: str
    label: str
    text: str
    begin: str
    end: str
    is_open: bool


@dataclass(frozen=True, slots=True)
class MarkShape:
    """A mark: `x` in percent of the lane."""

    x: str
    look: str
    shape: str
    text: str
    at: str


@dataclass(frozen=True, slots=True)
class LineShape:
    """A bound across a lane, `y` in pixels."""

    name: str
    y: str


@dataclass(frozen=True, slots=True)
class LaneRow:
    """One row of the page. `ranks` is what shows the ranks of a group each with its lane."""

    title: str
    note: str
    kind: str
    height: int
    middle: int
    segments: Sequence[SegmentShape]
    marks: Sequence[MarkShape]
    lines: Sequence[LineShape]
    ranks: str


@dataclass(frozen=True, slots=True)
class LegendKey:
    """What one colour, shape or line means; `shape` is "" for a colour, `line` for others."""

    look: str
    shape: str
    line: str
    words: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A moment of the axis, in percent of the width."""

    x: str
    words: str


@dataclass(frozen=True, slots=True)
class TimelinePicture:
    """All that the page draws of a timeline."""

    begin: str
    end: str
    is_over: bool
    rows: Sequence[LaneRow]
    keys: Sequence[LegendKey]
    ticks: Sequence[Tick]
    shapes: Sequence[tuple[str, str]]
    notes: Sequence[str]


def build_timeline_picture(timeline: Timeline) -> TimelinePicture:
    """Build what the page draws of a timeline."""
    kinds = timeline.mark_kinds
    return TimelinePicture(
        _write_seconds(timeline.begin),
        _write_seconds(timeline.end),
        timeline.is_over,
        [_build_row(lane, timeline) for lane in timeline.lanes],
        list(_list_keys(timeline, kinds)),
        list(_list_ticks(timeline)),
        [(name, SHAPES[name]) for name in dict.fromkeys(MARK_LOOKS[kind].shape for kind in kinds)],
        timeline.notes,
    )


def _build_row(lane: Lane, timeline: Timeline) -> LaneRow:
    height = TALL if lane.is_tall else HEIGHT
    has_more = lane.first_rank is not None and lane.first_rank != lane.last_rank
    ranks = str(RankChoice(((lane.first_rank or 0, lane.last_rank or 0),))) if has_more else ""
    return LaneRow(
        lane.title,
        lane.note,
        lane.kind.value,
        height,
        height // 2,
        [_build_segment(each, timeline, height) for each in lane.segments],
        [_build_mark(each, timeline) for each in lane.marks],
        [_build_line(each, height) for each in lane.lines],
        ranks,
    )


def _build_segment(segment: Segment, timeline: Timeline, height: int) -> SegmentShape:
    x, right = _find_percent(segment.begin, timeline), _find_percent(segment.end, timeline)
    bar = max(1.0, height * segment.share)
    return SegmentShape(
        _write_percent(x),
        _write_percent(max(LEAST_PERCENT, right - x)),
        f"{height - bar:.1f}",
        f"{bar:.1f}",
        segment.look.value,
        segment.rest.value if segment.rest is not None else "",
        segment.label,
        segment.text,
        _write_seconds(segment.begin),
        _write_seconds(segment.end),
        segment.is_open,
    )


def _build_mark(mark: Mark, timeline: Timeline) -> MarkShape:
    look = MARK_LOOKS[mark.kind]
    x = _write_percent(_find_percent(mark.at, timeline))
    return MarkShape(x, look.look.value, look.shape, mark.text, _write_seconds(mark.at))


def _build_line(line: Line, height: int) -> LineShape:
    return LineShape(line.name, f"{max(1.0, height * (1 - line.share)):.1f}")


def _list_keys(timeline: Timeline, kinds: Sequence[MarkKind]) -> Iterator[LegendKey]:
    for look in timeline.pod_looks:
        yield LegendKey(look.value, "", "", SEGMENT_WORDS[look])
    for kind in kinds:
        mark = MARK_LOOKS[kind]
        yield LegendKey(mark.look.value, mark.shape, "", mark.title)
    for lane in timeline.lanes:
        if lane.is_tall:
            yield LegendKey(Tint.BLUE.value, "", "", "pods on nodes")
            yield from (LegendKey("", "", line.name, line.text) for line in lane.lines)


def _list_ticks(timeline: Timeline) -> Iterator[Tick]:
    for at, words in list_ticks(timeline.begin, timeline.end):
        x = _find_percent(at, timeline)
        if EDGE_PERCENT < x < 100 - EDGE_PERCENT:
            yield Tick(_write_percent(x), words)


def _find_percent(at: float, timeline: Timeline) -> float:
    share = (at - timeline.begin) / (timeline.end - timeline.begin)
    return 100 * min(1.0, max(0.0, share))


def _write_percent(percent: float) -> str:
    return f"{percent:.2f}%"


def _write_seconds(at: float) -> str:
    return f"{at:.1f}"
