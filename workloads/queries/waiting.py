"""Why workloads wait: loads the rows of one or several into the shapes that `diagnosis` reads.

The number of queries does not depend on the number of workloads.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from django.core.cache import cache
from django.db.models import BooleanField, Count, ExpressionWrapper, F, Min, Q, QuerySet, Sum

from clusters.models import Node
from projects.models import User
from projects.querysets import list_visible_project_ids
from workloads.diagnosis import (
    Diagnosis,
    NodeCapacity,
    NodeHolders,
    add_queue_position,
    diagnose_waiting,
)
from workloads.kube_objects import DATA_WORKER, Object
from workloads.models import Event, Pod, Workload
from workloads.pod_views import KeptObject
from workloads.queries.node_capacity import CACHE_SECONDS, load_node_capacities
from workloads.queries.queue_positions import load_queue_positions
from workloads.states import (
    ACTIVE,
    DATA_READY,
    Status,
)
from workloads.status_rules import (
    has_waited_for_data,
)

WAITING_STATUSES = ACTIVE - {Status.RUNNING, Status.PREPARING}
"""Statuses that are diagnosed."""
MOST_PODS = 500
"""Pods that are read of all workloads together; one alone may have that many as well."""
SAMPLED = 100
"""Pods of one workload from which on those that are alike are read once."""
MOST_SAMPLES = 50
"""Pods that are read of such a workload."""
MOST_EVENTS = 200

_NONE = Decimal(0)
_HOLDING_STATUSES = [status.value for status in ACTIVE | {Status.STOPPING, Status.DELETING}]

WaitDiagnosis = tuple[Diagnosis, Pod | None]
"""A diagnosis with the pod that it is about."""


@dataclass(frozen=True, slots=True)
class GpuHolding:
    """GPUs that a project holds on a cluster now."""

    project_id: int
    name: str
    preemptible: bool
    gpus: Decimal


@dataclass(frozen=True, slots=True)
class NodeHolding:
    """GPUs that the pods of a project hold on a node; without a project those of others' pods."""

    node: str
    project_id: int | None
    name: str
    gpus: Decimal


GpuHoldings = Mapping[uuid.UUID, Sequence[GpuHolding]]
"""The holdings of projects, by cluster."""


def diagnose_waiting_workloads(
    workloads: Sequence[Workload], user: User
) -> dict[uuid.UUID, WaitDiagnosis]:
    """Return why each waiting workload waits, by id.

    A workload with too many pods for a list is left out. Other projects are named only to a user
    who sees them. The rows are loaded with their projects.
    """
    diagnoses = diagnose_without_places(workloads, list_visible_project_ids(user))
    return _add_positions(workloads, diagnoses)


def diagnose_without_places(
    workloads: Sequence[Workload], visible: frozenset[int] | None
) -> dict[uuid.UUID, WaitDiagnosis]:
    """Return why each waiting workload waits, by id, and not its place in its project's queue.

    `visible` are the projects that may be named beside a workload's own; None means all.
    """
    waiting_workloads = limit_pods(
        [each for each in workloads if each.status in WAITING_STATUSES and each.job is not None]
    )
    if not waiting_workloads:
        return {}
    clusters = {each.cluster_id for each in waiting_workloads}
    pods, events, holdings = (
        _load_pods(waiting_workloads),
        _load_events(waiting_workloads),
        load_gpu_holdings(clusters),
    )
    node_holdings = {cluster: _load_node_holdings(cluster) for cluster in clusters}
    holders = {
        (project, cluster): _group_holders(project, node_holdings[cluster], visible)
        for project, cluster in {(each.project_id, each.cluster_id) for each in waiting_workloads}
    }
    nodes = {cluster: load_node_capacities(cluster) for cluster in clusters}
    lost_pods = _count_lost_pods(waiting_workloads, nodes)
    diagnoses = {}
    for workload in waiting_workloads:
        cluster_holdings = holdings.get(workload.cluster_id, ())
        rows = pods.get(workload.pk, ())
        diagnosis = diagnose_waiting(
            workload.job or {},
            # Each pod is looked at several times, and parsed once.
            [KeptObject(pod.data) for pod, _ in rows],
            workload.pod_group,
            queue=_build_queue(workload, cluster_holdings),
            nodes=nodes[workload.cluster_id],
            events=events.get(workload.pk, ()),
            holders=holders[workload.project_id, workload.cluster_id],
            counts={pod.name: count for pod, count in rows if count > 1},
            lost_pods=lost_pods.get(workload.pk),
        )
        if diagnosis is not None:
            if workload.status == Status.PENDING and has_waited_for_data(workload.job):
                sentence = f"{DATA_READY}. {diagnosis.sentence}"
                diagnosis = replace(diagnosis, sentence=sentence)
            diagnoses[workload.pk] = (
                diagnosis,
                next((pod for pod, _ in rows if diagnosis.pod and pod.name == diagnosis.pod), None),
            )
    return diagnoses


