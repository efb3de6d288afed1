"""How long work runs: survival computed by hand, and what every draw has to keep to."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulation.run_lengths import MOST_RUNS, RunLengths

DRAWS = 4000


def draw_shares(lengths: RunLengths, elapsed: float = 0.0) -> dict[float | None, float]:
    """Return how often each length is drawn, as a share."""
    random = Random(7)
    counts = Counter(lengths.draw(random, elapsed) for _ in range(DRAWS))
    return {length: count / DRAWS for length, count in counts.items()}


@pytest.mark.parametrize(
    ("ended", "unfinished", "elapsed", "shares"),
    [
        pytest.param([30, 10, 20, 20], [], 0, {10: 1 / 4, 20: 1 / 2, 30: 1 / 4}, id="all ended"),
        # S(10) = 4/5; two are at risk at 30 once 20 and 20+ are gone: S(20) = 4/5 * 3/4 = 3/5,
        # S(30) = 3/5 * 1/2 = 3/10, and nobody knows how long the one of 40+ runs.
        pytest.param(
            [10, 20, 30], [20, 40], 0, {10: 0.2, 20: 0.2, 30: 0.3, None: 0.3}, id="some unfinished"
        ),
        pytest.param([10, 20, 30], [20, 40], 20, {30: 0.5, None: 0.5}, id="has run for a while"),
        pytest.param([10, 20, 30], [], 30, {None: 1.0}, id="longer than all"),
        pytest.param([10, 20], [], 0, {None: 1.0}, id="too few"),
    ],
)
def test_lengths_are_drawn_as_often_as_kaplan_and_meier_say(
    ended: list[float],
    unfinished: list[float],
    elapsed: float,
    shares: dict[float | None, float],
) -> None:
    drawn = draw_shares(RunLengths(ended, unfinished), elapsed)
    assert drawn == pytest.approx(shares, abs=0.03)


def test_beyond_what_is_known_any_length_up_to_the_limit_is_alike() -> None:
    lengths = RunLengths([10, 10, 10], [100] * 97, limit=200)
    random = Random(7)
    drawn = [lengths.draw(random) or 0 for _ in range(DRAWS)]
    late = [length for length in drawn if length > 10]
    assert len(late) / DRAWS == pytest.approx(0.97, abs=0.02)
    assert max(late) <= 200
    assert sum(late) / len(late) == pytest.approx(105, abs=3)
    assert RunLengths(limit=200).is_known
    assert not RunLengths([1, 2]).is_known


def test_many_runs_are_drawn_from_as_from_all_of_them() -> None:
    lengths = RunLengths(list(range(10 * MOST_RUNS)))
    random = Random(7)
    drawn = sorted(lengths.draw(random) or 0 for _ in range(DRAWS))
    for share in (0.1, 0.5, 0.9):
        found = drawn[int(share * DRAWS)]
        assert found == pytest.approx(share * 10 * MOST_RUNS, abs=0.03 * 10 * MOST_RUNS)


seconds = st.floats(0, 1e6)


@given(
    ended=st.lists(seconds, max_size=12),
    unfinished=st.lists(seconds, max_size=12),
    limit=st.none() | seconds,
    elapsed=seconds,
    seed=st.integers(0, 1000),
)
def test_a_run_lasts_longer_than_it_has_and_no_longer_than_its_limit(
    ended: list[float],
    unfinished: list[float],
    limit: float | None,
    elapsed: float,
    seed: int,
) -> None:
    lengths = RunLengths(ended, unfinished, limit)
    length = lengths.draw(Random(seed), elapsed)
    if limit is None:
        assert length is None or length > elapsed
        assert length is None or length in ended
    else:
        # What has reached its limit is being stopped.
        assert length is not None
        assert elapsed <= length <= max(elapsed, limit)
    assert length == lengths.draw(Random(seed), elapsed)
