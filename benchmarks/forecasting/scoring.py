"""How right forecasts were: what they covered, lost and missed by, before and after calibration."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.forecasting.baselines import SHARES, Quantiles
from benchmarks.forecasting.worlds import HOUR, MINUTE
from simulation.calibration import PastInterval, compute_aim, compute_margin, widen_interval
from simulation.forecasts import Outlook, StartForecast

CLASSES = (10 * MINUTE, HOUR, 6 * HOUR)
"""Bounds of the classes of likely starts; each has a margin of its own."""
MOST_OUTCOMES = 500
"""The newest outcomes of a class from which its margin is computed."""
MOST_SHOWN = 200
"""The newest intervals by which it is judged whether enough of them are right."""


@dataclass(slots=True)
class Sample:
    """A forecast for one gang at one moment, what others said, and when it really started."""

    key: str
    made_at: float
    forecast: StartForecast
    start: float
    """Seconds from the moment, at most the horizon."""
    horizon: float
    others: Mapping[str, Quantiles] = field(default_factory=dict)
    margin: float = 0.0

    @property
    def has_forecast(self) -> bool:
        return self.forecast.outlook is Outlook.STARTS

    @property
    def horizon_class(self) -> int:
        likely = self.forecast.likely or 0.0
        return sum(likely >= bound for bound in CLASSES)

    @property
    def quantiles(self) -> Quantiles:
        """The forecast as it was drawn; what lies beyond the horizon is taken to be at it."""
        earliest, likely, latest = (
            self.horizon if each is None else each
            for each in (self.forecast.earliest, self.forecast.likely, self.forecast.latest)
        )
        return earliest, likely, latest

    @property
    def calibrated(self) -> Quantiles:
        earliest, likely, latest = self.quantiles
        low, high = widen_interval(earliest, likely, latest, self.margin)
        return low, likely, min(high, self.horizon) if high > latest else high

    @property
    def is_right(self) -> bool:
        """Whether it started within its interval, as that is shown."""
        earliest, _, latest = self.calibrated
        return earliest <= self.start <= latest


@dataclass(frozen=True, slots=True)
class Score:
    """The figures of one way of forecasting."""

    pinball: float
    """Mean over starts and the three quantiles, in seconds."""
    error: float
    """Median of how far the likely start was off, in seconds."""


def set_margins(samples: Sequence[Sample]) -> None:
    """Give each forecast the margin that could be computed when it was made.

    An outcome counts when its interval is over: before, only those are known that started early.
    Its class needs enough of them, else all classes together do.
    """
    by_moment: dict[float, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.has_forecast:
            by_moment[sample.made_at].append(sample)
    for now, forecasts in sorted(by_moment.items()):
        before = [
            sample for moment in sorted(by_moment) if moment < now for sample in by_moment[moment]
        ]
        past = [each for each in before if each.made_at + each.quantiles[2] <= now]
        over = [each for each in before if each.made_at + each.calibrated[2] <= now]
        overall_margin = _compute_margin(past, over, now)
        for number in range(len(CLASSES) + 1):
            alike, judged = (
                [each for each in samples if each.horizon_class == number]
                for samples in (past, over)
            )
            margin = _compute_margin(alike, judged, now) or overall_margin
            for sample in forecasts:
                if sample.horizon_class == number:
                    sample.margin = margin


def _compute_margin(past: Sequence[Sample], over: Sequence[Sample], now: float) -> float:
    """Compute the margin, by those whose drawn and by those whose shown interval is over."""
    aim = compute_aim([(each.key, each.is_right) for each in over[-MOST_SHOWN:]])
    return compute_margin([_settle(each, now) for each in past[-MOST_OUTCOMES:]], aim)


def _settle(sample: Sample, now: float) -> PastInterval:
    """Return a past forecast as it is known now: what has not started has waited until now."""
    earliest, _, latest = sample.quantiles
    start = min(sample.start, now - sample.made_at)
    return PastInterval(sample.key, earliest, latest, start)


def compute_coverage(samples: Sequence[Sample], pick: Callable[[Sample], Quantiles]) -> float:
    """Return which share of the starts lay within their interval."""
    inside = [pick(each)[0] <= each.start <= pick(each)[2] for each in samples]
    return statistics.fmean(inside) if inside else float("nan")


def compute_width(samples: Sequence[Sample], pick: Callable[[Sample], Quantiles]) -> float:
    """Return the median seconds from the earliest to the latest start."""
    return (
        statistics.median(pick(each)[2] - pick(each)[0] for each in samples)
        if samples
        else float("nan")
    )


def compute_score(samples: Sequence[Sample], pick: Callable[[Sample], Quantiles]) -> Score:
    """Return the figures of one way, which `pick` names the quantiles of."""
    if not samples:
        return Score(float("nan"), float("nan"))
    losses = [
        compute_pinball(min(quantile, each.horizon), each.start, share)
        for each in samples
        for quantile, share in zip(pick(each), SHARES, strict=True)
    ]
    errors = [abs(min(pick(each)[1], each.horizon) - each.start) for each in samples]
    return Score(statistics.fmean(losses), statistics.median(errors))


def compute_pinball(quantile: float, start: float, share: float) -> float:
    """Return what a quantile loses: least in the long run for one that is right that often."""
    return max(share * (start - quantile), (share - 1) * (start - quantile))
