"""A small cluster as the rules of growing see it: nodes of GPUs, queues with quotas, gangs."""

from collections.abc import Mapping
from typing import Any

from scheduling import (
    CPU,
    GPU,
    Bound,
    ClusterState,
    Gang,
    Node,
    Pod,
    PodShape,
    Preemptibility,
    Queue,
)
from workloads.elastic.scale_rules import ElasticJob, ScaleTimes

NOW = 10_000.0
ONE_GPU = PodShape({GPU: 1, CPU: 1})
TIMES = ScaleTimes(room=60, patience=300)


def build_nodes(*gpus: int) -> list[Node]:
    return [
        Node(f"node-{number}", {GPU: count, CPU: 64} if count else {CPU: 64})
        for number, count in enumerate(gpus)
    ]


def build_queues(quotas: Mapping[str, int | None], limit: int | None = None) -> list[Queue]:
    """A department with the sum of these quotas, and its projects' queues."""
    total = None if None in quotas.values() else sum(each or 0 for each in quotas.values())
    return [
        Queue("department", bounds={GPU: Bound(total, None, 1)}),
        *(
            Queue(name, "department", {GPU: Bound(quota, limit, 1)})
            for name, quota in quotas.items()
        ),
    ]


def build_gang(
    key: str, queue: str, placed: Mapping[str, int], waiting: int = 0, **given: Any
) -> Gang:
    """A gang with so many pods of a GPU each on nodes, by name, and some that wait."""
    nodes = [node for node, count in placed.items() for _ in range(count)]
    used: dict[str, int] = {}
    pods = []
    for rank, node in enumerate(nodes):
        index = used.get(node, given.get("first_device", 0))
        used[node] = index + 1
        pods.append(Pod(f"{key}-{rank}", ONE_GPU, rank, node, (index,)))
    pods += [
        Pod(f"{key}-{len(nodes) + each}", ONE_GPU, len(nodes) + each) for each in range(waiting)
    ]
    given.pop("first_device", None)
    fields: dict[str, Any] = {
        "min_member": max(1, len(pods)),
        "preemptibility": Preemptibility.PREEMPTIBLE,
        "created_at": NOW - 5000,
        "started_at": NOW - 4000 if nodes else None,
    }
    return Gang(key, queue, pods, **(fields | given))


def build_state(nodes: list[Node], queues: list[Queue], *gangs: Gang) -> ClusterState:
    return ClusterState(NOW, nodes, queues, gangs)


def build_job(key: str = "job", workers: int = 1, **changes: Any) -> ElasticJob:
    """A job of workers alone that runs as it should, and has had room for two minutes."""
    given: dict[str, Any] = {
        "min_workers": 1,
        "max_workers": 4,
        "worker": ONE_GPU,
        "used": workers,
        "waiting": {},
        "is_complete": True,
        "room_since": NOW - 120,
    }
    return ElasticJob(key, workers, **(given | changes))
