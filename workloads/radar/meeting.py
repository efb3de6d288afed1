"""Tells whether the ranks of a training meet at each step, by when they print their steps. Pure.

Where they do, those that came early wait: the later the last one comes, the longer do their steps
take. Where each goes on alone, its steps take as long whatever the others do. So the time that a
step takes all but the last rank is set against how much later that one was (a line by least
squares): its slope is 1 or 0.
"""

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from workloads.radar.evidence import RankEvidence

FEWEST_RANKS = 2
FEWEST_PAIRS = 16
MOST_PAIRS = 1000.0
"""Pairs after which older ones count half."""
STEEP = 0.5
LONGEST_STEP = 4.0
"""Times of the usual step beyond which something else took the time, as a checkpoint."""

SharedSteps = Mapping[int, Mapping[int, float]]
"""When each rank printed a step, for the steps that all of them printed."""


@dataclass(slots=True)
class Meeting:
    """Sums over the steps that were compared, in seconds, `step` the last of them."""

    step: int = -1
    pairs: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0

    @property
    def do_ranks_meet(self) -> bool:
        """Whether the ranks meet; False while too few steps were compared."""
        if self.pairs < FEWEST_PAIRS:
            return False
        spread = self.xx - self.x * self.x / self.pairs
        return spread > 0 and self.xy - self.x * self.y / self.pairs > STEEP * spread


def collect_shared_steps(ranks: Sequence[RankEvidence]) -> SharedSteps:
    """Return the steps that all of these ranks printed, in order."""
    times: dict[int, dict[int, float]] = defaultdict(dict)
    for each in ranks:
        for step, at in each.step_times.items():
            times[step][each.rank] = at
    return {step: times[step] for step in sorted(times) if len(times[step]) == len(ranks)}


def note_steps(meeting: Meeting, shared: SharedSteps) -> None:
    """Take the steps that were not compared before into the sums."""
    steps = list(shared)
    if not steps or len(shared[steps[0]]) < FEWEST_RANKS:
        return
    if steps[-1] < meeting.step:
        # It began anew, from a checkpoint.
        meeting.step = -1
    strides = [after - before for before, after in pairwise(steps)]
    stride = min(strides, default=1)
    new = [
        (before, after)
        for before, after in pairwise(steps)
        if after > meeting.step and after - before == stride
    ]
    pairs = [_compare_steps(shared[before], shared[after]) for before, after in new]
    usual = statistics.median(length for _, length in pairs) if pairs else 0.0
    if meeting.pairs >= FEWEST_PAIRS:
        usual = max(usual, meeting.y / meeting.pairs)
    for lateness, length in pairs:
        if 0 < length <= LONGEST_STEP * usual:
            _add_pair(meeting, lateness, length)
    meeting.step = steps[-1]
    if meeting.pairs > MOST_PAIRS:
        for name in ("pairs", "x", "y", "xx", "xy"):
            setattr(meeting, name, getattr(meeting, name) / 2)


def _compare_steps(at: Mapping[int, float], next_at: Mapping[int, float]) -> tuple[float, float]:
    """Return how much later the last rank was than the others, and how long their step took."""
    last = max(at, key=lambda rank: at[rank])
    others = [rank for rank in at if rank != last]
    mean = statistics.fmean(at[rank] for rank in others)
    return at[last] - mean, statistics.fmean(next_at[rank] - at[rank] for rank in others)


def _add_pair(meeting: Meeting, x: float, y: float) -> None:
    meeting.pairs += 1
    meeting.x += x
    meeting.y += y
    meeting.xx += x * x
    meeting.xy += x * y
