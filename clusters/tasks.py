"""The steps about clusters themselves: are they there, what do they offer, and is every project
what it should be in its own.
"""

import logging
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import ROUND_DOWN, Decimal
from typing import TypeVar

from django.db import transaction
from django.db.models.functions import Coalesce
from django.utils import timezone

from clusters import cluster_checks, connections, drift, nodes, project_removal
from clusters import project_provisioning as provisioning
from clusters.kube import discovery
from clusters.kube.client import Client
from clusters.kube.errors import KubeError, Unauthorized, Unavailable
from clusters.models import Cluster, Node
from clusters.nodes import ObservedNode
from console.celery import step
from console.encryption import Unreadable
from projects.models import Project

log = logging.getLogger(__name__)

MAX_PROJECTS = 100
"""Projects that one heartbeat asks to be provisioned, and to be removed, at most."""

_MOST_GPUS = Decimal(10**7)
_MOST_CPU = Decimal(10**10)
_MOST_MEMORY = Decimal(2**62)

_running_lock = threading.Lock()
_running: set[tuple[str, str]] = set()


@contextmanager
def claim_task(work: str, target: str) -> Iterator[bool]:
    """Whether this thread is the only one of the process that does `what` to `which`: a cluster
    that hangs costs one thread, not all.
    """
    key = (work, target)
    with _running_lock:
        mine = key not in _running
        _running.add(key)
    try:
        yield mine
    finally:
        if mine:
            with _running_lock:
                _running.discard(key)


@step
def heartbeats() -> None:
    """Ask for the heartbeat of every cluster that is in use."""
    for cluster_id in Cluster.objects.in_use().values_list("pk", flat=True):
        heartbeat.enqueue(str(cluster_id))


@step
def heartbeat(cluster_id: str) -> None:
    """Whatever was known of a cluster -> its version and nodes as of now, or since when and why it
    does not answer.

    Where the cluster answers, its projects that are not as they should be are asked to be
    provisioned, and those that have left to be removed.
    """
    with claim_task("heartbeat", cluster_id) as mine:
        cluster = Cluster.objects.in_use().filter(pk=cluster_id).first() if mine else None
        if cluster is None:
            return
        try:
            client = connections.get_client(cluster)
            about = discovery.fetch_server_version(client)
            if cluster_checks.is_probe_due(cluster):
                cluster_checks.update_capabilities(client, cluster, about)
            survey = nodes.fetch_survey(client)
        except KubeError as error:
            record_failure(cluster.pk, error)
            return
    record_answer(cluster.pk, about.version)
    _save_nodes(cluster, survey)
    _repair_projects(client, cluster)
    if cluster_checks.is_review_due(cluster):
        check.enqueue(cluster_id)


@step
def check(cluster_id: str) -> None:
    """Whatever was known of what a cluster can do and lets us do -> as of now; what was asked for
    is then done, however it went.
    """
    with claim_task("check", cluster_id) as mine:
        cluster = Cluster.objects.in_use().filter(pk=cluster_id).first() if mine else None
        if cluster is None:
            return
        try:
            client = connections.get_client(cluster)
            cluster_checks.update_capabilities(client, cluster)
            cluster_checks.update_permissions(client, cluster)
        except KubeError as error:
            record_failure(cluster.pk, error)
        finally:
            Cluster.objects.filter(pk=cluster_id).update(check_asked_at=None)


@step
def provision(project_id: int) -> None:
    """Whatever a project is in its cluster -> its namespace and Queues as its row says, or the
    reason in `sync_error`.
    """
    project = (
        Project.objects.there()
        .select_related("department", "cluster")
        .filter(pk=project_id)
        .first()
    )
    if project is not None:
        provisioning.provision_project(project)


@step
def leave(project_id: int, looks: int = 0) -> None:
    """A project that has left -> its workloads deleted, then nothing of it in its cluster, or in
    `sync_error` what is still there.

    While its workloads go it is looked at so many times more; what is left then, or by a cluster
    that is away, or by a kill, is the heartbeat's to ask for.
    """
    with claim_task("leave", str(project_id)) as mine:
        project = (
            Project.objects.leaving()
            .select_related("department", "cluster")
            .filter(pk=project_id)
            .first()
            if mine
            else None
        )
        if project is not None and (again := project_removal.remove_project(project)) and looks > 0:
            leave.enqueue_after(again, project_id, looks - 1)


