"""Finds that checkpoints, which came at intervals, come no more. Pure."""

from collections.abc import Sequence

from workloads.radar.evidence import WorkloadEvidence, format_seconds
from workloads.radar.findings import Certainty, Finding, Kind, Proof
from workloads.radar.thresholds import CHECKPOINT_GAPS, FEWEST_CHECKPOINTS, REGULAR

SHORTEST_GAP = 10.0
"""Seconds: an interval that is shorter is taken as this long."""
HELP = (
    "What it has learned since its last checkpoint would be lost with it. See in its log whether "
    "saving fails, and whether the place of its checkpoints is full."
)


def find_missed_checkpoints(evidence: WorkloadEvidence) -> Finding | None:
    """Return that a workload has stopped saving, though it goes on; None where it has not."""
    savers = [
        each
        for each in evidence.ranks
        if each.is_running
        and each.is_captured
        and each.checkpoints >= FEWEST_CHECKPOINTS
        and each.checkpoint_at is not None
        and _is_regular(each.checkpoint_gaps)
    ]
    if not savers:
        return None
    newest = max(savers, key=lambda each: each.checkpoint_at or 0.0)
    assert newest.checkpoint_at is not None
    gap = max(SHORTEST_GAP, *newest.checkpoint_gaps)
    since = evidence.now - newest.checkpoint_at
    goes_on = any(
        max(each.step_times.values(), default=0.0) > newest.checkpoint_at + gap
        for each in evidence.ranks
        if each.is_running and not each.is_done
    )
    if since < CHECKPOINT_GAPS * gap or not goes_on:
        return None
    return Finding(
        Kind.CHECKPOINTS,
        Certainty.LIKELY,
        (
            f"It has saved no checkpoint for {format_seconds(since)}; before, one came at least "
            f"every {format_seconds(gap)}."
        ),
        HELP,
        newest.checkpoint_at + gap,
        rank=newest.rank,
        pod=newest.pod,
        proofs=(Proof(f"Rank {newest.rank} printed {newest.checkpoints} checkpoints."),),
    )


def _is_regular(gaps: Sequence[float]) -> bool:
    return bool(gaps) and max(gaps) <= REGULAR * max(SHORTEST_GAP, min(gaps))
