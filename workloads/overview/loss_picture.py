"""The picture of a loss over steps, or over time where steps go backwards. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from workloads.training_progress import LossPoint, format_figure, format_time, is_by_step

WIDTH = 1000
HEIGHT = 120
_TOP, _BOTTOM = 8, 112
"""Where the largest and the smallest loss are drawn."""
MOST_ROWS = 50


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of the grid, where it is, and its number."""

    y: float
    percent: float
    text: str


@dataclass(frozen=True, slots=True)
class LossPicture:
    """What is drawn. `bad` are places where the loss was no finite number.

    `begin` and `end` are the words below the ends of the axis, `words` tell the whole picture.
    """

    line: str
    ticks: Sequence[Tick]
    bad: Sequence[float]
    begin: str
    end: str
    words: str


def build_loss_picture(points: Sequence[LossPoint]) -> LossPicture | None:
    """Build the picture; None where there are not two points with a loss."""
    losses = [loss for _, _, loss in points if loss is not None]
    if len(losses) < 2:
        return None
    by_step = is_by_step(points)
    places = [float(step if by_step and step is not None else at) for at, step, _ in points]
    low, high = min(losses), max(losses)
    begin, span = places[0], (places[-1] - places[0]) or 1.0

    def find_x(place: float) -> float:
        return round((place - begin) / span * WIDTH, 1)

    def find_y(loss: float) -> float:
        share = 0.5 if high == low else (loss - low) / (high - low)
        return round(_BOTTOM - share * (_BOTTOM - _TOP), 1)

    pieces, is_broken = [], True
    for place, (_, _, loss) in zip(places, points, strict=True):
        if loss is not None:
            pieces.append(f"{'M' if is_broken else 'L'}{find_x(place)} {find_y(loss)}")
        is_broken = loss is None
    ticks = [
        Tick(find_y(loss), round(find_y(loss) / HEIGHT * 100, 1), format_figure(loss))
        for loss in dict.fromkeys((high, (high + low) / 2, low))
    ]
    bad = [
        find_x(place) for place, (_, _, loss) in zip(places, points, strict=True) if loss is None
    ]
    first, last = (
        (f"step {places[0]:,.0f}", f"step {places[-1]:,.0f}")
        if by_step
        else ("0 s", format_time(span))
    )
    return LossPicture(
        "".join(pieces), ticks, bad, first, last, _describe(losses, low, high, first, last, bad)
    )


def _describe(
    losses: Sequence[float], low: float, high: float, first: str, last: str, bad: Sequence[float]
) -> str:
    words = (
        f"Loss from {first} to {last}: from {format_figure(losses[0])} to "
        f"{format_figure(losses[-1])}, least {format_figure(low)}, most {format_figure(high)}."
    )
    return f"{words} It was no number {len(bad)} times." if bad else words


def choose_rows(points: Sequence[LossPoint]) -> list[LossPoint]:
    """Return the points that a table beside the picture has, the newest first."""
    every = max(1, -(-len(points) // MOST_ROWS))
    return list(points[::-1][::every])
