"""How sure the figures of a world are: what they are for days of it drawn again and again.

All that waits on one day is early or late together, so whole days are drawn, with replacement.
"""

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from benchmarks.forecasting.scoring import Sample
from benchmarks.forecasting.worlds import DAY

DRAWS = 300
SEED = 1
WITHIN = 0.9
"""Which share of the draws lies in the range that is printed."""


def split_days(histories: Iterable[Sequence[Sample]]) -> Sequence[Sequence[Sample]]:
    """Return the forecasts of each day of each history that have a start."""
    days: dict[tuple[int, float], list[Sample]] = defaultdict(list)
    for number, samples in enumerate(histories):
        for sample in samples:
            if sample.has_forecast:
                days[number, sample.made_at // DAY].append(sample)
    return list(days.values())


def draw_days(days: Sequence[Sequence[Sample]]) -> Sequence[Sequence[Sample]]:
    """Return as many days as there are, drawn anew each time; nothing where there is only one."""
    if len(days) < 2:
        return []
    generator = random.Random(SEED)
    return [
        [sample for day in generator.choices(days, k=len(days)) for sample in day]
        for _ in range(DRAWS)
    ]


def find_range(
    draws: Iterable[Sequence[Sample]], compute: Callable[[Sequence[Sample]], float]
) -> tuple[float, float]:
    """Return between which values a figure lies in nine of ten draws."""
    figures = sorted(map(compute, draws))
    outside = math.floor(len(figures) * (1 - WITHIN) / 2)
    return figures[outside], figures[-1 - outside]
