"""How many pods of a workload have to have nodes before it counts as started."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from clusters.models import Cluster
from scheduling import ClusterState
from workloads.models import Workload
from workloads.specs import Architecture

MOST_WORKLOADS = 10_000
"""Unended workloads of one cluster that are read."""


def require_whole_gangs(state: ClusterState, cluster: Cluster) -> ClusterState:
    """Return the state with gangs that start with all pods that they need. One query, or none.

    KAI places as many together as a PodGroup names. Without it pods are placed one by one, and a
    workload of which one has a node would be no gang that waits.
    """
    if cluster.can.has_kai:
        return state
    begun = {gang.key for gang in state.gangs if any(pod.node for pod in gang.pods)}
    needed = _load_needed_pods(cluster, begun)
    gangs = [
        # Pods that have ended, or are not there yet, are none that it could wait for.
        replace(gang, min_member=max(1, min(needed[gang.key], len(gang.pods))))
        if gang.key in needed
        else gang
        for gang in state.gangs
    ]
    return replace(state, gangs=gangs)


def _load_needed_pods(cluster: Cluster, begun: Collection[str]) -> Mapping[str, int]:
    """Load how many pods each unended workload needs; an elastic one needs its minimum.

    A Standard one of those that have begun is left out: each of its pods works by itself.
    """
    rows = Workload.objects.filter(cluster=cluster, ended_at=None, released_at=None).order_by()
    return {
        str(pk): requested if minimum is None else minimum
        for pk, requested, minimum, architecture in rows.values_list(
            "pk", "requested_pods", "min_pods", "architecture"
        )[:MOST_WORKLOADS]
        if architecture != Architecture.STANDARD or str(pk) not in begun
    }