def _add_positions(
    workloads: Sequence[Workload], diagnoses: dict[uuid.UUID, WaitDiagnosis]
) -> dict[uuid.UUID, WaitDiagnosis]:
    """Add its place to what waits for its turn. At most one query."""
    queued = [
        each for each in workloads if each.pk in diagnoses and diagnoses[each.pk][0].is_queued
    ]
    places = load_queue_positions(queued)
    return {
        key: (add_queue_position(diagnosis, places.get(key)), pod)
        for key, (diagnosis, pod) in diagnoses.items()
    }


def load_gpu_holdings(clusters: Iterable[uuid.UUID]) -> GpuHoldings:
    """Load the GPUs that projects hold on each of these clusters now.

    One query.
    """
    holding = Workload.objects.filter(
        cluster__in=clusters, status__in=_HOLDING_STATUSES, gpus_allocated__gt=0
    ).order_by()
    grouped = holding.values("cluster_id", "project_id", "project__name", "preemptible").annotate(
        gpus=Sum("gpus_allocated")
    )
    holdings: dict[uuid.UUID, list[GpuHolding]] = defaultdict(list)
    for each in grouped:
        holdings[each["cluster_id"]].append(
            GpuHolding(each["project_id"], each["project__name"], each["preemptible"], each["gpus"])
        )
    return holdings


def limit_pods(workloads: Sequence[Workload], *, in_order: bool = False) -> Sequence[Workload]:
    """Return as many workloads as have MOST_PODS pods together, and at least one.

    Of a workload with many pods only the samples count. One for which there is no room is left out
    for smaller ones behind it, or `in_order` ends it.
    """
    limited: list[Workload] = []
    pods = 0
    for workload in workloads:
        count = MOST_SAMPLES if workload.requested_pods > SAMPLED else workload.requested_pods
        if limited and pods + count > MOST_PODS:
            if in_order:
                break
            continue
        pods += count
        limited.append(workload)
    return limited


PodSample = tuple[Pod, int]
"""A pod, and how many pods it stands for."""


def _load_pods(workloads: Sequence[Workload]) -> Mapping[uuid.UUID, Sequence[PodSample]]:
    """Load the pods of each workload, of many pods samples. At most three queries."""
    counts = _find_samples([each for each in workloads if each.requested_pods > SAMPLED])
    few = [each for each in workloads if each.requested_pods <= SAMPLED]
    rows = [
        *_filter_present(few).order_by("rank", "id")[:MOST_PODS],
        *Pod.objects.filter(pk__in=counts).order_by("rank", "id"),
    ]
    pods_by_workload: dict[uuid.UUID, list[PodSample]] = defaultdict(list)
    for pod in rows:
        pods_by_workload[pod.workload_id].append((pod, counts.get(pod.pk, 1)))
    return pods_by_workload


def _find_samples(workloads: Sequence[Workload]) -> Mapping[int, int]:
    """Return how many pods one of each sort stands for, by its id; the largest sorts first.

    The pods of a role are made of one template, and so ask for the same.
    """
    if not workloads:
        return {}
    pods = _filter_present(workloads).annotate(
        is_placed=ExpressionWrapper(~Q(node=""), output_field=BooleanField())
    )
    sorts = pods.order_by().values("workload", "role", "phase", "status", "is_ready", "is_placed")
    samples = sorts.annotate(sample=Min("id"), count=Count("id")).order_by("-count")
    return dict(samples.values_list("sample", "count")[: MOST_SAMPLES * len(workloads)])


def _filter_present(workloads: Sequence[Workload]) -> "QuerySet[Pod]":
    return Pod.objects.filter(
        workload__in=[each.pk for each in workloads],
        vanished_at=None,
        attempt=F("workload__attempt"),
    ).exclude(role=DATA_WORKER)


