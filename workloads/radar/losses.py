"""Finds losses that are no numbers, or grow without end. Pure."""

import math
import statistics

from workloads.quantities import format_ranks
from workloads.radar.evidence import WorkloadEvidence
from workloads.radar.findings import Certainty, Finding, Kind, Proof

FEWEST_LOSSES = 20
LATEST = 5
"""Losses that are compared with those before."""
GROWN = 10.0
"""Times the least of the medians before, and what it began with, that a loss diverges."""
BAD_HELP = (
    "It learns nothing any more. Stop it, and run it again from a checkpoint before that with a "
    "lower learning rate, clipped gradients, or without the batch that did it."
)
DIVERGED_HELP = (
    "Stop it, and run it again from a checkpoint before that with a lower learning rate or a "
    "longer warm-up."
)


def find_bad_loss(evidence: WorkloadEvidence) -> Finding | None:
    """Return that the loss is no number or diverges; None where it does neither."""
    bad = [each for each in evidence.ranks if each.has_bad_loss and each.is_running]
    if bad:
        since = min((each.loss_at for each in bad if each.loss_at is not None), default=None)
        step = min(each.step or 0 for each in bad)
        where = f" at step {step:,}" if step else ""
        return Finding(
            Kind.LOSS,
            Certainty.CERTAIN,
            f"The loss of {format_ranks([each.rank for each in bad])} is no number{where}.",
            BAD_HELP,
            since or evidence.now,
            rank=bad[0].rank if len(bad) == 1 else None,
            pod=bad[0].pod,
            proofs=(Proof(f"{len(bad)} of {len(evidence.ranks)} ranks print it."),),
            is_immediate=True,
        )
    return _find_divergence(evidence)


def _find_divergence(evidence: WorkloadEvidence) -> Finding | None:
    losses = [(at, loss) for at, loss in evidence.losses if loss is not None and loss > 0]
    if len(losses) < FEWEST_LOSSES:
        return None
    latest = [loss for _, loss in losses[-LATEST:]]
    before = [loss for _, loss in losses[:-LATEST]]
    begin = statistics.median(before[:LATEST])
    least = min(statistics.median(before[at : at + LATEST]) for at in range(0, len(before), LATEST))
    now = min(latest)
    if not math.isfinite(now) or now < GROWN * least or now < GROWN * begin:
        return None
    return Finding(
        Kind.LOSS,
        Certainty.LIKELY,
        f"The loss diverges: it was {least:.3g}, and is {latest[-1]:.3g}.",
        DIVERGED_HELP,
        losses[-LATEST][0],
        proofs=(Proof(f"It began with {begin:.3g}."),),
    )
