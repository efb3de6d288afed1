"""Nodes with what is allocated and free on them, our own pods included."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from clusters import seams
from clusters.models import Node, NodePool
from projects.seams import ResourceAmounts

MAX_POOLS = 500
"""Node pools of a cluster that are searched for a node."""

KAI_POOL_LABEL = "kai.scheduler/node-pool"
"""The label that names the KAI node pool of a node."""


def load_pool_lookup(cluster_id: uuid.UUID) -> Callable[[Node], Sequence[str]]:
    """Return a function that names the pools of a node of this cluster: Muster's and KAI's. One
    query.
    """
    pools = list(NodePool.objects.filter(cluster=cluster_id).order_by("name")[:MAX_POOLS])

    def find_names(node: Node) -> Sequence[str]:
        kai_pools = (
            [node.labels[KAI_POOL_LABEL]]
            if isinstance(node.labels.get(KAI_POOL_LABEL), str)
            else []
        )
        return list(
            dict.fromkeys(
                [*(pool.name for pool in pools if pool.matches_labels(node.labels)), *kai_pools]
            )
        )

    return find_names


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node with what is free on it, and the number of our pods."""

    node: Node
    free: Decimal
    cpu_free: Decimal
    memory_free: int
    our_pods: int

    @property
    def allocated(self) -> Decimal:
        return self.node.gpus - self.free

    @property
    def cpu_allocated(self) -> Decimal:
        return self.node.cpu - self.cpu_free

    @property
    def memory_allocated(self) -> int:
        return self.node.memory - self.memory_free

    @property
    def pods(self) -> int:
        return self.our_pods + self.node.used_pods

    @property
    def takes_pods(self) -> bool:
        return self.node.is_ready and self.node.is_schedulable


@dataclass(frozen=True, slots=True)
class NodeTotals:
    """The sums of many nodes. `free` are the free GPUs of nodes that take pods,
    `free_unschedulable` those of the others.
    """

    nodes: int
    ready: int
    gpus: Decimal
    allocated: Decimal
    free: Decimal
    free_unschedulable: Decimal
    unhealthy: Decimal
    cpu: Decimal
    cpu_allocated: Decimal
    memory: int
    memory_allocated: int
    pods: int
    seen_at: datetime | None
    """When the node that was seen longest ago was seen."""


def load_node_rows(nodes: Sequence[Node], cluster_id: uuid.UUID) -> list[NodeRow]:
    """Return the nodes of one cluster with what is free on each. The number of queries does not
    depend on that of the nodes.
    """
    capacities = seams.NODE_CAPACITIES.get().load_node_capacities(cluster_id)
    free = {capacity.name: capacity.free for capacity in capacities}
    our_pods = seams.NODE_PODS.get().count_pods_by_node(cluster_id)
    return [_build_row(node, free.get(node.name), our_pods.get(node.name, 0)) for node in nodes]


def sum_node_rows(rows: Sequence[NodeRow]) -> NodeTotals:
    """Return the sums over these nodes."""
    nothing = Decimal(0)
    return NodeTotals(
        nodes=len(rows),
        ready=sum(row.takes_pods for row in rows),
        gpus=sum((row.node.gpus for row in rows), nothing),
        allocated=sum((row.allocated for row in rows), nothing),
        free=sum((row.free for row in rows if row.takes_pods), nothing),
        free_unschedulable=sum((row.free for row in rows if not row.takes_pods), nothing),
        unhealthy=sum((row.node.gpus_unhealthy for row in rows), nothing),
        cpu=sum((row.node.cpu for row in rows), nothing),
        cpu_allocated=sum((row.cpu_allocated for row in rows), nothing),
        memory=sum(row.node.memory for row in rows),
        memory_allocated=sum(row.memory_allocated for row in rows),
        pods=sum(row.pods for row in rows),
        seen_at=min((row.node.seen_at for row in rows), default=None),
    )


def _build_row(node: Node, free: ResourceAmounts | None, our_pods: int) -> NodeRow:
    if free is None:
        return NodeRow(node, node.gpus, node.cpu, node.memory, our_pods)
    return NodeRow(node, free.gpus, free.cpu, int(free.memory), our_pods)
