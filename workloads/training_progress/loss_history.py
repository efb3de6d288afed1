"""The loss over time, thinned: as many points as a chart can show, however long a training is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MOST_POINTS = 500

LossPoint = tuple[float, int | None, float | None]
"""A time in seconds since 1970, the step, and the loss; None where that was no number."""


@dataclass(slots=True)
class LossHistory:
    """Points of a chart, at least `gap` seconds apart; the gap doubles when there are too many."""

    points: list[LossPoint] = field(default_factory=list)
    gap: float = 0.0

    def add_point(self, at: float, step: int | None, loss: float | None) -> bool:
        """Add a point unless it is too near to the last one. Return whether it was added."""
        at = round(at, 3)
        if self.points:
            last_at, _, last_loss = self.points[-1]
            # That a loss stops being a number is not thinned away.
            is_alike = (loss is None) == (last_loss is None)
            if at < last_at or (is_alike and at - last_at < self.gap):
                return False
        self.points.append((at, step, loss))
        if len(self.points) > MOST_POINTS:
            self._thin_out()
        return True

    def drop_later(self, at: float) -> None:
        """Drop the points later than `at`, which a clock that was ahead has set."""
        self.points = [each for each in self.points if each[0] <= at]

    def _thin_out(self) -> None:
        span = self.points[-1][0] - self.points[0][0]
        self.points = self.points[::2]
        self.gap = max(2 * self.gap, span / (MOST_POINTS / 2))

    def encode(self) -> dict[str, Any]:
        """Return it for a JSON column."""
        return {"gap": self.gap, "points": [list(each) for each in self.points]}


def decode_history(stored: Mapping[str, Any] | None) -> LossHistory:
    """Return the history that `LossHistory.encode` wrote; an empty one for None."""
    if not stored:
        return LossHistory()
    points = [(float(at), step, loss) for at, step, loss in stored["points"]]
    return LossHistory(points, float(stored["gap"]))


def is_by_step(points: Sequence[LossPoint]) -> bool:
    """Return whether a chart can go by steps: each point has one, and none goes backwards."""
    steps = [step for _, step, _ in points]
    known = [step for step in steps if step is not None]
    return len(known) == len(steps) > 0 and known == sorted(known)
