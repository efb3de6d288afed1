"""How long a training still takes, and how that was worked out; nothing rather than nonsense."""

from collections.abc import Sequence
from dataclasses import dataclass

from workloads.training_progress.tracking import Place

WINDOW = 300.0
"""Seconds over which the pace is measured."""
MIN_SPAN = 5.0
"""Seconds without which there is no pace yet."""
MIN_GAP = 10.0
"""Seconds between two points that are kept."""
FEWEST_POINTS = 3
"""Points that are kept however old they are: some trainings write a line an hour."""
MOST_POINTS = 40
SILENCE = 120.0
"""Seconds without a step after which nothing is said, unless the lines come more seldom."""
LONGEST = 400 * 24 * 3600.0

Point = tuple[float, float]
"""A time in seconds since 1970, and what was done by then."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How many steps or epochs a second are done, measured over so many seconds."""

    per_second: float
    span: float
    interval: float
    """Seconds between two of the points, on average."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds that are left, and a sentence that says how that was worked out."""

    seconds: float
    words: str


def add_point(points: Sequence[Point], at: float, done: float) -> list[Point]:
    """Return the points with another one. They begin anew where what was done has become less."""
    new_points = list(points)
    if new_points and (done < new_points[-1][1] or at < new_points[-1][0]):
        new_points = []
    if new_points and done == new_points[-1][1]:
        return new_points
    if len(new_points) > 1 and at - new_points[-2][0] < MIN_GAP:
        new_points.pop()
    new_points.append((at, done))
    while len(new_points) > FEWEST_POINTS and (
        new_points[0][0] < at - WINDOW or len(new_points) > MOST_POINTS
    ):
        new_points.pop(0)
    return new_points


def measure_pace(points: Sequence[Point]) -> Pace | None:
    """Return the pace over these points; None while they tell too little."""
    if len(points) < 2:
        return None
    span, done = points[-1][0] - points[0][0], points[-1][1] - points[0][1]
    if span < MIN_SPAN or done <= 0:
        return None
    return Pace(done / span, span, span / (len(points) - 1))


def estimate_rest(place: Place | None, points: Sequence[Point], now: float) -> Estimate | None:
    """Estimate the time that is left, of a training that runs; None where that is not known."""
    pace = measure_pace(points)
    if place is None or place.goal is None or pace is None or place.done >= place.goal:
        return None
    age = now - points[-1][0]
    if age > max(SILENCE, 5 * pace.interval):
        return None
    seconds = (place.goal - place.done) / pace.per_second - max(0.0, age)
    if seconds > LONGEST:
        return None
    seconds = max(0.0, seconds)
    words = (
        f"about {format_time(seconds)}, from {describe_pace(pace, place.unit)} over the last "
        f"{format_time(pace.span)}; total from the log"
    )
    return Estimate(seconds, words)


def describe_pace(pace: Pace, unit: str) -> str:
    """Describe a pace: "40 steps a second", "12 s a step"."""
    if pace.per_second >= 0.1:
        is_fast = pace.per_second >= 999.5
        number = f"{pace.per_second:,.0f}" if is_fast else f"{pace.per_second:.3g}"
        return f"{number} {unit}{'' if number == '1' else 's'} a second"
    return f"{format_time(1 / pace.per_second)} {'an' if unit == 'epoch' else 'a'} {unit}"


def format_time(seconds: float) -> str:
    """Format seconds by their largest unit and the next: "50 s", "12 min", "3 h 20 min", "2 d"."""
    whole_seconds = round(seconds)
    if whole_seconds < 120:
        return f"{whole_seconds} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"
