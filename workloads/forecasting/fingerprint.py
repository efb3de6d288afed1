"""The state of a cluster as a few bytes: where they are the same, a forecast still holds."""

import hashlib
from collections.abc import Iterable
from typing import Any

from django.db.models import Count, Max

from clusters.models import Cluster, Node
from projects.models import Project
from workloads.models import Pod, Workload

MOST_ROWS = 20_000
_NODE_FIELDS = (
    *("name", "is_ready", "is_schedulable", "gpus", "cpu", "memory", "pods", "gpu_memory"),
    *("used_gpus", "used_cpu", "used_memory", "used_pods", "labels", "taints"),
)


def compute_fingerprint(cluster: Cluster) -> str:
    """Return a digest of what decides who starts where in a cluster. Four queries.

    Of pods it is how many of each workload are in which standing, and the newest of them.
    """
    pods = Pod.objects.filter(
        workload__cluster=cluster.pk, phase__in=("Pending", "Running"), vanished_at=None
    )
    waiting = Workload.objects.filter(cluster=cluster.pk, ended_at=None, released_at=None)
    rows: tuple[Iterable[Any], ...] = (
        pods.order_by("workload", "standing")
        .values_list("workload", "standing")
        .annotate(Count("pk"), Max("pk"))[:MOST_ROWS],
        waiting.order_by("pk").values_list(
            *("pk", "attempt", "status", "priority", "time_limit_seconds")
        )[:MOST_ROWS],
        Node.objects.filter(cluster=cluster.pk)
        .order_by("name")
        .values_list(*_NODE_FIELDS)[:MOST_ROWS],
        [
            (each.pk, each.deleted_at, each.shares, each.department.shares)
            for each in Project.objects.filter(cluster=cluster.pk, removed_at=None)
            .select_related("department")
            .order_by("pk")[:MOST_ROWS]
        ],
    )
    digest = hashlib.sha256(b"1" if cluster.can.has_kai else b"0")
    for each in rows:
        for row in each:
            digest.update(repr(row).encode())
    return digest.hexdigest()
