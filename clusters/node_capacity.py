"""Nodes with what is held and free on them. Our own pods are rows of the top floor, which
`settings.ROOMS` and NODE_PODS name.
"""

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from clusters.models import Node, NodePool

MAX_POOLS = 500
"""Node pools of a cluster in which nodes are looked for."""

KAI_POOL_LABEL = "kai.scheduler/node-pool"
"""The label that says which pool of KAI's a node is in."""


def load_pool_lookup(cluster_id: uuid.UUID) -> Callable[[Node], Sequence[str]]:
    """What tells of a node of this cluster which pools it is in: those that Muster knows, and KAI's
    own. One query.
    """
    known = list(NodePool.objects.filter(cluster=cluster_id).order_by("name")[:MAX_POOLS])

    def named(node: Node) -> Sequence[str]:
        own = (
            [node.labels[KAI_POOL_LABEL]]
            if isinstance(node.labels.get(KAI_POOL_LABEL), str)
            else []
        )
        return list(dict.fromkeys([*(pool.name for pool in known if pool.has(node.labels)), *own]))

    return named


class ResourceAmounts(Protocol):
    """GPUs in devices, CPU in cores, memory in bytes."""

    @property
    def gpus(self) -> Decimal: ...
    @property
    def cpu(self) -> Decimal: ...
    @property
    def memory(self) -> Decimal: ...


class FreeCapacity(Protocol):
    """What a node has free; our pods, which a floor above knows, are counted."""

    @property
    def name(self) -> str: ...
    @property
    def free(self) -> ResourceAmounts: ...


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node with what is free on it, and how many pods are: ours, and those of others."""

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
    """The sums of many nodes. `closed` are free GPUs on nodes that take no pods; `free` are those
    on the others.
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
    """When the one seen longest ago was seen."""


def load_node_rows(nodes: Sequence[Node], cluster_id: uuid.UUID) -> list[NodeRow]:
    """The nodes of one cluster with what is free on each. The same few queries however many they
    are.
    """
    rooms: Callable[[uuid.UUID], Iterable[FreeCapacity]] = import_string(settings.ROOMS)
    counts: Callable[[uuid.UUID], dict[str, int]] = import_string(f"{settings.NODE_PODS}.counts")
    free, ours = {room.name: room.free for room in rooms(cluster_id)}, counts(cluster_id)
    return [_build_row(node, free.get(node.name), ours.get(node.name, 0)) for node in nodes]


def sum_node_rows(rows: Sequence[NodeRow]) -> NodeTotals:
    """Everything together."""
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
