"""The frameworks that a cluster runs, and the kinds they become."""

from collections.abc import Sequence

from clusters.capabilities import Capabilities
from clusters.job_kinds import JOBS
from clusters.seams import FrameworkOffer
from workloads.manifests.job_targets import describe_unavailable, find_available_target
from workloads.specs import Framework


def list_framework_offers(can: Capabilities) -> Sequence[FrameworkOffer]:
    """Return every framework, Standard first."""
    offers = [FrameworkOffer("Standard", f"{JOBS.kind} ({JOBS.api_version})", "")]
    for framework in Framework:
        target = find_available_target(framework, can)
        kind = f"{target.kind} ({target.api_version})" if target else ""
        offers.append(FrameworkOffer(framework.label, kind, describe_unavailable(framework, can)))
    return offers
