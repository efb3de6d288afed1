"""How right forecasts were, and how much wider their intervals have to be.

The margins are conformal: those that would have made past intervals right as often as they claim
(Romano, Patterson and Candès 2019, conformalized quantile regression, section 4). Where times
change, those of the past are too narrow or too wide: so they aim at more while intervals that
were shown are right too seldom, and at less while too many are (Gibbs and Candès 2021, adaptive
conformal inference).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LEAST_OUTCOMES = 20
"""Outcomes below which no margin is computed: intervals stay as they were drawn."""

CAUTION = 30
"""From how many different starts on a margin counts for half or more of what it is.

Outcomes are not independent, as conformal margins presume: all that waits at one time starts early
or late together, and the few times that were seen are not all that come.
"""

COVERAGE = 0.8
MOST_COVERAGE = 0.95
"""The share at which margins aim at most, however seldom intervals were right that were shown."""


@dataclass(frozen=True, slots=True)
class PastInterval:
    """An interval that was forecast, and what came; all in seconds from the forecast.

    Of work that still waits, and has since before `latest`, `start` is how long it has waited: it
    is late already. What could still start within its interval is no past interval yet, or only
    those that start soon would count.
    """

    key: str
    """Whose start it was: several forecasts of one wait are wrong together."""
    earliest: float
    latest: float
    start: float


@dataclass(frozen=True, slots=True)
class ReliabilityPoint:
    """How often a start came by the time of which a share of `expected` was forecast."""

    expected: float
    observed: float
    count: int


def compute_aim(outcomes: Sequence[tuple[str, bool]]) -> float:
    """Return which share of past intervals a margin has to cover for the next ones to be right.

    `outcomes` say of the newest intervals that were shown, and are over, whose start it was and
    whether each was right. Where too few were, more than claimed are to be covered, and less where
    too many were: as with margins the more, the more there are whose starts they were.
    """
    if len(outcomes) < LEAST_OUTCOMES:
        return COVERAGE
    missing = COVERAGE - sum(is_right for _, is_right in outcomes) / len(outcomes)
    return min(COVERAGE + missing * _weigh(key for key, _ in outcomes), MOST_COVERAGE)


def _weigh(keys: Iterable[str]) -> float:
    """Return for how much counts what was learned from the starts of these, up to 1."""
    count = len(set(keys))
    return count / (count + CAUTION)


def compute_margin(past: Iterable[PastInterval], coverage: float = COVERAGE) -> float:
    """Return the factor by which intervals have to be widened, or narrowed, to cover as often.

    It is a margin on the logarithms of times, since an error of a minute matters for a start in
    five of them and not for one tomorrow. 0 leaves intervals as they are, as with few outcomes. It
    counts for less, the fewer there are whose starts it was learned from.
    """
    past = list(past)
    scores = sorted(
        max(_log(each.earliest) - _log(each.start), _log(each.start) - _log(each.latest))
        for each in past
    )
    if len(scores) < LEAST_OUTCOMES:
        return 0.0
    rank = math.ceil((len(scores) + 1) * coverage)
    return scores[min(rank, len(scores)) - 1] * _weigh(each.key for each in past)


def widen_interval(
    earliest: float, likely: float, latest: float, margin: float
) -> tuple[float, float]:
    """Return an interval moved by a margin; the likely start stays inside it."""
    low, high = _power(_log(earliest) - margin), _power(_log(latest) + margin)
    return max(0.0, min(low, likely)), max(high, likely)


def compute_reliability(
    shares: Sequence[float], outcomes: Iterable[tuple[Sequence[float], float]]
) -> Sequence[ReliabilityPoint]:
    """Return for each quantile how often a start came no later than it was forecast.

    `outcomes` are the forecast quantiles, one for each of `shares`, and the true start.
    """
    counts = [0] * len(shares)
    total = 0
    for quantiles, start in outcomes:
        total += 1
        for index, quantile in enumerate(quantiles):
            counts[index] += start <= quantile
    if not total:
        return []
    return [
        ReliabilityPoint(share, count / total, total)
        for share, count in zip(shares, counts, strict=True)
    ]


SHORTEST = 30.0
"""Seconds to which times are added before their logarithm: shorter ones are all alike."""


def _log(seconds: float) -> float:
    return math.log(max(seconds, 0.0) + SHORTEST)


def _power(value: float) -> float:
    return math.exp(min(value, 700.0)) - SHORTEST
