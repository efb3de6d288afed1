"""The pods of a workload over time as a picture, in units of its width and height. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from workloads.quantities import format_count

WIDTH = 1000
HEIGHT = 120
"""What the picture measures; its width is stretched to that of its place."""
COLUMNS = 500
"""Steps that can be told apart: within one column only the least and the most count."""
MOST_TICKS = 5
NEAR = 3
"""Percent of the width within which marks are one."""


@dataclass(frozen=True, slots=True)
class Line:
    """A bound as a line: `name` is of its class, `words` say it."""

    name: str
    y: float
    words: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment with a number: `percent` of the width, and its `x`."""

    label: str
    percent: float
    x: float
    is_loss: bool


@dataclass(frozen=True, slots=True)
class Tick:
    """A number of the axis, and where it is in percent of the height."""

    count: int
    y: float
    percent: float


@dataclass(frozen=True, slots=True)
class PodPicture:
    """`line` and `area` are SVG paths."""

    line: str
    area: str
    lines: Sequence[Line]
    marks: Sequence[Mark]
    ticks: Sequence[Tick]
    words: str

    @property
    def has_wide_ticks(self) -> bool:
        """Whether the numbers of the axis have four digits or more."""
        return any(tick.count >= 1000 for tick in self.ticks)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Numbers of pods: the least and the most that it runs with, and what the quota holds.

    None where there is no such bound.
    """

    least: int | None = None
    most: int | None = None
    quota: int | None = None


def build_pod_picture(
    steps: Sequence[tuple[datetime, int]],
    begin: datetime,
    end: datetime,
    bounds: Bounds,
    marks: Iterable[tuple[datetime, bool]] = (),
    *,
    is_running: bool = True,
) -> PodPicture:
    """Build the picture of these steps between two moments.

    `marks` are moments that get numbers in their order, and whether pods were lost then. Without
    `is_running` the last step is no present number.
    """
    highest = max([count for _, count in steps] + [bounds.most or 0, bounds.least or 0, 1])
    # A quota far above would press everything to the ground: it is in the words alone.
    if bounds.quota is not None and bounds.quota <= 2 * highest:
        highest = max(highest, bounds.quota)
    scale = _Scale(begin, max(end, begin + timedelta(seconds=1)), highest)
    points = _thin_points([(scale.x(at), count) for at, count in steps])
    line = _draw_steps(points, scale)
    area = f"{line}V{HEIGHT}H{_format(points[0][0])}Z" if points else ""
    return PodPicture(
        line,
        area,
        list(_build_lines(bounds, scale)),
        _build_marks(marks, scale),
        _build_ticks(scale),
        _describe(steps, bounds, is_running),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    begin: datetime
    end: datetime
    highest: int

    def x(self, at: datetime) -> float:
        share = (at - self.begin) / (self.end - self.begin)
        return WIDTH * min(1.0, max(0.0, share))

    def y(self, count: int) -> float:
        """A little room stays above, so that a line at the top is seen whole."""
        return round(HEIGHT - (HEIGHT - 4) * count / self.highest, 1)


def _thin_points(points: Iterable[tuple[float, int]]) -> list[tuple[float, int]]:
    """Return at most four points of each column: its first, least, most and last."""
    thinned: list[tuple[float, int]] = []
    column: list[tuple[float, int]] = []
    for point in points:
        if column and int(point[0] * COLUMNS / WIDTH) != int(column[0][0] * COLUMNS / WIDTH):
            thinned += _pick_points(column)
            column = []
        column.append(point)
    return thinned + _pick_points(column)


def _pick_points(column: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    if len(column) <= 4:
        return list(column)
    numbers = range(len(column))
    least = min(numbers, key=lambda number: column[number][1])
    most = max(numbers, key=lambda number: column[number][1])
    return [column[number] for number in sorted({0, least, most, len(column) - 1})]


def _draw_steps(points: Sequence[tuple[float, int]], scale: _Scale) -> str:
    if not points:
        return ""
    first_x, _ = points[0]
    parts = [f"M{_format(first_x)} {HEIGHT}"]
    for number, (x, count) in enumerate(points):
        parts.append(f"{f'H{_format(x)}' if number else ''}V{_format(scale.y(count))}")
    if points[-1][1]:
        parts.append(f"H{WIDTH}")
    return "".join(parts)


def _build_lines(bounds: Bounds, scale: _Scale) -> Iterable[Line]:
    if bounds.quota is not None and bounds.quota <= scale.highest:
        yield Line(
            "quota", scale.y(bounds.quota), f"quota: room for {format_count(bounds.quota, 'pod')}"
        )
    if bounds.least is not None:
        yield Line("least", scale.y(bounds.least), f"minimum: {format_count(bounds.least, 'pod')}")
    if bounds.most is not None:
        yield Line("most", scale.y(bounds.most), f"maximum: {format_count(bounds.most, 'pod')}")


def _build_marks(marks: Iterable[tuple[datetime, bool]], scale: _Scale) -> Sequence[Mark]:
    """Return the marks; those that would lie on each other are one, with their first and last."""
    built: list[Mark] = []
    first = 1
    for number, (at, is_loss) in enumerate(marks, 1):
        x = scale.x(at)
        percent = round(100 * x / WIDTH, 2)
        if built and percent - built[-1].percent < NEAR:
            before = built.pop()
            label = f"{first}–{number}"
            built.append(Mark(label, before.percent, before.x, before.is_loss or is_loss))
            continue
        first = number
        built.append(Mark(str(number), percent, round(x, 1), is_loss))
    return built


def _build_ticks(scale: _Scale) -> Sequence[Tick]:
    step = -(-scale.highest // (MOST_TICKS - 1))
    return [
        Tick(count, scale.y(count), round(100 * scale.y(count) / HEIGHT, 1))
        for count in range(0, scale.highest + 1, step)
    ]


def _describe(steps: Sequence[tuple[datetime, int]], bounds: Bounds, is_running: bool) -> str:
    counts = [count for _, count in steps]
    if not counts:
        text = "No pod has run"
    elif not is_running:
        text = f"Pods over time: at most {format_count(max(counts), 'pod')}, ended"
    else:
        text = f"Pods over time: {format_count(counts[-1], 'pod')} now"
        text += f", at most {max(counts):,}" if len(counts) > 1 else ""
    parts = (
        ("minimum", bounds.least),
        ("maximum", bounds.most),
        ("room in the quota", bounds.quota),
    )
    bound_texts = [f"{name} {count:,}" for name, count in parts if count is not None]
    return f"{text}; {', '.join(bound_texts)}" if bound_texts else text


def _format(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
