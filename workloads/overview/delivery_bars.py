"""How long each rank waited for data and how long it computed, as bars. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from workloads.overview.bars import BAR_WIDTH

MOST_BARS = 64
"""Ranks with a bar of their own, those that waited most; the others are counted."""


@dataclass(frozen=True, slots=True)
class RankTimes:
    """Seconds that a rank waited for data and computed."""

    rank: int
    waited: float
    computed: float

    @property
    def share(self) -> float:
        """The share of its time that the rank waited; 0 for one that has done nothing yet."""
        total = self.waited + self.computed
        return self.waited / total if total > 0 else 0.0


@dataclass(frozen=True, slots=True)
class RankBar:
    """A bar: `waited` and `computed` in thousandths of its width, which is the longest time."""

    title: str
    waited: int
    computed: int
    percent: int
    waited_seconds: float
    computed_seconds: float


@dataclass(frozen=True, slots=True)
class RankBars:
    """The bars of the ranks that waited most, the worst first."""

    bars: Sequence[RankBar]
    percent: int
    """The share of all ranks' time that they waited."""
    count: int
    """How many ranks there are, with those that have no bar."""

    @property
    def others(self) -> int:
        """How many ranks have no bar."""
        return self.count - len(self.bars)

    @property
    def words(self) -> str:
        """What the bars show, for those who do not see them."""
        if not self.bars:
            return "No rank has counted anything yet"
        if self.count == 1:
            return f"1 rank waited {self.percent} % of its time for data"
        worst = self.bars[0]
        return (
            f"{self.count:,} ranks waited {self.percent} % of their time for data; most of all "
            f"{worst.title}, {worst.percent} %"
        )


def build_rank_bars(
    ranks: Sequence[RankTimes], count: int, share: float, most: int = MOST_BARS
) -> RankBars:
    """Build the bars of the ranks that waited most. Every bar has the same scale.

    `ranks` may be some of all `count`; `share` is what all of them together waited.
    """
    top_ranks = sorted(ranks, key=lambda each: (-each.share, each.rank))[:most]
    longest = max((each.waited + each.computed for each in top_ranks), default=0.0)
    scale = BAR_WIDTH / longest if longest > 0 else 0.0
    return RankBars([_build_bar(each, scale) for each in top_ranks], round(100 * share), count)


def _build_bar(times: RankTimes, scale: float) -> RankBar:
    waited = min(BAR_WIDTH, round(times.waited * scale))
    return RankBar(
        f"rank {times.rank}",
        waited,
        min(BAR_WIDTH - waited, round(times.computed * scale)),
        round(100 * times.share),
        times.waited,
        times.computed,
    )
