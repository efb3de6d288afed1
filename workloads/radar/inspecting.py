"""Looks at a workload with every detector. Pure."""

from workloads.radar.checkpoints import find_missed_checkpoints
from workloads.radar.evidence import WorkloadEvidence
from workloads.radar.findings import Finding
from workloads.radar.hangs import find_hang
from workloads.radar.idling import find_idle_gpus
from workloads.radar.losses import find_bad_loss
from workloads.radar.memory import find_leaks
from workloads.radar.nodes import find_faulty_nodes
from workloads.radar.stragglers import find_stragglers
from workloads.radar.thresholds import Thresholds


def find_troubles(evidence: WorkloadEvidence, thresholds: Thresholds) -> list[Finding]:
    """Return all that is wrong with a workload now, the gravest first."""
    # While ranks come and go the others wait, and no one is late.
    hang = None if evidence.is_changing else find_hang(evidence, thresholds)
    # A rank that others wait for is late, and saves nothing: that is the same trouble.
    slow = [] if hang is not None or evidence.is_changing else find_stragglers(evidence, thresholds)
    missed = None if hang is not None else find_missed_checkpoints(evidence)
    idle = None if hang is not None else find_idle_gpus(evidence)
    findings = [
        *find_faulty_nodes(evidence),
        hang,
        find_bad_loss(evidence),
        *find_leaks(evidence),
        *slow,
        missed,
        idle,
    ]
    return [each for each in findings if each is not None]
