"""How long work runs: a distribution, out of runs that ended and runs that have not."""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random

FEWEST_RUNS = 3
"""Ended runs below which nothing is concluded from them."""

MOST_RUNS = 500
"""Runs that a distribution is made of; of more it takes that many, evenly from short to long."""


class LengthSource(Enum):
    """What a distribution of run lengths was learned from, the best first."""

    OWN_PACE = "own-pace"
    """How far the run is, and how fast it goes."""
    OWN_RUNS = "own-runs"
    """The workload's own earlier attempts."""
    COPIES = "copies"
    """Copies of the same template or image by the same person."""
    PROJECT = "project"
    TIME_LIMIT = "time-limit"
    """Nothing but the limit after which it is stopped."""


@dataclass(frozen=True, slots=True)
class RunLengths:
    """How long work like this runs, in seconds.

    `ended` are whole runs; `unfinished` are runs that go on, or were cut off, so far: their true
    length is longer. `limit` is when the work is stopped, whatever else; None without one.
    """

    ended: Sequence[float] = ()
    unfinished: Sequence[float] = ()
    limit: float | None = None
    source: LengthSource = LengthSource.PROJECT
    _steps: tuple[Sequence[float], Sequence[float]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_steps", _estimate_survival(self.ended, self.unfinished))

    @property
    def is_known(self) -> bool:
        """Whether there is enough to draw from."""
        return len(self.ended) >= FEWEST_RUNS or self.limit is not None

    def draw(self, random: Random, elapsed: float = 0.0) -> float | None:
        """Return the whole length of a run that has lasted `elapsed` seconds.

        None when nothing is known of runs as long as that.
        """
        length = self._draw_unlimited(random, elapsed) if len(self.ended) >= FEWEST_RUNS else None
        if self.limit is None:
            return length
        if length is None and elapsed < self.limit:
            # Nobody ended as late, or nothing is known but the limit: any length up to it is alike.
            length = random.uniform(max(elapsed, self._find_last_end()), self.limit)
        return max(elapsed, self.limit if length is None else min(length, self.limit))

    def _find_last_end(self) -> float:
        """Return the length after which no end is known, at most the limit."""
        lengths, _ = self._steps
        if len(self.ended) < FEWEST_RUNS or self.limit is None or not lengths:
            return 0.0
        return min(lengths[-1], self.limit)

    def _draw_unlimited(self, random: Random, elapsed: float) -> float | None:
        """Draw from the runs that lasted longer than `elapsed`; None if there are none of them."""
        lengths, survival = self._steps
        start = bisect.bisect_right(lengths, elapsed)
        alive = survival[start - 1] if start else 1.0
        if start == len(lengths):
            return None
        level = alive * random.random()
        # Survival falls; the first length by which it is at `level` or below is the one drawn.
        low, high = start, len(lengths)
        while low < high:
            middle = (low + high) // 2
            if survival[middle] <= level:
                high = middle
            else:
                low = middle + 1
        return lengths[low] if low < len(lengths) else None


def _estimate_survival(
    ended: Sequence[float], unfinished: Sequence[float]
) -> tuple[Sequence[float], Sequence[float]]:
    """Return the ends in order, and which share of runs lasts longer than each (Kaplan-Meier).

    What is unfinished counts as running for as long as it was seen to.
    """
    # Of runs of one length those that ended come first: the others were seen to last as long.
    runs = sorted([(length, 0) for length in ended] + [(length, 1) for length in unfinished])
    if len(runs) > MOST_RUNS:
        # The longest, or the shortest, alone would be another distribution.
        last = len(runs) - 1
        runs = [runs[index * last // (MOST_RUNS - 1)] for index in range(MOST_RUNS)]
    lengths: list[float] = []
    survival: list[float] = []
    share = 1.0
    for index, (length, is_unfinished) in enumerate(runs):
        if is_unfinished:
            continue
        share *= 1 - 1 / (len(runs) - index)
        lengths.append(length)
        survival.append(share)
    return lengths, survival
