"""Finds GPUs that are held and not used. Pure."""

from workloads.radar.evidence import WorkloadEvidence, format_seconds
from workloads.radar.findings import Certainty, Finding, Kind, Proof
from workloads.radar.thresholds import IDLE_SECONDS

HELP = (
    "Stop it if it does nothing more. If it waits for data, data workers prepare that on machines "
    "without GPUs."
)


def find_idle_gpus(evidence: WorkloadEvidence) -> Finding | None:
    """Return that none of its GPUs is used for long; None where one is, or nobody knows."""
    if evidence.idle_since is None or evidence.now - evidence.idle_since < IDLE_SECONDS:
        return None
    lasted = format_seconds(evidence.now - evidence.idle_since)
    return Finding(
        Kind.IDLE,
        Certainty.CERTAIN,
        f"{evidence.gpus or 'All its GPUs'} {'are' if evidence.gpus != '1 GPU' else 'is'} unused "
        f"for {lasted}.",
        HELP,
        evidence.idle_since,
        proofs=(Proof("The use of all its devices is 0 %.", "gpu_use"),),
    )
