"""How often starts came by a forecast time, drawn against how often that was said."""

from collections.abc import Sequence
from dataclasses import dataclass

from console.templatetags.muster import NO_VALUE
from simulation import ReliabilityPoint
from workloads.queries.calibration import Calibration

LEFT, TOP, WIDTH, HEIGHT = 48, 8, 300, 280
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of the grid, the same on both axes."""

    x: str
    y: str
    text: str


@dataclass(frozen=True, slots=True)
class Dot:
    """A point of a series; `words` say what it is."""

    x: str
    y: str
    words: str


@dataclass(frozen=True, slots=True)
class Series:
    """The points of one series, and the line through them."""

    name: str
    dots: Sequence[Dot]

    @property
    def line(self) -> str:
        return " ".join(f"{dot.x},{dot.y}" for dot in self.dots)


@dataclass(frozen=True, slots=True)
class ReliabilityRow:
    """One quantile as a row of the table."""

    expected: str
    shown: str
    drawn: str
    count: int


@dataclass(frozen=True, slots=True)
class ReliabilityPicture:
    """The diagram, its table, and what it says to who does not see it."""

    ticks: Sequence[Tick]
    series: Sequence[Series]
    rows: Sequence[ReliabilityRow]
    words: str


def build_reliability_picture(calibration: Calibration) -> ReliabilityPicture:
    """Build the diagram of how right forecasts were."""
    rows = _build_rows(calibration)
    words = "; ".join(
        f"said {row.expected}, had started {row.shown}" for row in rows if row.shown != NO_VALUE
    )
    return ReliabilityPicture(
        ticks=[Tick(_find_x(each), _find_y(each), _format_percent(each)) for each in TICKS],
        series=[
            _build_series("drawn", calibration.drawn),
            _build_series("shown", calibration.shown),
        ],
        rows=rows,
        words=f"How often work had started by a time, against how often that was said: {words}",
    )


def _build_rows(calibration: Calibration) -> Sequence[ReliabilityRow]:
    """Build a row for each share that was said, by what was shown or drawn."""
    shown = {round(each.expected, 3): each for each in calibration.shown}
    drawn = {round(each.expected, 3): each for each in calibration.drawn}
    return [
        ReliabilityRow(
            _format_percent(share),
            _format_percent(shown[share].observed) if share in shown else NO_VALUE,
            _format_percent(drawn[share].observed) if share in drawn else NO_VALUE,
            (shown.get(share) or drawn[share]).count,
        )
        for share in sorted(shown.keys() | drawn.keys())
    ]


def _build_series(name: str, points: Sequence[ReliabilityPoint]) -> Series:
    return Series(
        name,
        [
            Dot(
                _find_x(each.expected),
                _find_y(each.observed),
                f"As {name}: said {_format_percent(each.expected)}, had started "
                f"{_format_percent(each.observed)} of {each.count:,}",
            )
            for each in points
        ],
    )


def _find_x(share: float) -> str:
    return f"{LEFT + share * WIDTH:.1f}"


def _find_y(share: float) -> str:
    return f"{TOP + (1 - share) * HEIGHT:.1f}"


def _format_percent(share: float) -> str:
    return f"{100 * share:.0f} %"
