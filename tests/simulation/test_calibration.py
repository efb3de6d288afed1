"""Margins make intervals as right as they claim; reliability counts how right they were."""

import math
import statistics
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulation.calibration import (
    COVERAGE,
    LEAST_OUTCOMES,
    MOST_COVERAGE,
    PastInterval,
    compute_aim,
    compute_margin,
    compute_reliability,
    widen_interval,
)
from simulation.forecasts import find_quantile

LIKELY = 600.0


def draw_outcomes(random: Random, count: int, width: float) -> list[PastInterval]:
    """Return intervals of a width about ten minutes, with starts that spread by a factor of e."""
    return [
        PastInterval(
            str(number),
            (LIKELY + 30) * math.exp(-width) - 30,
            (LIKELY + 30) * math.exp(width) - 30,
            (LIKELY + 30) * math.exp(random.gauss(0, 1)) - 30,
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("width", [0.2, 1.3, 3.0], ids=["too narrow", "about right", "too wide"])
def test_intervals_of_any_width_cover_eight_of_ten_after_calibration(width: float) -> None:
    random = Random(20_261_128)
    covered = total = 0
    for _ in range(60):
        margin = compute_margin(draw_outcomes(random, 1000, width))
        for each in draw_outcomes(random, 40, width):
            low, high = widen_interval(each.earliest, LIKELY, each.latest, margin)
            covered += low <= each.start <= high
            total += 1
    # The likely start stays inside, so an interval cannot become too narrow to cover it.
    assert covered / total == pytest.approx(0.8, abs=0.03)


def test_few_outcomes_move_nothing() -> None:
    outcomes = [PastInterval(str(number), 10, 20, 5000) for number in range(LEAST_OUTCOMES - 1)]
    assert compute_margin(outcomes) == 0
    assert compute_margin([*outcomes, outcomes[0]]) > 1
    assert widen_interval(100, 200, 300, 0) == pytest.approx((100, 300))


def test_a_margin_counts_for_more_the_more_starts_it_was_learned_from() -> None:
    interval = PastInterval("", 10, 20, 5000)
    whole = math.log(5030) - math.log(50)
    for known, share in ((1, 1 / 31), (30, 0.5), (270, 0.9)):
        outcomes = [replace(interval, key=str(number % known)) for number in range(300)]
        assert compute_margin(outcomes) == pytest.approx(whole * share)


@pytest.mark.parametrize(
    ("right", "wrong", "known", "aim"),
    [
        (80, 20, 100, COVERAGE),
        (70, 30, 30, 0.85),
        (700, 300, 270, 0.89),
        (90, 10, 30, 0.75),
        (0, 1000, 1000, MOST_COVERAGE),
        (1, LEAST_OUTCOMES - 2, LEAST_OUTCOMES - 1, COVERAGE),
    ],
)
def test_margins_make_up_for_what_was_missing(
    right: int, wrong: int, known: int, aim: float
) -> None:
    outcomes = [True] * right + [False] * wrong
    keyed = [(str(number % known), is_right) for number, is_right in enumerate(outcomes)]
    assert compute_aim(keyed) == pytest.approx(aim)


def test_intervals_cover_more_often_where_times_spread_more_and_more() -> None:
    aimed, plain = (follow_spreading_starts(is_aimed) for is_aimed in (True, False))
    assert plain < 0.72
    assert plain + 0.03 < aimed <= COVERAGE


def follow_spreading_starts(is_aimed: bool) -> float:
    """Return how often intervals were right whose starts spread three times as far at the end."""
    random = Random(20_261_129)
    past: list[PastInterval] = []
    outcomes: list[tuple[str, bool]] = []
    for number in range(3000):
        spread = 0.5 + number / 3000
        aim = compute_aim(outcomes[-200:]) if is_aimed else COVERAGE
        margin = compute_margin(past[-1000:], aim)
        start = (LIKELY + 30) * math.exp(random.gauss(0, spread)) - 30
        low, high = widen_interval(LIKELY / 2, LIKELY, LIKELY * 2, margin)
        outcomes.append((str(number), low <= start <= high))
        past.append(PastInterval(str(number), LIKELY / 2, LIKELY * 2, start))
    return statistics.fmean(is_right for _, is_right in outcomes[1000:])


times = st.floats(0, 1e7)


@given(bounds=st.tuples(times, times, times).map(sorted), margin=st.floats(-50, 50))
def test_the_likely_start_stays_inside(bounds: list[float], margin: float) -> None:
    earliest, likely, latest = bounds
    low, high = widen_interval(earliest, likely, latest, margin)
    assert 0 <= low <= likely <= high
    if margin > 0.001:
        assert low <= earliest + 1e-6
        assert high >= latest - 1e-6


def test_reliability_counts_how_often_a_start_came_by_each_quantile() -> None:
    shares = (0.1, 0.5, 0.9)
    outcomes = [((10, 20, 30), start) for start in (5, 10, 20, 25, 40)]
    points = compute_reliability(shares, outcomes)
    assert [(each.expected, each.observed, each.count) for each in points] == [
        (0.1, 0.4, 5),
        (0.5, 0.6, 5),
        (0.9, 0.8, 5),
    ]
    assert compute_reliability(shares, []) == []


@pytest.mark.parametrize(
    ("values", "share", "quantile"),
    [
        ([], 0.5, None),
        ([7.0], 0.9, 7.0),
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        ([1.0, 2.0], 0.25, 1.25),
        # What did not start within the horizon is later than all that did.
        ([None, 1.0, 2.0], 0.5, 2.0),
        ([None, 1.0, 2.0], 0.75, None),
        ([None, None, 1.0], 0.5, None),
        ([4.0, 2.0], 1.0, 4.0),
        ([4.0, 2.0], 0.0, 2.0),
    ],
)
def test_quantiles_lie_between_starts_and_beyond_the_horizon_are_none(
    values: list[float | None], share: float, quantile: float | None
) -> None:
    assert find_quantile(values, share) == quantile
