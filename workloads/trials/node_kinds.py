"""The nodes of a cluster by kind: those of one kind are tried in other numbers."""

import copy
import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from clusters.models import Cluster, Node, NodePool
from console.texts import join_first
from workloads.elastic.cluster_state import MOST_NODES
from workloads.fit.nodes import PASSING_TAINTS
from workloads.quantities import format_count, format_number

MOST_KINDS = 50
MOST_POOLS = 500
"""Kinds that are shown, and node pools of a cluster that are read."""
MOST_OF_A_KIND = 1_000
HOST_LABEL = "kubernetes.io/hostname"
HARD_EFFECTS = ("NoSchedule", "NoExecute")


class _Identity(NamedTuple):
    """What nodes of one kind have in common."""

    gpus: str
    gpu_type: str
    pools: Sequence[str]
    taints: Sequence[str]


@dataclass(frozen=True, slots=True)
class NodeKind:
    """Nodes with as many GPUs of one type, in the same node pools, with the same taints.

    The first is their pattern.
    """

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
    groups: dict[_Identity, list[Node]] = defaultdict(list)
    for node in rows.order_by("name")[:MOST_NODES]:
        names = tuple(pool.name for pool in pools if pool.matches_labels(node.labels))
        taints = tuple(_format_taint(taint) for taint in _list_lasting_taints(node))
        groups[_Identity(format_number(node.gpus), node.gpu_type, names, taints)].append(node)
    kinds = [_build_kind(identity, nodes) for identity, nodes in groups.items()]
    return sorted(kinds, key=lambda kind: (-kind.nodes[0].gpus, kind.label, kind.key))


def _list_lasting_taints(node: Node) -> list[dict[str, str]]:
    """Return the taints that keep pods away, without those that a cluster sets and removes."""
    lasting = [
        taint
        for taint in node.taints
        if taint.get("effect") in HARD_EFFECTS
        and not str(taint.get("key", "")).startswith(PASSING_TAINTS)
    ]
    return sorted(lasting, key=_format_taint)


def _format_taint(taint: Mapping[str, str]) -> str:
    """Return a taint as kubectl takes it: "key=value:effect"."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key', '')}{value}:{taint.get('effect', '')}"


def _build_kind(identity: _Identity, nodes: Sequence[Node]) -> NodeKind:
    first = nodes[0]
    words = f"{identity.gpus} × {identity.gpu_type or 'GPU'}" if first.gpus else "no GPU"
    if not first.gpus:
        words += f", {format_count(first.cpu, 'core')}"
    if identity.pools:
        words += f" ({join_first(identity.pools, 3)})"
    if identity.taints:
        words += f", tainted {join_first(identity.taints, 2)}"
    key = hashlib.sha256(repr(tuple(identity)).encode()).hexdigest()[:12]
    return NodeKind(key, words, nodes)


def resize_kinds(kinds: Sequence[NodeKind], counts: Mapping[str, int]) -> Sequence[Node]:
    """Return the nodes with other numbers of some kinds, by the key of the kind.

    What is added is like the first of its kind, with as little of others' pods as any node of it.
    What is removed are the last by name.
    """
    nodes: list[Node] = []
    for kind in kinds:
        count = counts.get(kind.key, kind.count)
        nodes += kind.nodes[:count]
        nodes += [_build_node(kind, number) for number in range(1, count - kind.count + 1)]
    return nodes


def _build_node(kind: NodeKind, number: int) -> Node:
    """Build a row, not to be saved, of a new node of a kind."""
    pattern = kind.nodes[0]
    node = copy.copy(pattern)
    node.pk = None
    # No node of Kubernetes has such a name.
    node.name = f"{pattern.name}+{number}"
    node.labels = pattern.labels | {HOST_LABEL: node.name}
    node.taints = _list_lasting_taints(pattern)
    # Pods of others that hold GPUs came to their node alone. A part of the rest is on each node:
    # that of DaemonSets, which a new node has too.
    node.used_gpus = Decimal(0)
    node.used_cpu = min(each.used_cpu for each in kind.nodes)
    node.used_memory = min(each.used_memory for each in kind.nodes)
    node.used_pods = min(each.used_pods for each in kind.nodes)
    return node
