"""The frameworks that a cluster runs, and the kinds they become.

`settings.FRAMEWORKS` names the function, because the `clusters` app must not import this one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from clusters.capabilities import Capabilities
from workloads.manifests.job_targets import BATCH_JOB, describe_unavailable, find_available_target
from workloads.specs import Framework


@dataclass(frozen=True, slots=True)
class FrameworkOffer:
    """A framework and the kind that its workloads become, or "" and why they cannot run."""

    name: str
    kind: str
    why: str


def list_framework_offers(can: Capabilities) -> Sequence[FrameworkOffer]:
    """Return every framework, Standard first."""
    offers = [FrameworkOffer("Standard", f"{BATCH_JOB.kind} ({BATCH_JOB.api_version})", "")]
    for framework in Framework:
        target = find_available_target(framework, can)
        kind = f"{target.kind} ({target.api_version})" if target else ""
        offers.append(FrameworkOffer(framework.label, kind, describe_unavailable(framework, can)))
    return offers
