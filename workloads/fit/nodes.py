"""Whether a submission finds room on the nodes: now, and if nothing else ran there."""

import datetime
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal

from clusters.models import Cluster, Node
from clusters.nodes import MAX_LABELS
from workloads.diagnosis.node_capacity import (
    NodeCapacity,
    ResourceAmounts,
    filter_open_nodes,
    sum_amounts,
)
from workloads.diagnosis.node_shortage import RESOURCE_FORMATTERS
from workloads.fit.demand import PodDemand, WorkloadDemand
from workloads.fit.held_amounts import HeldAmounts, load_held_amounts
from workloads.fit.verdict import FitCheck, Verdict
from workloads.manifests import placement
from workloads.manifests.placement import NO_POOLS, NodePools
from workloads.quantities import format_count, format_number

UNLIMITED = 2**31
"""Pods that a node takes where it does not say how many."""
_WAITS = "It waits until the cluster has more nodes;"
_SMALLER = f"{_WAITS} or ask for less, or use a project on a larger cluster."
_FEWER = f"{_WAITS} or ask for fewer pods, or use a project on a larger cluster."
_OFF_NETWORK = f"{_WAITS} or use fewer workers, or not the host's network."
_SPREAD = (
    "It waits until the cluster has a larger node; or ask for less for each pod, and for more "
    "workers if the work can be spread."
)
PASSING_TAINTS = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
)
"""How the keys of taints begin that a cluster sets and takes away by itself: a node is not ready,
closed to pods, new, or about to go.
"""


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """A node with what is free on it now, and how many pods it takes in all and now.

    `ports_in_use` are the ports of the node that our pods there have.
    """

    capacity: NodeCapacity
    total_pods: int
    free_pods: int
    has_all_labels: bool = True
    """False where more labels may be there than are known."""
    ports_in_use: Set[int] = frozenset()


def check_nodes(demand: WorkloadDemand, cluster: Cluster, pools: NodePools) -> FitCheck:
    """Check a demand against the nodes of a cluster. At most three queries."""
    nodes = list(Node.objects.filter(cluster=cluster))
    if not nodes:
        return FitCheck(
            Verdict.UNKNOWN,
            f"The nodes are not checked: nothing is known of those of cluster {cluster.name} yet.",
        )
    never = _check_capacity(demand, nodes, cluster, pools)
    return never or _check_free_room(demand, nodes, load_held_amounts(cluster.pk), pools)


def check_total_capacity(
    demand: WorkloadDemand, cluster: Cluster, pools: NodePools
) -> FitCheck | None:
    """Return why the nodes could never take it; None where they could. One query."""
    nodes = list(Node.objects.filter(cluster=cluster))
    return _check_capacity(demand, nodes, cluster, pools) if nodes else None


def _check_capacity(
    demand: WorkloadDemand, nodes: Sequence[Node], cluster: Cluster, pools: NodePools
) -> FitCheck | None:
    """Return why all nodes together, or the largest, could never take it.

    Nodes that are not ready, or closed to pods, count, and so do devices that are not well: they
    may come back. What pods of others use counts as free, for they may end.
    """
    rooms = [_build_empty_room(node) for node in nodes]
    text = _describe_impossibility(demand.at_start, rooms, pools)
    if not text:
        return None
    lead = f"With the nodes that cluster {cluster.name} has now it cannot start:"
    return FitCheck(Verdict.NEVER, f"{lead} {text}", _find_oldest(nodes))


def _describe_impossibility(
    demand: WorkloadDemand, rooms: Sequence[NodeRoom], pools: NodePools
) -> str:
    """Describe what the nodes could never give; "" where there is nothing.

    A kind of pods that no node may take is left out: labels and taints can be changed.
    """
    permitted = [
        (kind, open_rooms)
        for kind in demand.kinds
        if (open_rooms := _open_rooms(kind, rooms, pools))
    ]
    if len(permitted) < len(demand.kinds):
        return ""
    together = {room.capacity.name: room for _, open_rooms in permitted for room in open_rooms}
    most_pods = sum(room.total_pods for room in together.values())
    if demand.pods > most_pods:
        return (
            f"it needs {demand.pods:,} pods at once, and the nodes that may take them hold "
            f"{most_pods:,} in all. {_FEWER}"
        )
    for kind, open_rooms in permitted:
        if text := _describe_too_large_pod(kind, open_rooms):
            return text
    if text := _describe_too_few_nodes(permitted):
        return text
    offered = sum_amounts(room.capacity.total for room in together.values())
    for attribute, show in RESOURCE_FORMATTERS.items():
        need, total = getattr(demand.total, attribute), getattr(offered, attribute)
        if need > total:
            return (
                f"it needs {show(need)} at once, and the nodes that may take its pods have "
                f"{show(total)} in all. {_SMALLER}"
            )
    for kind, open_rooms in permitted:
        most = sum(
            _count_copies(kind.amounts, room.capacity.total, room.total_pods) for room in open_rooms
        )
        if kind.count > most:
            return (
                f"it needs {kind.count:,} pods of one kind at once, and the nodes that may take "
                f"them hold {most:,} of their size. {_SMALLER}"
            )
    return ""


