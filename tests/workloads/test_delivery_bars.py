"""Waiting and computing of ranks as bars: the worst first, bounded in number. Pure."""

from workloads.overview.delivery_bars import MOST_BARS, RankTimes, build_rank_bars


def test_the_rank_that_waited_most_comes_first_and_all_have_one_scale() -> None:
    bars = build_rank_bars([RankTimes(0, 10, 90), RankTimes(1, 40, 10)], 2, 1 / 3)
    assert [(each.title, each.waited, each.computed, each.percent) for each in bars.bars] == [
        ("rank 1", 400, 100, 80),
        ("rank 0", 100, 900, 10),
    ]
    assert (bars.others, bars.percent) == (0, 33)
    assert bars.words == "2 ranks waited 33 % of their time for data; most of all rank 1, 80 %"


def test_of_many_ranks_the_others_are_counted() -> None:
    ranks = [RankTimes(rank, float(rank % 2), 1.0) for rank in range(200)]
    bars = build_rank_bars(ranks, 10_000, 0.25)
    assert len(bars.bars) == MOST_BARS
    assert all(each.percent == 50 for each in bars.bars)
    assert bars.others == 10_000 - MOST_BARS
    assert bars.words == "10,000 ranks waited 25 % of their time for data; most of all rank 1, 50 %"


def test_nothing_counted_is_said() -> None:
    assert build_rank_bars([], 0, 0.0).words == "No rank has counted anything yet"
    (bar,) = build_rank_bars([RankTimes(0, 0.0, 0.0)], 1, 0.0).bars
    assert (bar.waited, bar.computed, bar.percent) == (0, 0, 0)
    assert build_rank_bars([RankTimes(3, 71, 29)], 1, 0.71).words == (
        "1 rank waited 71 % of its time for data"
    )