def _repair_projects(client: Client, cluster: Cluster) -> None:
    """Ask for what makes the cluster's projects right again; a thing that cannot be looked at now
    is looked at next time.
    """
    gone = set(
        Project.objects.leaving()
        .filter(cluster=cluster)
        .values_list("pk", flat=True)[:MAX_PROJECTS]
    )
    try:
        found = drift.find_drift(client, cluster)
        drift.apply_drift(client, found)
    except (KubeError, Unreadable) as error:
        log.warning("the projects of cluster %s could not be compared: %s", cluster.pk, error)
        found = drift.Drift()
    for project_id in sorted(found.due_projects)[:MAX_PROJECTS]:
        provision.enqueue(project_id)
    # What was written while it was being removed is there again.
    Project.objects.filter(pk__in=found.leftover_projects).update(removed_at=None)
    for project_id in sorted(gone | found.leftover_projects)[:MAX_PROJECTS]:
        leave.enqueue(project_id)


def record_answer(cluster_id: uuid.UUID, version: str = "") -> None:
    """Record that a cluster answered just now."""
    known = {"version": version[:64]} if version else {}
    Cluster.objects.filter(pk=cluster_id).update(
        last_seen_at=timezone.now(), unreachable_since=None, trouble="", **known
    )


def record_failure(cluster_id: uuid.UUID, error: KubeError) -> None:
    """Record why a cluster could not be asked. Since when is kept from the first failure on."""
    rows = Cluster.objects.filter(pk=cluster_id)
    if not isinstance(error, Unavailable | Unauthorized):
        # It answers, if only to refuse this.
        rows.update(last_seen_at=timezone.now(), unreachable_since=None, trouble=error.message)
    elif isinstance(error, Unauthorized) or error.retry_after is None:
        # One that only asks for patience, as our own pace does, is there.
        rows.update(
            unreachable_since=Coalesce("unreachable_since", timezone.now()), trouble=error.message
        )
    log.warning("cluster %s: %s (%s)", cluster_id, error.message, error.detail)


def _save_nodes(cluster: Cluster, survey: nodes.NodeSurvey) -> None:
    """The rows of the cluster's nodes become what was seen; those of nodes that are gone go."""
    now = timezone.now()
    rows = [_build_node(cluster, seen) for seen in survey.nodes]
    for row in rows:
        row.seen_at = now
    kept = {row.name for row in rows} | survey.unreadable
    fields = [
        each.name
        for each in Node._meta.concrete_fields
        if each.name not in ("id", "cluster", "name")
    ]
    with transaction.atomic():
        known = dict(Node.objects.filter(cluster=cluster).values_list("name", "pk"))
        gone = [pk for name, pk in known.items() if name not in kept]
        for part in split_chunks(gone):
            Node.objects.filter(pk__in=part).delete()
        Node.objects.bulk_create(
            rows,
            batch_size=500,
            update_conflicts=True,
            update_fields=fields,
            unique_fields=["cluster", "name"],
        )


def _build_node(cluster: Cluster, seen: ObservedNode) -> Node:
    return Node(
        cluster=cluster,
        name=seen.name,
        is_ready=seen.is_ready,
        is_schedulable=seen.is_schedulable,
        trouble=seen.trouble,
        gpu_type=seen.gpu_type,
        gpus=_round_down(seen.allocatable.gpus, _MOST_GPUS, "0.01"),
        cpu=_round_down(seen.allocatable.cpu, _MOST_CPU, "0.001"),
        memory=int(min(seen.allocatable.memory, _MOST_MEMORY)),
        used_gpus=_round_down(seen.foreign_use.gpus, _MOST_GPUS, "0.01"),
        used_cpu=_round_down(seen.foreign_use.cpu, _MOST_CPU, "0.001"),
        used_memory=int(min(seen.foreign_use.memory, _MOST_MEMORY)),
        used_pods=seen.foreign_use.pods,
        gpus_unhealthy=_round_down(seen.gpus_unhealthy, _MOST_GPUS, "0.01"),
        gpu_memory=int(min(seen.device_memory, _MOST_MEMORY)),
        pods=seen.pod_capacity,
        conditions=seen.conditions,
        taints=seen.taints,
        roles=seen.roles,
        address=seen.address,
        about=seen.system_info,
        labels=seen.labels,
    )


def _round_down(amount: Decimal, most: Decimal, step: str) -> Decimal:
    return min(amount, most).quantize(Decimal(step), rounding=ROUND_DOWN)


T = TypeVar("T")


def split_chunks(items: list[T], size: int = 500) -> Iterator[list[T]]:
    """The items in parts that a database takes at once."""
    return (items[start : start + size] for start in range(0, len(items), size))