def _describe_too_large_pod(kind: PodDemand, rooms: Sequence[NodeRoom]) -> str:
    if any(kind.amounts.fits_in(room.capacity.total) for room in rooms):
        return ""
    for attribute, show in RESOURCE_FORMATTERS.items():
        need: Decimal = getattr(kind.amounts, attribute)
        largest: Decimal = max(getattr(room.capacity.total, attribute) for room in rooms)
        if need > largest:
            return (
                f"a pod needs {show(need)} on one node, and the largest that may take it has "
                f"{show(largest)}. {_SPREAD}"
            )
    return f"a pod needs more than any one node has of GPUs, CPU and memory together. {_SPREAD}"


def _describe_too_few_nodes(permitted: Sequence[tuple[PodDemand, Sequence[NodeRoom]]]) -> str:
    """Describe that pods which take a port of their nodes have too few nodes; "" if they do not.

    All together need as many as they are, and each kind as many that are large enough for it.
    """
    takers = [
        (kind, {room.capacity.name for room in rooms if kind.amounts.fits_in(room.capacity.total)})
        for kind, rooms in permitted
        if kind.host_port is not None
    ]
    for group in (takers, *([each] for each in takers)):
        pods = sum(kind.count for kind, _ in group)
        nodes = len(set[str]().union(*(names for _, names in group)))
        if pods > nodes:
            return (
                f"on {_describe_port(takers[0][0].host_port)}, so it needs "
                f"{format_count(pods, 'node')} at once, and {format_count(nodes, 'node')} may take "
                f"its pods. {_OFF_NETWORK}"
            )
    return ""


def _describe_port(host_port: int | None) -> str:
    return f"the host's network each pod takes port {host_port} of a node for itself"


def _check_free_room(
    demand: WorkloadDemand,
    nodes: Sequence[Node],
    amounts_held: Mapping[str, HeldAmounts],
    pools: NodePools,
) -> FitCheck:
    """Check a demand against what is free on the ready nodes now."""
    seen_at = _find_oldest(nodes)
    rooms = [
        _build_room(node, amounts_held.get(node.name, HeldAmounts()))
        for node in nodes
        if node.is_ready and node.is_schedulable
    ]
    placeable = count_placeable_pods(demand, rooms, pools)
    memory = " GPU memory is not checked." if demand.has_gpu_memory else ""
    if placeable == demand.pods:
        return FitCheck(
            Verdict.FITS,
            f"The nodes have room for {_describe_pods(demand.pods)} now.{memory}",
            seen_at,
        )
    permitted = {
        room.capacity.name: room
        for kind in demand.kinds
        for room in _open_rooms(kind, rooms, pools)
    }
    if rooms and not permitted:
        lack = "labels that are asked for are missing, or taints are not tolerated"
        return FitCheck(Verdict.WARNS, f"{_describe_no_node(len(rooms), demand)}: {lack}.", seen_at)
    free = _describe_free_room(list(permitted.values()))
    ports = ""
    if count_placeable_pods(demand.without_host_ports, rooms, pools) > placeable:
        ports = _describe_port_use(demand.host_port, list(permitted.values()))
    return FitCheck(
        Verdict.WARNS,
        f"The nodes have room for {placeable:,} of {_describe_pods(demand.pods)} now: "
        f"{free}.{ports}{memory}",
        seen_at,
    )


def _describe_port_use(host_port: int | None, rooms: Sequence[NodeRoom]) -> str:
    """Describe what a port has to do with it that not all pods find room."""
    count = sum(host_port in room.ports_in_use for room in rooms)
    text = f" On {_describe_port(host_port)}"
    return f"{text}, and on {count:,} of these nodes another pod has it." if count else f"{text}."


