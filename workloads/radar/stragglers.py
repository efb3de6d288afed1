"""Finds ranks that take longer than the others, and by how much. Pure."""

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise

from workloads.radar.evidence import RankEvidence, WorkloadEvidence
from workloads.radar.findings import Certainty, Finding, Kind, Proof
from workloads.radar.meeting import SharedSteps, collect_shared_steps
from workloads.radar.thresholds import Thresholds

FEWEST_STEPS = 10
CHANCE_BITS = 14.0
"""Chances are below one in 2 ** 14 that a rank is late at all steps that are compared."""
SHORTEST_SPAN = 45.0
"""Seconds of steps that are compared, where they are short."""
FEWEST_RANKS = 2
FIRST_RANK = 0
SHORTEST_LATENESS = 0.05
"""Seconds: clocks of machines and logs differ by less."""
FEWEST_PACES = 12
"""Intervals of a rank that are compared with those of ranks which it does not meet."""
FEW_RANKS = 8
LARGEST_LATENESS = 0.9
SLOW = 1.2
OUTSTANDING = 4.0
"""Times of the usual lateness of many ranks that a slow one has at least."""
LATE_SHARE = 0.9
"""The share of its steps at which a slow rank was late; uneven batches are late by turns."""
MOST_FOUND = 5
SPAN = 300.0
"""Seconds after its last step in which a rank is compared with others."""
LOW_CLOCK = 0.8
RECENT = 120.0
HELP = (
    "The others wait for it at each step. Where its node is slow, run the workload again without "
    "that node; where its data takes longer, look at how it is shared out."
)


def find_stragglers(evidence: WorkloadEvidence, thresholds: Thresholds) -> list[Finding]:
    """Return the slow ranks of a workload, the slowest first."""
    talkers = [each for each in evidence.ranks if each.is_running and each.talks]
    if len(talkers) < FEWEST_RANKS:
        return []
    factors = _measure_paces(talkers, evidence.now)
    if evidence.do_ranks_meet:
        factors |= _measure_lateness(talkers, evidence.now)
    slow = [each for each in talkers if factors.get(each.rank, 1.0) >= thresholds.straggler_factor]
    # Where many are slow, the others are fast.
    if len(slow) * 2 > len(talkers):
        return []
    slow.sort(key=lambda each: factors[each.rank], reverse=True)
    return [_build_finding(evidence, each, factors[each.rank]) for each in slow[:MOST_FOUND]]


def _measure_lateness(talkers: Sequence[RankEvidence], now: float) -> dict[int, float]:
    """Return how many times the others' time each rank takes, by when they print the same steps.

    Ranks that meet at each step all take as long; what differs is when they come there.
    """
    shared = collect_shared_steps(talkers)
    latest = _choose_latest(shared, len(talkers), now)
    period = _measure_period(latest)
    if period is None or not latest:
        return {}
    late: dict[int, list[float]] = {each.rank: [] for each in talkers}
    for by_rank in latest.values():
        middle = statistics.median_low(by_rank.values())
        for rank, at in by_rank.items():
            if len(by_rank) <= FEW_RANKS:
                # Of a few, one that is late is much of their middle.
                others = [other for key, other in by_rank.items() if key != rank]
                middle = statistics.median_low(others)
            late[rank].append(at - middle)
    noise = statistics.median(abs(each) for delays in late.values() for each in delays)
    factors = {}
    for rank, delays in late.items():
        lateness = statistics.median(delays)
        often = sum(each >= lateness / 2 for each in delays)
        # Ranks that meet are late by less than a step; others are compared by their paces.
        is_possible = SHORTEST_LATENESS <= lateness <= LARGEST_LATENESS * period
        if len(late) > FEW_RANKS:
            is_possible &= lateness >= OUTSTANDING * noise
        if is_possible and often >= LATE_SHARE * len(delays):
            factors[rank] = period / (period - lateness)
    return factors


