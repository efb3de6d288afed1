"""Whether pods on several nodes would share a volume that one node alone may mount."""

from clusters.models import Cluster, Node
from workloads.fit.verdict import FitCheck, Verdict
from workloads.quantities import format_count
from workloads.specs import ClaimAccess, NewClaim, Spec

_HOST_LABEL = "kubernetes.io/hostname"


def check_volumes(spec: Spec, cluster: Cluster) -> FitCheck | None:
    """Return a warning where several pods would share a new claim of one node, else None.

    One query where they may.
    """
    claim = _find_shared_claim(spec)
    if claim is None or _has_one_node(spec) or Node.objects.filter(cluster=cluster).count() == 1:
        return None
    pods = _count_mounting_pods(spec, claim)
    return FitCheck(
        Verdict.WARNS,
        f"The new volume at {claim.path} is ReadWriteOnce: pods of one node alone may mount it, "
        f"and {format_count(pods, 'pod')} of this workload mount it. Those that come to another "
        "node may wait there for it for ever. Give it the access ReadWriteMany, of a storage class "
        "that has it, or run all pods on one node.",
    )


def _find_shared_claim(spec: Spec) -> NewClaim | None:
    """Return a new claim of one node that several pods mount at once."""
    claims = (
        volume
        for setup, _ in spec.pod_kinds
        for volume in setup.volumes
        if isinstance(volume, NewClaim) and not volume.ephemeral
    )
    return next(
        (
            each
            for each in claims
            if set(each.modes) == {ClaimAccess.ONE_NODE} and _count_mounting_pods(spec, each) > 1
        ),
        None,
    )


def _count_mounting_pods(spec: Spec, claim: NewClaim) -> int:
    return sum(count for setup, count in spec.pod_kinds if claim in setup.volumes)


def _has_one_node(spec: Spec) -> bool:
    """Tell whether the spec itself keeps all pods on one node."""
    topology = spec.setup.topology
    if topology is not None and topology.required and topology.key == _HOST_LABEL:
        return True
    hosts = {
        next((pair.value for pair in setup.node_selector if pair.key == _HOST_LABEL), "")
        for setup, _ in spec.pod_kinds
    }
    return len(hosts) == 1 and "" not in hosts
