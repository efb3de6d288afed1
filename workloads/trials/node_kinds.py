"""The nodes of a cluster by kind: those of one kind are tried in other numbers."""

import copy
import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusters.models import Cluster, Node, NodePool
from console.texts import join_first
from workloads.elastic.cluster_state import MOST_NODES
from workloads.quantities import format_count, format_number

MOST_KINDS = 50
MOST_POOLS = 500
"""Kinds that are shown, and node pools of a cluster that are read."""
MOST_OF_A_KIND = 1_000
HOST_LABEL = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class NodeKind:
    """Nodes with as many GPUs of one type, in the same node pools; the first is their pattern."""

    key: str
    label: str
    nodes: Sequence[Node]

    @property
    def count(self) -> int:
        return len(self.nodes)


def load_node_kinds(cluster: Cluster) -> Sequence[NodeKind]:
    """Load the nodes that take pods, by kind; those with the most GPUs first. Two queries."""
    rows = Node.objects.filter(cluster=cluster, is_ready=True, is_schedulable=True)
    pools = list(NodePool.objects.filter(cluster=cluster).order_by("name")[:MOST_POOLS])
    groups: dict[tuple[str, str, tuple[str, ...]], list[Node]] = defaultdict(list)
    for node in rows.order_by("name")[:MOST_NODES]:
        names = tuple(pool.name for pool in pools if pool.matches_labels(node.labels))
        groups[format_number(node.gpus), node.gpu_type, names].append(node)
    kinds = [_build_kind(*identity, nodes) for identity, nodes in groups.items()]
    return sorted(kinds, key=lambda kind: (-kind.nodes[0].gpus, kind.label, kind.key))


def _build_kind(gpus: str, gpu_type: str, pools: Sequence[str], nodes: Sequence[Node]) -> NodeKind:
    identity = repr((gpus, gpu_type, tuple(pools)))
    first = nodes[0]
    words = f"{gpus} × {gpu_type or 'GPU'}" if first.gpus else "no GPU"
    if not first.gpus:
        words += f", {format_count(first.cpu, 'core')}"
    if pools:
        words += f" ({join_first(pools, 3)})"
    return NodeKind(hashlib.sha256(identity.encode()).hexdigest()[:12], words, nodes)


def resize_kinds(kinds: Sequence[NodeKind], counts: Mapping[str, int]) -> Sequence[Node]:
    """Return the nodes with other numbers of some kinds, by the key of the kind.

    What is added is like the first of its kind. What is removed are the last by name.
    """
    nodes: list[Node] = []
    for kind in kinds:
        count = counts.get(kind.key, kind.count)
        nodes += kind.nodes[:count]
        nodes += [_copy_node(kind.nodes[0], number) for number in range(1, count - kind.count + 1)]
    return nodes


def _copy_node(node: Node, number: int) -> Node:
    """Return a row that is not saved, like another one."""
    another = copy.copy(node)
    another.pk = None
    # No node of Kubernetes has such a name.
    another.name = f"{node.name}+{number}"
    another.labels = node.labels | {HOST_LABEL: another.name}
    return another
