"""What a cluster's nodes have in total and free.

Others' pods are counted as of the last heartbeat, ours from their rows.
"""

import uuid
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

from django.core.cache import cache
from django.db.models import Count, Sum

from clusters.job_kinds import MASTER_ROLES
from clusters.models import Node
from workloads import quantities
from workloads.diagnosis import NodeCapacity, ResourceAmounts
from workloads.models import Pod, Workload
from workloads.specs import Compute, UnreadableSpec, decode_spec

CACHE_SECONDS = 5
"""Seconds for which an answer is cached: many pages ask the same, and each answer adds up all
running pods.
"""
MOST_NODES = 5000
MOST_WORKLOADS = 2000

_NONE = Decimal(0)


def load_node_capacities(cluster_id: uuid.UUID) -> Sequence[NodeCapacity]:
    """Return every node with its total and free amounts.

    The answer may be CACHE_SECONDS old.
    """
    key = f"node-capacity:{cluster_id}"
    capacities: Sequence[NodeCapacity] | None = cache.get(key)
    if capacities is None:
        capacities = _compute_node_capacities(cluster_id)
        cache.set(key, capacities, CACHE_SECONDS)
    return capacities


def _compute_node_capacities(cluster_id: uuid.UUID) -> Sequence[NodeCapacity]:
    ours = _load_own_demand(cluster_id)
    capacities = []
    for node in Node.objects.filter(cluster_id=cluster_id)[:MOST_NODES]:
        total = ResourceAmounts(node.gpus, node.cpu, Decimal(node.memory))
        used = (
            ResourceAmounts(node.used_gpus, node.used_cpu, Decimal(node.used_memory))
            + ours[node.name]
        )
        labels = (
            {str(key): str(value) for key, value in node.labels.items()}
            if isinstance(node.labels, dict)
            else {}
        )
        taints = (
            [taint for taint in node.taints if isinstance(taint, dict)]
            if isinstance(node.taints, list)
            else []
        )
        capacities.append(
            NodeCapacity(
                node.name,
                total,
                total - used,
                node.is_ready and node.is_schedulable,
                labels,
                taints,
            )
        )
    return capacities


def _load_own_demand(cluster_id: uuid.UUID) -> dict[str, ResourceAmounts]:
    """Return what our unfinished pods hold on each node.

    Pods of one workload and role request the same.
    """
    running = Pod.objects.filter(
        workload__cluster_id=cluster_id, phase__in=("Pending", "Running"), vanished_at=None
    ).exclude(node="")
    groups = list(
        running.order_by()
        .values("node", "workload_id", "role")
        .annotate(pods=Count("id"), devices=Sum("gpus"))
    )
    requests = _load_pod_requests({group["workload_id"] for group in groups})
    demand_by_node: dict[str, ResourceAmounts] = defaultdict(ResourceAmounts)
    for group in groups:
        cpu, memory = requests.get(
            (group["workload_id"], group["role"] in MASTER_ROLES), (_NONE, _NONE)
        )
        demand_by_node[group["node"]] += ResourceAmounts(
            group["devices"] or _NONE, cpu * group["pods"], memory * group["pods"]
        )
    return demand_by_node


def _load_pod_requests(
    ids: set[uuid.UUID],
) -> dict[tuple[uuid.UUID, bool], tuple[Decimal, Decimal]]:
    """Return cores and bytes that a pod of each workload requests.

    By workload, and by whether the pod is the master.
    """
    requests = {}
    for id, stored in Workload.objects.filter(pk__in=list(ids)[:MOST_WORKLOADS]).values_list(
        "id", "spec"
    ):
        try:
            spec = decode_spec(stored)
        except (UnreadableSpec, AttributeError):
            continue
        requests[id, False] = _parse_requests(spec.setup.compute)
        requests[id, True] = _parse_requests(spec.master_setup.compute)
    return requests


def _parse_requests(compute: Compute) -> tuple[Decimal, Decimal]:
    return (
        quantities.parse_or_zero(compute.cpu_request or compute.cpu_limit or "0"),
        quantities.parse_or_zero(compute.memory_request or compute.memory_limit or "0"),
    )
