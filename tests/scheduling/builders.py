"""Short ways to write a state down: nodes of devices, queues, gangs on nodes or waiting."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from scheduling import (
    CPU,
    GPU,
    MEMORY,
    Bound,
    ClusterState,
    Gang,
    GpuShare,
    Node,
    Number,
    Pod,
    PodShape,
    Preemptibility,
    Queue,
)

NOW = 10_000.0
UNLIMITED = Bound(None, None, 1)
GIB = 2**30


def make_node(
    name: str,
    gpus: int = 0,
    *,
    cpu: Number = 1000,
    memory: int = 4000 * GIB,
    device_memory: int | None = 81_920,
    max_pods: int | None = None,
) -> Node:
    """Return a node; without figures it has more than enough of all but devices."""
    amounts: dict[str, Number] = {GPU: gpus, CPU: cpu, MEMORY: memory}
    return Node(
        name,
        {resource: amount for resource, amount in amounts.items() if amount},
        device_memory=device_memory if gpus else None,
        max_pods=max_pods,
    )


def make_queue(
    name: str,
    parent: str = "",
    *,
    quota: Number | None = 0,
    limit: Number | None = None,
    weight: Number = 1,
    cpu: Bound = UNLIMITED,
    **others: Any,
) -> Queue:
    """Return a queue with bounds on devices; all else is unlimited unless it is given."""
    bounds = {GPU: Bound(quota, limit, weight), CPU: cpu, MEMORY: UNLIMITED}
    return Queue(name, parent, bounds, **others)


def make_shape(
    gpus: int = 1,
    *,
    part: Fraction | None = None,
    mib: int | None = None,
    devices: int = 1,
    cpu: Number = 0,
    memory: int = 0,
    mismatches: dict[str, str] | None = None,
) -> PodShape:
    """Return the shape of a pod of whole devices, or of a part or MiB of some."""
    share = GpuShare(devices, part, mib) if part is not None or mib is not None else None
    amounts: dict[str, Number] = {GPU: 0 if share else gpus, CPU: cpu, MEMORY: memory}
    return PodShape(
        {resource: amount for resource, amount in amounts.items() if amount},
        share,
        mismatches or {},
    )


def make_gang(
    key: str,
    queue: str,
    gpus: int = 1,
    *,
    pods: int | None = None,
    on: Sequence[str] = (),
    minimum: int | None = None,
    shape: PodShape | None = None,
    leaving: int = 0,
    **others: Any,
) -> Gang:
    """Return a gang: its first pods run on the nodes `on`, the last `leaving` of these leave.

    Without `pods` it has those that run, or one that waits; without `minimum` it goes whole. One
    that has its minimum began an hour ago, and priorities from 100 on are not preemptible.
    """
    count = pods if pods is not None else max(len(on), 1)
    least = minimum if minimum is not None else count
    shape = shape or make_shape(gpus)
    members = [
        Pod(
            f"{key}-{rank}",
            shape,
            rank,
            node=on[rank] if rank < len(on) else "",
            is_leaving=len(on) - leaving <= rank < len(on),
        )
        for rank in range(count)
    ]
    if len(on) - leaving >= least and on:
        others.setdefault("started_at", NOW - 3600)
    if others.get("priority", 50) >= 100:
        others.setdefault("preemptibility", Preemptibility.NON_PREEMPTIBLE)
    others.setdefault("created_at", NOW - 4000)
    return Gang(key, queue, members, min_member=least, **others)


def make_state(
    nodes: Sequence[Node], queues: Sequence[Queue], gangs: Sequence[Gang], now: float = NOW
) -> ClusterState:
    """Return a state in which every running pod has devices, the lowest that are free."""
    free: dict[str, dict[int, Number]] = {
        node.name: dict.fromkeys(range(int(node.allocatable.get(GPU, 0))), 1) for node in nodes
    }
    sizes = {node.name: node.device_memory for node in nodes}
    given: dict[str, tuple[int, ...]] = defaultdict(tuple)
    running = [pod for gang in gangs for pod in gang.pods if pod.node]
    for pod in running:
        for index in pod.devices:
            free[pod.node][index] -= measure_device_part(pod.shape, sizes[pod.node])
    for pod in running:
        part, count = measure_device_part(pod.shape, sizes[pod.node]), count_devices(pod.shape)
        room = [index for index, left in free[pod.node].items() if left >= part]
        given[pod.uid] = pod.devices or tuple(room[:count])
        assert len(given[pod.uid]) == count, f"{pod.uid} finds no device on {pod.node}"
        for index in () if pod.devices else given[pod.uid]:
            free[pod.node][index] -= part
    gangs = [
        replace(gang, pods=[replace(pod, devices=given[pod.uid]) for pod in gang.pods])
        for gang in gangs
    ]
    return ClusterState(now, list(nodes), list(queues), gangs)


def count_devices(shape: PodShape) -> int:
    """Return on how many devices of its node a pod is."""
    return shape.share.devices if shape.share is not None else int(shape.amounts.get(GPU, 0))


def measure_device_part(shape: PodShape, device_memory: int | None) -> Number:
    """Return how much of each of its devices a pod of this shape holds."""
    if shape.share is None:
        return 1
    if shape.share.fraction is not None:
        return shape.share.fraction
    assert shape.share.memory is not None
    assert device_memory
    return Fraction(shape.share.memory, device_memory)
