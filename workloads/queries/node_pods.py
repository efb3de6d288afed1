"""Our pods on a cluster's nodes."""

import uuid

from django.db.models import Count, QuerySet

from clusters.seams import NodePod, VisiblePods
from projects.models import User
from projects.querysets import list_visible_project_ids
from workloads.diagnosis.node_capacity import calculate_demand
from workloads.models import Pod

MOST_PODS = 100
"""Pods of one node that are listed."""


def count_pods_by_node(cluster_id: uuid.UUID) -> dict[str, int]:
    """Count our pods that hold something on each node.

    One query.
    """
    return dict(_filter_running(cluster_id).order_by().values_list("node").annotate(Count("id")))


def load_node_pods(cluster_id: uuid.UUID, node: str, user: User) -> VisiblePods:
    """Load our pods on a node, by name.

    Two queries for any user, a third where there are more than are listed.
    """
    running = _filter_running(cluster_id).filter(node=node)
    visible = list_visible_project_ids(user)
    visible_pods = running if visible is None else running.filter(workload__project__in=visible)
    rows = visible_pods.select_related("workload__project").defer(
        "workload__spec",
        "workload__job",
        "workload__pod_group",
        "workload__reason",
        "workload__trouble",
    )
    node_pods = [_build_node_pod(pod) for pod in rows.order_by("name")[:MOST_PODS]]
    visible_count = len(node_pods) if len(node_pods) < MOST_PODS else visible_pods.count()
    return VisiblePods(
        node_pods, running.count() - visible_count, more=visible_count - len(node_pods)
    )


def _filter_running(cluster_id: uuid.UUID) -> "QuerySet[Pod]":
    unfinished = Pod.objects.filter(
        workload__cluster_id=cluster_id, phase__in=("Pending", "Running"), vanished_at=None
    )
    return unfinished.exclude(node="")


def _build_node_pod(pod: Pod) -> NodePod:
    asks = calculate_demand(pod.data)
    return NodePod(
        name=pod.name,
        status=pod.status or pod.phase,
        project=pod.workload.project.name,
        workload=pod.workload.name,
        workload_id=pod.workload_id,
        gpus=pod.gpus or asks.gpus,
        cpu=asks.cpu,
        memory=int(asks.memory),
        created_at=pod.created_at,
    )