def _describe_free_room(rooms: Sequence[NodeRoom]) -> str:
    free = sum_amounts(room.capacity.free for room in rooms)
    total = sum_amounts(room.capacity.total for room in rooms)
    gpus = f"{format_number(free.gpus)} of {format_count(total.gpus, 'GPU')} free"
    return f"{gpus} on {format_count(len(rooms), 'ready node')}"


def _describe_no_node(nodes: int, demand: WorkloadDemand) -> str:
    pods = _describe_pods(demand.pods)
    return (
        f"The one ready node may not take {pods}"
        if nodes == 1
        else f"None of the {nodes:,} ready nodes may take {pods}"
    )


def _describe_pods(count: int) -> str:
    return "its one pod" if count == 1 else f"its {count:,} pods"


def _find_oldest(nodes: Sequence[Node]) -> datetime.datetime:
    """Return when the first of the nodes was seen."""
    return min(node.seen_at for node in nodes)


def _build_empty_room(node: Node) -> NodeRoom:
    """Build the room of a node at its best: empty, with all its devices, and open to pods."""
    total = ResourceAmounts(node.gpus + node.gpus_unhealthy, node.cpu, Decimal(node.memory))
    labels = {str(key): str(value) for key, value in node.labels.items()}
    taints = [
        each for each in node.taints if not str(each.get("key", "")).startswith(PASSING_TAINTS)
    ]
    pods = node.pods or UNLIMITED
    capacity = NodeCapacity(node.name, total, total, True, labels, taints)
    return NodeRoom(capacity, pods, pods, has_all_labels=len(labels) < MAX_LABELS)


def _build_room(node: Node, ours: HeldAmounts) -> NodeRoom:
    """Build the room of a node, beside what our pods hold there."""
    total = ResourceAmounts(node.gpus, node.cpu, Decimal(node.memory))
    foreign = ResourceAmounts(node.used_gpus, node.used_cpu, Decimal(node.used_memory))
    labels = {str(key): str(value) for key, value in node.labels.items()}
    pods = node.pods or UNLIMITED
    free_pods = max(0, pods - node.used_pods - ours.pods)
    capacity = NodeCapacity(
        node.name, total, total - foreign - ours.amounts, True, labels, node.taints
    )
    return NodeRoom(capacity, pods, free_pods, ports_in_use=ours.host_ports)


def list_open_nodes(kind: PodDemand, nodes: Iterable[Node], pools: NodePools) -> Sequence[NodeRoom]:
    """Return the nodes that may take pods of a kind, each at its best: empty and whole."""
    return _open_rooms(kind, [_build_empty_room(node) for node in nodes], pools)


def _open_rooms(kind: PodDemand, rooms: Sequence[NodeRoom], pools: NodePools) -> Sequence[NodeRoom]:
    """Return the rooms where pods of a kind may run, by labels and taints.

    A label that is asked for may be among those of a node that are not known.
    """
    pod_spec = placement.build_placement(kind.setup, "", pools)
    tolerations = {"tolerations": pod_spec.get("tolerations") or []}
    return [
        room
        for room in rooms
        if filter_open_nodes([room.capacity], pod_spec if room.has_all_labels else tolerations)
    ]


def count_placeable_pods(
    demand: WorkloadDemand, rooms: Sequence[NodeRoom], pools: NodePools = NO_POOLS
) -> int:
    """Count the pods that find a node, filling one node after the other."""
    free = {room.capacity.name: (room.capacity.free, room.free_pods) for room in rooms}
    with_port = {room.capacity.name for room in rooms if demand.host_port not in room.ports_in_use}
    placed = 0
    for kind in demand.kinds:
        remaining = kind.count
        for room in _open_rooms(kind, rooms, pools):
            if not remaining:
                break
            amounts, pods = free[room.capacity.name]
            fitting = min(remaining, _count_copies(kind.amounts, amounts, pods))
            if kind.host_port is not None:
                fitting = min(fitting, int(room.capacity.name in with_port))
                if fitting:
                    with_port.remove(room.capacity.name)
            placed_there = PodDemand(kind.setup, kind.amounts, fitting)
            free[room.capacity.name] = (amounts - placed_there.total, pods - fitting)
            remaining -= fitting
        placed += kind.count - remaining
    return placed


def _count_copies(pod_amounts: ResourceAmounts, free: ResourceAmounts, pods: int) -> int:
    """Return how many pods with these amounts fit into the free amounts, at most `pods`."""
    pairs = (
        (pod_amounts.gpus, free.gpus),
        (pod_amounts.cpu, free.cpu),
        (pod_amounts.memory, free.memory),
    )
    return min([pods, *(int(available // asks) for asks, available in pairs if asks)])
