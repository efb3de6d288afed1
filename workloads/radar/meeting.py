"""Tells whether the ranks of a training meet at each step, by when they print their steps. Pure.

Where they do, those that came early wait: the later the last one comes, the longer do their steps
take. Where each goes on alone, its steps take as long whatever the others do. Each step tells which
of the two explains it better, by how long the step took all but the last rank, and how much later
that one was; a step that neither explains, as one with an evaluation, tells little.
"""

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from workloads.radar.evidence import RankEvidence

FEWEST_RANKS = 2
FEWEST_PAIRS = 16
MOST_PAIRS = 300.0
"""Pairs after which older ones count half."""
RECENT_PAIRS = 9
"""Pairs whose middle says what the next one is expected to be."""
FEWEST_RECENT = 3
LEAST_SHARE = 0.01
"""How much better meeting explains the steps, of one, before it is believed."""
LEAST_VOTES = 2.0
NOISE = 0.05
"""Seconds: clocks and logs differ by as much."""
CLOSE_VOTE = 0.1
"""The vote of a step that all printed at once: who goes on alone drifts apart."""

SharedSteps = Mapping[int, Mapping[int, float]]
"""When each rank printed a step, for the steps that all of them printed."""


@dataclass(slots=True)
class Meeting:
    """What the steps that were compared tell, `step` the last of them.

    `recent` are the newest pairs of lateness and length, in seconds. A pair's vote is 1 where only
    meeting explains it, -1 where only going on alone does; `votes` is the sum.
    """

    step: int = -1
    pairs: float = 0.0
    votes: float = 0.0
    recent: list[list[float]] = field(default_factory=list)

    @property
    def do_ranks_meet(self) -> bool:
        """Whether the ranks meet; False while too few steps were compared."""
        least = max(LEAST_VOTES, LEAST_SHARE * self.pairs)
        return self.pairs >= FEWEST_PAIRS and self.votes >= least


def collect_shared_steps(ranks: Sequence[RankEvidence]) -> SharedSteps:
    """Return the steps that all of these ranks printed, in order."""
    times: dict[int, dict[int, float]] = defaultdict(dict)
    for each in ranks:
        for step, at in each.step_times.items():
            times[step][each.rank] = at
    return {step: times[step] for step in sorted(times) if len(times[step]) == len(ranks)}


def note_steps(meeting: Meeting, shared: SharedSteps) -> None:
    """Take the steps that were not compared before into the votes."""
    steps = list(shared)
    if not steps or len(shared[steps[0]]) < FEWEST_RANKS:
        return
    if steps[-1] < meeting.step:
        # It began anew, from a checkpoint.
        meeting.step = -1
    strides = [after - before for before, after in pairwise(steps)]
    stride = min(strides, default=1)
    for before, after in pairwise(steps):
        if after > meeting.step and after - before == stride:
            _add_pair(meeting, stride, *_compare_steps(shared[before], shared[after]))
    meeting.step = steps[-1]
    if meeting.pairs > MOST_PAIRS:
        meeting.pairs, meeting.votes = meeting.pairs / 2, meeting.votes / 2


def _compare_steps(at: Mapping[int, float], next_at: Mapping[int, float]) -> tuple[float, float]:
    """Return how much later the last rank was than the others, and how long their step took."""
    last = max(at, key=lambda rank: at[rank])
    others = [rank for rank in at if rank != last]
    mean = statistics.fmean(at[rank] for rank in others)
    return at[last] - mean, statistics.fmean(next_at[rank] - at[rank] for rank in others)


def _add_pair(meeting: Meeting, stride: int, lateness: float, length: float) -> None:
    recent = meeting.recent
    if len(recent) >= FEWEST_RECENT:
        meeting.pairs += 1
        later = lateness - statistics.median(each[0] for each in recent)
        longer = length - statistics.median(each[1] for each in recent)
        if lateness <= NOISE:
            meeting.votes += CLOSE_VOTE
        elif abs(later) > NOISE:
            # It is late at the step that was printed, or at each of them.
            together = min(abs(longer - later), abs(longer - stride * later))
            meeting.votes += (abs(longer) - together) / (abs(longer) + together + NOISE)
    meeting.recent = [*recent, [lateness, length]][-RECENT_PAIRS:]
