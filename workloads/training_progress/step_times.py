"""When a rank printed its steps: a few of the latest, the same ones of every rank. Pure."""

from collections.abc import Sequence

StepTime = tuple[int, float]
"""A step, and when it was printed, in seconds since 1970."""

MOST_STEPS = 12
LATEST = 16
"""The newest steps, which are all kept."""
SPAN = 240.0
"""Seconds of steps that are kept; of slow ones the `LATEST` at least."""
SET_BACK = 60.0
"""Seconds by which a step is earlier than the one before it, where the clock was set back."""
_FACTOR, _BITS = 2654435761, 32
"""Knuth's multiplicative hash (The Art of Computer Programming, volume 3, section 6.4)."""


def add_step_time(points: Sequence[StepTime], step: int, at: float) -> list[StepTime]:
    """Return the points with another one, in order; a step that is not later begins them anew.

    So does a clock that was set back: times before and after that cannot be compared.

    Of many steps those with the least hashes are kept: so ranks that print the same steps keep the
    same ones, and can be compared, though each log is read at another time.
    """
    new_points = [(number, moment) for number, moment in points]
    if new_points and step == new_points[-1][0]:
        return new_points
    if new_points and (step < new_points[-1][0] or at < new_points[-1][1] - SET_BACK):
        new_points = []
    new_points.append((step, round(at, 3)))
    older, latest = new_points[:-LATEST], new_points[-LATEST:]
    older = [(number, moment) for number, moment in older if moment >= at - SPAN]
    if len(older) > MOST_STEPS:
        chosen = sorted(older, key=lambda point: _hash_step(point[0]))[:MOST_STEPS]
        older = sorted(chosen)
    return [*older, *latest]


def _hash_step(step: int) -> int:
    return step * _FACTOR % (1 << _BITS)
