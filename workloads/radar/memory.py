"""Finds memory that grows until the pod is killed, and says when that will be. Pure."""

import statistics
from bisect import bisect_left
from dataclasses import dataclass

from workloads.quantities import format_count
from workloads.radar.evidence import RankEvidence, Series, WorkloadEvidence, format_seconds
from workloads.radar.findings import Certainty, Finding, Kind, Proof

FEWEST_POINTS = 8
SHORTEST_SPAN = 100.0
USUAL_SPAN = 900.0
"""Seconds of figures before it is called a leak, unless memory is full sooner: a cache that fills
looks like a line for a while.
"""
SOON = 3.0
"""Memory that is full within so many times the time that it has grown cannot be waited for."""
SPANS = (1800.0, 1200.0, USUAL_SPAN, 600.0, 300.0)
"""Seconds of the newest figures that are looked at by turns: memory was flat before it leaked."""
SHORT_LEFT, NEARLY_FULL = 600.0, 0.9
"""Seconds until memory is full, and the share that is, that cannot be waited for."""
NO_TIME_LEFT = 120.0
"""Seconds until memory is full that leave no time for a second look."""
SETTLING = 60.0
"""Seconds after the beginning in which memory may grow: caches, buffers, workers."""
LONGEST_LEFT = 6 * 3600.0
LEAST_GROWTH = 0.05
"""Of the memory at the beginning, that it has grown by at least."""
STEADY = 0.97
"""The correlation of time and memory: a leak is a line."""
LASTING_SHARE = 0.7
"""How much of the growth of the first half the second one has at least: caches fill up."""
ALIKE = 0.5
FEWEST_ALIKE = 3
"""Figures of a rank by which its growth is compared with that of another."""
MOST_FOUND = 5
HELP = (
    "It will be killed when its memory is full. Look for what it keeps from step to step: tensors "
    "with their graph, lists of losses, workers of the data loader. More memory only delays it."
)


@dataclass(frozen=True, slots=True)
class _Leak:
    """Memory of a rank that grows: by `slope` bytes a second for `span` seconds, full in `left`."""

    rank: RankEvidence
    slope: float
    span: float
    left: float


def find_leaks(evidence: WorkloadEvidence) -> list[Finding]:
    """Return the ranks whose memory is full soon, those with the least time first."""
    running = [each for each in evidence.ranks if each.is_running]
    leaks = [leak for each in running if (leak := _find_leak(each, evidence)) is not None]
    if not leaks:
        return []
    # What grows alike in most ranks may be the data that they keep in the first epoch.
    first = min(leaks, key=lambda each: each.left)
    are_alike = 2 * sum(_grows_alike(each, first) for each in running) > len(running)
    reported_leaks = [each for each in leaks if _is_worth_telling(each, are_alike=are_alike)]
    reported_leaks.sort(key=lambda each: each.left)
    if are_alike and reported_leaks:
        return [_build_finding(reported_leaks[0], len(reported_leaks) - 1)]
    return [_build_finding(each) for each in reported_leaks[:MOST_FOUND]]


def _grows_alike(rank: RankEvidence, leak: _Leak) -> bool:
    """Tell whether a rank's memory grew by half as much as this in the same time, or more."""
    end = leak.rank.figures["memory"][-1][0]
    points = rank.figures.get("memory", ())
    inside = points[bisect_left(points, (end - leak.span, 0.0)) :]
    if len(inside) < FEWEST_ALIKE:
        return False
    seconds = inside[-1][0] - inside[0][0]
    return inside[-1][1] - inside[0][1] >= ALIKE * leak.slope * seconds


def _is_worth_telling(leak: _Leak, *, are_alike: bool) -> bool:
    if leak.left > LONGEST_LEFT:
        return False
    if are_alike:
        limit = leak.rank.memory_limit or 0.0
        used = leak.rank.figures["memory"][-1][1]
        return leak.left < SHORT_LEFT and used >= NEARLY_FULL * limit
    return leak.left < SOON * leak.span or leak.span >= USUAL_SPAN


def _find_leak(rank: RankEvidence, evidence: WorkloadEvidence) -> _Leak | None:
    if rank.memory_limit is None:
        return None
    settled = (rank.started_at or 0.0) + SETTLING
    points = [point for point in rank.figures.get("memory", ()) if point[0] >= settled]
    for begin in sorted({bisect_left(points, (evidence.now - span, 0.0)) for span in SPANS}):
        newest = points[begin:]
        slope = _fit_leak(newest)
        if slope is not None:
            seconds_left = max(0.0, rank.memory_limit - newest[-1][1]) / slope
            return _Leak(rank, slope, newest[-1][0] - newest[0][0], seconds_left)
    return None


def _fit_leak(points: Series) -> float | None:
    """Return the growth in bytes a second of memory that grows like a line; None of other."""
    if len(points) < FEWEST_POINTS or points[-1][0] - points[0][0] < SHORTEST_SPAN:
        return None
    times, values = zip(*points, strict=True)
    if values[-1] - values[0] <= LEAST_GROWTH / 2 * values[0]:
        return None
    if statistics.correlation(times, values) < STEADY:
        return None
    slope, _ = statistics.linear_regression(times, values)
    grown = slope * (times[-1] - times[0])
    half = len(points) // 2
    first, _ = statistics.linear_regression(times[:half], values[:half])
    second, _ = statistics.linear_regression(times[half:], values[half:])
    if grown < LEAST_GROWTH * values[0] or second < LASTING_SHARE * first or second <= 0:
        return None
    return slope


def _build_finding(leak: _Leak, others: int = 0) -> Finding:
    rank = leak.rank
    rest = f" Of {format_count(others, 'other rank')} it grows alike." if others else ""
    used = rank.figures["memory"][-1][1]
    limit = rank.memory_limit or 0.0
    return Finding(
        Kind.MEMORY,
        Certainty.LIKELY,
        (
            f"The memory of rank {rank.rank} grows by {_format_bytes(leak.slope * 60)} a minute; "
            f"its {_format_bytes(limit)} will be full in {format_seconds(leak.left)}.{rest}"
        ),
        HELP,
        rank.figures["memory"][0][0],
        subject="" if others else str(rank.rank),
        rank=rank.rank,
        pod=rank.pod,
        node=rank.node,
        proofs=(Proof(f"It uses {_format_bytes(used)} now.", "memory"),),
        is_immediate=leak.left < NO_TIME_LEFT,
    )


def _format_bytes(size: float) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size / 1024:.0f} KiB"
