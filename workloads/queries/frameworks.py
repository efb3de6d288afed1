"""Which frameworks a cluster runs, and as what. `settings.FRAMEWORKS` names this room: the pages of
clusters lie floors below.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from clusters.capabilities import Capabilities
from workloads.manifests.serving import JOB, available, unavailable
from workloads.specs import Framework


@dataclass(frozen=True, slots=True)
class Offer:
    """A framework: the kind that its workloads become, or "" and why they cannot be run."""

    name: str
    kind: str
    why: str


def frameworks(can: Capabilities) -> Sequence[Offer]:
    """Every framework, Standard first."""
    found = [Offer("Standard", f"{JOB.kind} ({JOB.api_version})", "")]
    for framework in Framework:
        target = available(framework, can)
        kind = f"{target.kind} ({target.api_version})" if target else ""
        found.append(Offer(framework.label, kind, unavailable(framework, can)))
    return found
