"""What others say of a start: three plain ways, each with its quantiles."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

from benchmarks.forecasting.histories import History, list_lengths
from benchmarks.forecasting.replay import Moment
from scheduling import Gang
from simulation.forecasts import find_quantile

Quantiles = tuple[float, float, float]
"""Seconds by which a start comes with a chance of 1, 5 and 9 in 10."""
SHARES = (0.1, 0.5, 0.9)
FEWEST_WAITS = 5

Baseline = Callable[[Moment, History, Sequence[Gang]], Mapping[str, Quantiles]]


def use_mean_wait(
    moment: Moment, history: History, waiting: Sequence[Gang]
) -> Mapping[str, Quantiles]:
    """Expect the project's mean wait, of those who waited longer than it has, less what it has.

    With less than five of those it expects their project's mean wait from now on. The quantiles
    are those of the same waits.
    """
    waits: dict[str, list[float]] = defaultdict(list)
    for plan, seconds in moment.waits:
        waits[plan.project].append(seconds)
    answers = {}
    for gang in waiting:
        waited = moment.now - gang.created_at
        rest = [seconds - waited for seconds in waits[gang.queue] if seconds > waited]
        rest = rest if len(rest) >= FEWEST_WAITS else waits[gang.queue] or [0.0]
        low, high = find_quantile(rest, 0.1), find_quantile(rest, 0.9)
        answers[gang.key] = (low or 0.0, statistics.fmean(rest), high or 0.0)
    return answers


def use_position(
    moment: Moment, history: History, waiting: Sequence[Gang]
) -> Mapping[str, Quantiles]:
    """Multiply the position in the project's queue by its mean run length over its runs going on.

    It is one number: all quantiles are alike.
    """
    running = Counter(moment.submissions[key].project for key in moment.ran)
    answers: dict[str, Quantiles] = {}
    positions: Counter[str] = Counter()
    for gang in sorted(waiting, key=lambda each: (-each.priority, each.created_at)):
        positions[gang.queue] += 1
        mean = statistics.fmean(list_lengths(history, gang.queue) or [0.0])
        seconds = positions[gang.queue] * mean / max(1, running[gang.queue])
        answers[gang.key] = (seconds, seconds, seconds)
    return answers
