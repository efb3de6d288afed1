"""Which frameworks a cluster runs, and as what. `settings.FRAMEWORKS` names this room: the pages of
clusters lie floors below.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from clusters.capabilities import Capabilities
from workloads.manifests.job_targets import BATCH_JOB, describe_unavailable, find_available_target
from workloads.specs import Framework


@dataclass(frozen=True, slots=True)
class FrameworkOffer:
    """A framework: the kind that its workloads become, or "" and why they cannot be run."""

    name: str
    kind: str
    why: str


def frameworks(can: Capabilities) -> Sequence[FrameworkOffer]:
    """Every framework, Standard first."""
    found = [FrameworkOffer("Standard", f"{BATCH_JOB.kind} ({BATCH_JOB.api_version})", "")]
    for framework in Framework:
        target = find_available_target(framework, can)
        kind = f"{target.kind} ({target.api_version})" if target else ""
        found.append(FrameworkOffer(framework.label, kind, describe_unavailable(framework, can)))
    return found