def _count_lost_pods(
    workloads: Sequence[Workload], nodes: Mapping[uuid.UUID, Sequence[NodeCapacity]]
) -> Mapping[uuid.UUID, Mapping[str, int]]:
    """Count the unended pods on nodes that are not ready, by workload and node.

    One query where there is such a node, else none.
    """
    lost_nodes = {
        cluster: {node.name for node in capacities if node.loss is not None}
        for cluster, capacities in nodes.items()
    }
    names = set().union(*lost_nodes.values())
    if not names:
        return {}
    pods = _filter_present(workloads).filter(node__in=names, phase__in=("Pending", "Running"))
    grouped = pods.order_by().values_list("workload", "workload__cluster", "node")
    counts: dict[uuid.UUID, dict[str, int]] = defaultdict(dict)
    for workload, cluster, node, count in grouped.annotate(count=Count("id")):
        if node in lost_nodes[cluster]:
            counts[workload][node] = count
    return counts


def _load_events(workloads: Sequence[Workload]) -> Mapping[uuid.UUID, Sequence[Object]]:
    """Load the cluster's events of each workload's attempt as objects, newest first."""
    keys = [each.pk for each in workloads]
    rows = Event.objects.filter(
        workload__in=keys, attempt=F("workload__attempt"), kind=Event.Kind.CLUSTER
    ).order_by("-at", "-id")
    events: dict[uuid.UUID, list[Object]] = defaultdict(list)
    for row in rows[: MOST_EVENTS * len(keys)]:
        events[row.workload_id].append(
            {
                "involvedObject": {"kind": row.subject_kind, "name": row.subject},
                "type": "Warning" if row.is_warning else "Normal",
                "reason": row.reason,
                "message": row.text,
                "lastTimestamp": row.at.isoformat(),
            }
        )
    return events


def _build_queue(workload: Workload, holdings: Sequence[GpuHolding]) -> Object:
    """Build the project's Queue as far as its row tells: quota, limit, and allocation."""
    project_holdings = [each for each in holdings if each.project_id == workload.project_id]
    bounds = {"quota": workload.project.gpu_quota, "limit": workload.project.gpu_limit}
    allocated = sum((each.gpus for each in project_holdings), _NONE)
    fixed = sum((each.gpus for each in project_holdings if not each.preemptible), _NONE)
    return {
        "spec": {
            "resources": {
                "gpu": {name: str(bound) for name, bound in bounds.items() if bound is not None}
            }
        },
        "status": {
            "allocated": {"nvidia.com/gpu": str(allocated)},
            "allocatedNonPreemptible": {"nvidia.com/gpu": str(fixed)},
        },
    }


def _group_holders(
    project_id: int, holdings: Sequence[NodeHolding], visible: frozenset[int] | None
) -> NodeHolders:
    """Return the GPUs that others than this project hold, by node and project.

    Those that may not be named, and pods that are not Muster's, are together under "".
    """
    holders: dict[str, dict[str, Decimal]] = defaultdict(dict)
    for each in holdings:
        if each.project_id != project_id:
            name = each.name if visible is None or each.project_id in visible else ""
            by_name = holders[each.node]
            by_name[name] = by_name.get(name, _NONE) + each.gpus
    return holders


def _load_node_holdings(cluster_id: uuid.UUID) -> Sequence[NodeHolding]:
    """Return the GPUs that are held on each node of a cluster, by project.

    The answer may be CACHE_SECONDS old, as that of the nodes' capacities: it adds up all running
    pods.
    """
    key = f"gpus-held-on-nodes:{cluster_id}"
    holdings: Sequence[NodeHolding] | None = cache.get(key)
    if holdings is None:
        holdings = _compute_node_holdings(cluster_id)
        cache.set(key, holdings, CACHE_SECONDS)
    return holdings


def _compute_node_holdings(cluster_id: uuid.UUID) -> Sequence[NodeHolding]:
    """Add up the GPUs of our pods by node and project, and take others' from the nodes' rows.

    Two queries.
    """
    running = Pod.objects.filter(
        workload__cluster=cluster_id,
        phase__in=("Pending", "Running"),
        vanished_at=None,
        gpus__gt=0,
    ).exclude(node="")
    own = running.order_by().values_list("node", "workload__project", "workload__project__name")
    foreign = Node.objects.filter(cluster=cluster_id, used_gpus__gt=0)
    return [
        *(NodeHolding(*each) for each in own.annotate(total=Sum("gpus"))),
        *(
            NodeHolding(name, None, "", gpus)
            for name, gpus in foreign.values_list("name", "used_gpus")
        ),
    ]
