"""Figures of one sweep of a cluster, written down in one transaction."""

import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet

from clusters.metrics.catalogue import METRICS_BY_NAME, combine_figures
from clusters.metrics.figures import Figures, Name, Sweep
from clusters.models import Cluster, Node
from console.chunks import split_chunks
from workloads.metric_models import MetricSeries
from workloads.metrics.frames import encode_frame
from workloads.metrics.resolutions import ROW_SECONDS, Resolution
from workloads.metrics.rows import append_frames
from workloads.models import Pod
from workloads.states import ACTIVE

WHOLE = 0
"""The id in frames of what is one thing, and no pod of a workload."""
MAX_CLOCK_LEAD = timedelta(minutes=10)
"""How far ahead the moment of a sweep may be: a later one was written by a clock that was wrong."""
CHUNK = 500
"""Keys of one query."""

_GPUS_ALLOCATED = METRICS_BY_NAME["gpus_allocated"].code
_CPU, _MEMORY = METRICS_BY_NAME["cpu"].code, METRICS_BY_NAME["memory"].code
_CPU_CAPACITY = METRICS_BY_NAME["cpu_capacity"].code
_MEMORY_CAPACITY = METRICS_BY_NAME["memory_capacity"].code
_ACTIVE = [status.value for status in ACTIVE]


def record_sweep(cluster_id: uuid.UUID, at: datetime, sweep: Sweep, problem: str) -> bool:
    """Store what a sweep found of our pods and of the nodes, as of `at`.

    Returns False where another process has done so already. What is no running pod of ours, and no
    node that is known, is left out.
    """
    seconds = int(at.timestamp())
    frames = _build_frames(cluster_id, seconds % ROW_SECONDS[Resolution.RAW], sweep)
    changes = {"metrics_at": at} if frames else {}
    with transaction.atomic():
        claimed = Cluster.objects.filter(
            Q(measured_at=None) | Q(measured_at__lt=at) | Q(measured_at__gt=at + MAX_CLOCK_LEAD),
            pk=cluster_id,
        ).update(measured_at=at, metrics_problem=problem[:500], **changes)
        if claimed:
            append_frames(Resolution.RAW, seconds, frames)
    return bool(claimed)


def _build_frames(cluster_id: uuid.UUID, offset: int, sweep: Sweep) -> dict[int, bytes]:
    """Return the frames of workloads, projects, nodes and the cluster by their series' numbers."""
    workloads, projects, allocated = _sort_pods(cluster_id, sweep)
    columns = ("pk", "name", "gpus", "used_gpus", "cpu", "memory")
    rows = Node.objects.filter(cluster=cluster_id).values_list(*columns)
    nodes = {
        pk: sweep.nodes[name]
        | _describe_allocation(gpus, allocated[name] + float(foreign))
        | _describe_capacity(sweep.nodes[name], float(cpu), float(memory))
        for pk, name, gpus, foreign, cpu, memory in rows
        if name in sweep.nodes
    }
    frames: dict[int, bytes] = {}

    def add_frames(
        owner: str,
        figures_by_owner: Mapping[Any, Mapping[int, Figures]],
        *,
        keeps_zero_faults: bool = True,
    ) -> None:
        series = _load_series(owner, figures_by_owner.keys())
        for key, figures in figures_by_owner.items():
            if data := encode_frame(offset, figures, keeps_zero_faults=keeps_zero_faults):
                frames[series[key]] = data

    # Two bytes of each pod and metric of faults, four times a minute, to say that nothing is wrong:
    # a node says so for all of its pods.
    add_frames("workload", workloads, keeps_zero_faults=False)
    add_frames("project", {key: {WHOLE: combine_figures(pods)} for key, pods in projects.items()})
    add_frames("node", {key: {WHOLE: figures} for key, figures in nodes.items()})
    if nodes:
        add_frames("cluster", {cluster_id: {WHOLE: combine_figures(nodes.values())}})
    return frames


def _describe_allocation(gpus: Decimal, allocated: float) -> Figures:
    """Return how many of a node's GPUs are held; nothing of a node without any."""
    return {_GPUS_ALLOCATED: allocated} if gpus else {}


def _describe_capacity(figures: Figures, cpu: float, memory: float) -> Figures:
    """Return what a node can have of what was measured of it; nothing where that is unknown, 0.

    So the sum over nodes has the capacity of those whose use is in the sum, and of no other.
    """
    capacities = ((_CPU, _CPU_CAPACITY, cpu), (_MEMORY, _MEMORY_CAPACITY, memory))
    return {code: capacity for used, code, capacity in capacities if used in figures and capacity}


def _sort_pods(
    cluster_id: uuid.UUID, sweep: Sweep
) -> tuple[
    Mapping[uuid.UUID, Mapping[int, Figures]], Mapping[int, list[Figures]], Mapping[str, float]
]:
    """Return the figures of our running pods by workload and pod, and by project. One query.

    With them come the GPUs that these pods hold, by node.
    """
    rows = _find_running_pods(cluster_id)
    workloads: dict[uuid.UUID, dict[int, Figures]] = defaultdict(dict)
    projects: dict[int, list[Figures]] = defaultdict(list)
    allocated: dict[str, float] = defaultdict(float)
    columns = (
        "pk",
        "workload_id",
        "workload__project_id",
        "workload__project__namespace",
        "name",
        "node",
        "gpus",
    )
    pods = rows.values_list(*columns).iterator(chunk_size=2000)
    for pk, workload, project, namespace, name, node, gpus in pods:
        allocated[node] += float(gpus or 0)
        if figures := sweep.pods.get((namespace, name)):
            workloads[workload][pk] = figures
            projects[project].append(figures)
    return workloads, projects, allocated


def load_running_pod_names(cluster_id: uuid.UUID) -> set[Name]:
    """Load the names of our running pods: those whose figures are stored."""
    names = _find_running_pods(cluster_id).values_list("workload__project__namespace", "name")
    return set(names.iterator(chunk_size=2000))


def _find_running_pods(cluster_id: uuid.UUID) -> QuerySet[Pod]:
    return Pod.objects.filter(
        phase="Running",
        vanished_at=None,
        attempt=F("workload__attempt"),
        workload__cluster=cluster_id,
        workload__status__in=_ACTIVE,
        workload__released_at=None,
    ).order_by()


def _load_series(owner: str, keys: Collection[Any]) -> dict[Any, int]:
    """Return the numbers of these owners' series, made where they are missing.

    A number outlives a transaction that fails: the next sweep finds it.
    """
    numbers = _find_series(owner, keys)
    if missing := [key for key in keys if key not in numbers]:
        MetricSeries.objects.bulk_create(
            [MetricSeries(**{f"{owner}_id": key}) for key in missing],
            batch_size=CHUNK,
            ignore_conflicts=True,
        )
        numbers |= _find_series(owner, missing)
    return numbers


def _find_series(owner: str, keys: Collection[Any]) -> dict[Any, int]:
    numbers: dict[Any, int] = {}
    for chunk in split_chunks(list(keys), CHUNK):
        rows = MetricSeries.objects.filter(**{f"{owner}__in": chunk})
        numbers |= dict(rows.values_list(f"{owner}_id", "pk"))
    return numbers
