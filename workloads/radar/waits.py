"""Measures for how long others have waited for a rank that is a step behind them. Pure."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from workloads.radar.evidence import RankEvidence

SHORTEST_WAIT = 20.0
"""Seconds of a wait that is kept."""
MOST_WAITS = 64
"""Ranks whose waits are kept, those with the longest ones."""


@dataclass(slots=True)
class Waits:
    """For how many seconds others wait for each rank now, and have waited at most before.

    Ranks are numbers in words, as JSON has keys.
    """

    lasting: dict[str, float] = field(default_factory=dict)
    longest: dict[str, float] = field(default_factory=dict)


def measure_waits(ranks: Sequence[RankEvidence], now: float) -> dict[int, float]:
    """Return for how many seconds each rank has been silent and behind, by rank.

    One is behind while another one has printed the next step that it prints itself. Of a rank whose
    newest lines are not read yet nothing is known.
    """
    steps, passed_at = _list_passings(ranks)
    waits = {}
    for each in ranks:
        if not each.is_read or each.step is None:
            continue
        place = bisect_left(steps, each.step + each.stride)
        if place < len(steps):
            waits[each.rank] = now - max(each.line_at or 0.0, passed_at[place])
    return waits


def note_waits(waits: Waits, measured: Mapping[int, float]) -> None:
    """Keep how long each rank is waited for now; a wait that became shorter is over."""
    named = {str(rank): wait for rank, wait in measured.items()}
    for rank, wait in waits.lasting.items():
        if named.get(rank, 0.0) < wait:
            waits.longest[rank] = max(wait, waits.longest.get(rank, 0.0))
    waits.longest = _keep_longest(waits.longest)
    waits.lasting = _keep_longest(
        {rank: wait for rank, wait in named.items() if wait >= SHORTEST_WAIT}
    )


def _keep_longest(waits: Mapping[str, float]) -> dict[str, float]:
    order = sorted(waits.items(), key=lambda item: item[1], reverse=True)
    return dict(order[:MOST_WAITS])


def _list_passings(ranks: Sequence[RankEvidence]) -> tuple[list[int], list[float]]:
    """Return the steps of these ranks, in order, and when the first one was as far or further."""
    first: dict[int, float] = {}
    for each in ranks:
        for step, at in each.step_times.items():
            first[step] = min(at, first.get(step, at))
    steps = sorted(first)
    times = list(accumulate((first[step] for step in reversed(steps)), min))
    return steps, times[::-1]
