"""What a cluster's nodes have in total and free.

Others' pods are counted as of the last heartbeat, ours from their rows.
"""

import uuid
from collections.abc import Sequence
from decimal import Decimal

from django.core.cache import cache

from clusters.models import Node
from workloads.diagnosis import NodeCapacity, NodeLoss, ResourceAmounts
from workloads.fit.held_amounts import HeldAmounts, load_held_amounts
from workloads.journal.cluster_events import parse_moment
from workloads.kube_objects import Object

CACHE_SECONDS = 5
"""Seconds for which an answer is cached: many pages ask the same, and each answer adds up all
running pods.
"""
MOST_NODES = 5000


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
    amounts_by_node = load_held_amounts(cluster_id)
    capacities = []
    for node in Node.objects.filter(cluster_id=cluster_id)[:MOST_NODES]:
        total = ResourceAmounts(node.gpus, node.cpu, Decimal(node.memory))
        used = (
            ResourceAmounts(node.used_gpus, node.used_cpu, Decimal(node.used_memory))
            + amounts_by_node.get(node.name, HeldAmounts()).amounts
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
                _find_loss(node),
            )
        )
    return capacities


def _find_loss(node: Node) -> NodeLoss | None:
    """Return since when a node is not ready, by its condition; None where it is."""
    if node.is_ready:
        return None
    ready: Object = next((each for each in node.conditions if each.get("type") == "Ready"), {})
    return NodeLoss(parse_moment(ready.get("since")), ready.get("status") != "False")
