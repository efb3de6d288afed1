"""Tells whether the ranks of a training meet at each step, by when they print their steps. Pure.

Where they do, one that came early waits: the later the last one comes, the longer does the early
one's step take. Where each goes on alone, its steps take as long whatever the others do. So the
time of a rank's step is set against how much later the last rank was (a line by least squares): its
slope is 1 or 0.
"""

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from workloads.radar.evidence import RankEvidence

FEWEST_PAIRS = 24
MOST_PAIRS = 4000.0
"""Pairs after which older ones count half."""
STEEP = 0.5
LONGEST_STEP = 4.0
"""Times of the usual step beyond which something else took the time, as a checkpoint."""

SharedSteps = Mapping[int, Mapping[int, float]]
"""When each rank printed a step, for the steps that all of them printed."""


@dataclass(slots=True)
class Meeting:
    """Sums over the steps of all ranks that were compared, `step` the last of them."""

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
    if steps and steps[-1] < meeting.step:
        # It began anew, from a checkpoint.
        meeting.step = -1
    strides = [after - before for before, after in pairwise(steps)]
    stride = min(strides, default=1)
    new = [
        (before, after)
        for before, after in pairwise(steps)
        if after > meeting.step and after - before == stride
    ]
    lengths = [
        shared[after][rank] - at for before, after in new for rank, at in shared[before].items()
    ]
    usual = statistics.median(lengths) if lengths else 0.0
    for before, after in new:
        last = max(shared[before].values())
        for rank, at in shared[before].items():
            length = shared[after][rank] - at
            if 0 < length <= LONGEST_STEP * usual:
                _add_pair(meeting, (last - at) / usual, length / usual)
    if steps:
        meeting.step = max(meeting.step, steps[-1])
    if meeting.pairs > MOST_PAIRS:
        for name in ("pairs", "x", "y", "xx", "xy"):
            setattr(meeting, name, getattr(meeting, name) / 2)


def _add_pair(meeting: Meeting, x: float, y: float) -> None:
    meeting.pairs += 1
    meeting.x += x
    meeting.y += y
    meeting.xx += x * x
    meeting.xy += x * y