def _choose_latest(shared: SharedSteps, ranks: int, now: float) -> SharedSteps:
    """Return the latest steps that all ranks printed, so many that chance makes none late at all.

    Of two ranks with uneven batches each one is late at every other step, of many seldom.
    """
    fewest = max(FEWEST_STEPS, math.ceil(CHANCE_BITS / math.log2(ranks)))
    newest = sorted(shared.items(), reverse=True)
    latest = {
        step: by_rank
        for number, (step, by_rank) in enumerate(newest)
        if number < fewest or max(by_rank.values()) >= now - SHORTEST_SPAN
    }
    return latest if len(latest) >= fewest else {}


def _measure_period(shared: SharedSteps) -> float | None:
    """Return the usual time of one step, in seconds; None where steps do not tell it."""
    medians = [(step, statistics.median(by_rank.values())) for step, by_rank in shared.items()]
    medians.sort()
    paces = [
        (later - earlier) / (after - before)
        for (before, earlier), (after, later) in pairwise(medians)
        if after > before and later > earlier
    ]
    return statistics.median(paces) if paces else None


def _measure_paces(talkers: Sequence[RankEvidence], now: float) -> dict[int, float]:
    """Return how many times the others' time each rank takes for a step, where they do not meet.

    Nothing is said of the first rank: it saves and evaluates besides, and falls behind by that.
    """
    # All are compared in the same time: the pace of all may change.
    begin = max(min(each.step_times.values()) for each in talkers)
    end = min(max(each.step_times.values()) for each in talkers)
    intervals: dict[int, list[float]] = {}
    paces: dict[int, float] = {}
    for each in talkers:
        points = sorted(point for point in each.step_times.items() if begin <= point[1] <= end)
        if len(points) <= FEWEST_PACES or end < now - SPAN:
            return {}
        intervals[each.rank] = [
            (later - earlier) / (after - before)
            for (before, earlier), (after, later) in pairwise(points)
        ]
        (first, since), (last, until) = points[0], points[-1]
        paces[each.rank] = (until - since) / (last - first)
    middle = statistics.median_low(paces.values())
    factors = {}
    for rank, pace in paces.items():
        if rank == FIRST_RANK:
            continue
        if len(paces) <= FEW_RANKS:
            middle = statistics.median_low([each for key, each in paces.items() if key != rank])
        often = sum(each > SLOW * middle for each in intervals[rank])
        if middle > 0 and pace > SLOW * middle and often >= LATE_SHARE * len(intervals[rank]):
            factors[rank] = pace / middle
    return factors


def _build_finding(evidence: WorkloadEvidence, rank: RankEvidence, factor: float) -> Finding:
    clock = _compare_clock(evidence, rank)
    sentence = f"Rank {rank.rank} takes {factor:.1f} × the median step"
    proofs = [Proof(f"It reaches its steps {factor:.1f} × as late as the others.")]
    if clock is not None:
        sentence += f"; its node {rank.node} runs at {clock:.0%} clock"
        proofs.append(Proof(f"Its GPU's clock is at {clock:.0%} of the others'.", "sm_clock"))
    elif rank.node:
        sentence += f"; it runs on {rank.node}"
    since = min(rank.step_times.values(), default=evidence.now)
    certainty = Certainty.CERTAIN if clock is not None else Certainty.LIKELY
    return Finding(
        Kind.STRAGGLER,
        certainty,
        f"{sentence}.",
        HELP,
        max(since, evidence.now - SPAN),
        subject=str(rank.rank),
        rank=rank.rank,
        pod=rank.pod,
        node=rank.node,
        proofs=tuple(proofs),
        is_immediate=True,
    )


def _compare_clock(evidence: WorkloadEvidence, rank: RankEvidence) -> float | None:
    """Return the share of the others' clock that its devices run at; None where it is as high."""
    since = evidence.now - RECENT
    own = rank.measure("sm_clock", since)
    others = [
        value
        for each in evidence.ranks
        if each is not rank and (value := each.measure("sm_clock", since)) is not None
    ]
    if own is None or not others or statistics.median(others) <= 0:
        return None
    share = own / statistics.median(others)
    return share if share < LOW_CLOCK else None
