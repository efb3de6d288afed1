"""The celery steps about clusters: whether they answer, what their nodes offer, and whether their
projects are as they should be.
"""

import logging
import random
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import ROUND_DOWN, Decimal

from django.db import IntegrityError, transaction
from django.db.models.functions import Coalesce
from django.utils import timezone

from clusters import (
    cluster_checks,
    connections,
    drift,
    nodes,
    project_provisioning,
    project_removal,
)
from clusters.kube import discovery
from clusters.kube.client import Client
from clusters.kube.errors import KubeError, Rejected, Unauthorized, Unavailable
from clusters.models import Cluster, Node
from clusters.nodes import ObservedNode
from clusters.thread_shares import SlowTargets, ThreadShare
from console.celery import step
from console.chunks import split_chunks
from console.encryption import Unreadable
from projects.models import Project

log = logging.getLogger(__name__)

MAX_PROJECTS = 100
"""Projects that one heartbeat queues for provisioning, and for removal, at most."""
BUSY_SECONDS = 2.0
"""After how long a removal is tried again that no thread was free for."""
REFUSAL_RECHECKS = 3
REFUSAL_RECHECK_SECONDS = 2.0
"""How often, and after how many seconds each, a cluster that refuses everything (403) is asked
again before that is shown. An API server that has just started does so until its rules are loaded.
"""

UNREADABLE = (
    "the stored credentials cannot be read with the keys of MUSTER_ENCRYPTION_KEYS; put the key "
    "back that they were stored with, or save them anew"
)

_MOST_GPUS = Decimal(10**7)
_MOST_CPU = Decimal(10**10)
_MOST_MEMORY = Decimal(2**62)

_running_lock = threading.Lock()
_running: set[tuple[str, str]] = set()
_silent_clusters = ThreadShare()
_slow_clusters = SlowTargets()
"""Those whose projects took long to write a short while ago."""


@contextmanager
def claim_task(work: str, target: str) -> Iterator[bool]:
    """Yield whether this thread is the only one of the process that does `work` to `target`.

    A cluster that hangs so costs one thread, and not all.
    """
    key = (work, target)
    with _running_lock:
        is_claimed = key not in _running
        _running.add(key)
    try:
        yield is_claimed
    finally:
        if is_claimed:
            with _running_lock:
                _running.discard(key)


@contextmanager
def claim_silent_thread(cluster: Cluster) -> Iterator[bool]:
    """Yield whether this thread may ask the cluster, which may not be among those that answer.

    Where too many threads wait for such clusters already, the next sweep requests it again.
    """
    if cluster.unreachable_since is None:
        yield True
    else:
        with _silent_clusters.claim() as is_free:
            yield is_free


@contextmanager
def claim_project_thread(project: Project) -> Iterator[bool]:
    """Yield whether this thread may write the objects of a project, or remove them.

    Where the cluster answers but a webhook of it hangs, each request takes as long as a client
    waits.
    """
    with claim_silent_thread(project.cluster) as may_ask:
        if not may_ask:
            yield False
            return
        with _slow_clusters.claim(project.cluster_id) as may_write:
            yield may_write


@step
def heartbeats() -> None:
    """Queue the heartbeat of every cluster in use."""
    for cluster_id in Cluster.objects.in_use().values_list("pk", flat=True):
        heartbeat.enqueue(str(cluster_id))


@step
def heartbeat(cluster_id: str, rechecks: int = 0) -> None:
    """Update the version and nodes of a cluster, or since when and why it does not answer.

    Where the cluster answers, its projects that differ from their rows are queued for provisioning,
    and deleted ones for removal. `rechecks` is how often it refused everything in a row.
    """
    failure: KubeError | None = None
    with claim_task("heartbeat", cluster_id) as is_claimed:
        cluster = _load_cluster(cluster_id) if is_claimed else None
        if cluster is None:
            return
        with claim_silent_thread(cluster) as may_ask:
            if not may_ask:
                return
            try:
                client, server_version, survey = _ask_cluster(cluster)
            except KubeError as error:
                failure = error
    if not cluster_checks.has_same_credentials(cluster):
        # What the old ones found says nothing of where the new ones lead. The heartbeat that the
        # change of credentials asked for may have found this one still at work.
        heartbeat.enqueue(cluster_id)
        return
    if failure is not None:
        if is_forbidden(failure) and rechecks < REFUSAL_RECHECKS:
            heartbeat.enqueue_after(REFUSAL_RECHECK_SECONDS, cluster_id, rechecks + 1)
        else:
            record_failure(cluster.pk, failure)
        return
    record_answer(cluster.pk, server_version.version)
    _save_nodes(cluster, survey)
    with claim_task("repair", cluster_id) as may_repair:
        # Where the comparison takes longer than a heartbeat, the one that is at work is enough.
        if may_repair:
            _repair_projects(client, cluster)
    if cluster_checks.is_review_due(cluster):
        check.enqueue(cluster_id)


def _load_cluster(cluster_id: str) -> Cluster | None:
    """Load a cluster that is in use; None, once that is recorded, where its credentials cannot be
    read.
    """
    try:
        return Cluster.objects.in_use().filter(pk=cluster_id).first()
    except Unreadable:
        record_failure(uuid.UUID(cluster_id), Unauthorized(UNREADABLE))
        return None


def _ask_cluster(
    cluster: Cluster,
) -> tuple[Client, discovery.ServerVersion, nodes.NodeSurvey]:
    """Return what a heartbeat learns from the cluster. Raises KubeError."""
    client = connections.get_client(cluster)
    server_version = discovery.fetch_server_version(client)
    if cluster_checks.is_probe_due(cluster):
        cluster_checks.update_capabilities(client, cluster, server_version)
    pool_keys = frozenset(cluster.node_pools.values_list("label_key", flat=True))
    return client, server_version, nodes.fetch_survey(client, pool_keys)


@step
def check(cluster_id: str) -> None:
    """Update what a cluster can do and what we may do there. A requested check is then done,
    whatever its result.
    """
    with claim_task("check", cluster_id) as is_claimed:
        cluster = _load_cluster(cluster_id) if is_claimed else None
        if cluster is None:
            return
        try:
            client = connections.get_client(cluster)
            cluster_checks.update_capabilities(client, cluster)
            cluster_checks.update_permissions(client, cluster)
        except KubeError as error:
            if cluster_checks.has_same_credentials(cluster):
                record_failure(cluster.pk, error)
        finally:
            Cluster.objects.filter(pk=cluster_id).update(check_requested_at=None)


@step
def provision(project_id: int) -> None:
    """Make the namespace and Queues of a project as its row says, or store the reason in
    `sync_error`.

    Where too many threads wait for such clusters already, a later heartbeat finds the difference.
    """
    project = (
        Project.objects.there()
        .select_related("department", "cluster")
        .filter(pk=project_id)
        .first()
    )
    if project is None:
        return
    with claim_project_thread(project) as may_write:
        if may_write:
            project_provisioning.provision_project(project)


@step
def remove_deleted_project(project_id: int, looks: int = 0) -> None:
    """Delete the workloads of a deleted project, then its objects in its cluster; `sync_error` says
    what is still there.

    While its workloads are being deleted it is checked `looks` more times. What remains then, or
    with a cluster that is away, or after a kill, is left to the heartbeat.
    """
    with claim_task("remove-deleted-project", str(project_id)) as is_claimed:
        project = (
            Project.objects.leaving()
            .select_related("department", "cluster")
            .filter(pk=project_id)
            .first()
            if is_claimed
            else None
        )
        if project is None:
            return
        with claim_project_thread(project) as may_write:
            seconds = project_removal.remove_project(project) if may_write else BUSY_SECONDS
        if seconds and looks > 0:
            remove_deleted_project.enqueue_after(seconds, project_id, looks - 1)


def _repair_projects(client: Client, cluster: Cluster) -> None:
    """Queue what puts the cluster's projects right again. What cannot be compared now is compared
    at the next heartbeat.
    """
    leaving = set(Project.objects.leaving().filter(cluster=cluster).values_list("pk", flat=True))
    try:
        differences = drift.find_drift(client, cluster)
        drift.apply_drift(client, differences)
    except (KubeError, Unreadable) as error:
        log.warning("the projects of cluster %s could not be compared: %s", cluster.pk, error)
        differences = drift.Drift()
    for project_id in _choose_projects(differences.due_projects):
        provision.enqueue(project_id)
    # A provisioning that ran beside the removal may have written objects after it: the project is
    # removed again.
    leftover = {each for each in differences.leftover_projects if _begin_removal_again(each)}
    for project_id in _choose_projects(leaving | leftover):
        remove_deleted_project.enqueue(project_id)


def _choose_projects(project_ids: set[int]) -> list[int]:
    """Return those to queue at once: at random, so that what fails each time is never first for
    good.
    """
    return random.sample(sorted(project_ids), min(len(project_ids), MAX_PROJECTS))


def _begin_removal_again(project_id: int) -> bool:
    """Mark a removed project as leaving; False where another one has its namespace or Queue now."""
    try:
        with transaction.atomic():
            Project.objects.filter(pk=project_id).update(removed_at=None)
    except IntegrityError:
        log.warning("project %s left objects that another project has taken over", project_id)
        return False
    return True


def record_answer(cluster_id: uuid.UUID, version: str = "") -> None:
    """Record that a cluster answered just now."""
    fields = {"version": version[:64]} if version else {}
    Cluster.objects.filter(pk=cluster_id).update(
        last_seen_at=timezone.now(), unreachable_since=None, trouble="", **fields
    )


def is_forbidden(error: KubeError) -> bool:
    """Return whether the credentials may not do it, or not yet: see REFUSAL_RECHECKS."""
    return isinstance(error, Rejected) and error.status == 403


def record_failure(cluster_id: uuid.UUID, error: KubeError) -> None:
    """Record why a cluster could not be asked; `unreachable_since` keeps the moment of the first
    failure.
    """
    rows = Cluster.objects.filter(pk=cluster_id)
    if not isinstance(error, Unavailable | Unauthorized):
        # It answers, if only to refuse this.
        rows.update(last_seen_at=timezone.now(), unreachable_since=None, trouble=error.message)
    elif isinstance(error, Unauthorized) or error.retry_after is None:
        # With `retry_after` the cluster, or our own rate limiter, only asks to wait: the cluster
        # is there.
        rows.update(
            unreachable_since=Coalesce("unreachable_since", timezone.now()), trouble=error.message
        )
    log.warning("cluster %s: %s (%s)", cluster_id, error.message, error.detail)


def _save_nodes(cluster: Cluster, survey: nodes.NodeSurvey) -> None:
    """Update the rows of the cluster's nodes from the survey, and delete those of nodes that are
    gone.
    """
    now = timezone.now()
    rows = [_build_node(cluster, observed) for observed in survey.nodes]
    for row in rows:
        row.seen_at = now
    present_names = {row.name for row in rows} | survey.unreadable
    fields = [
        each.name
        for each in Node._meta.concrete_fields
        if each.name not in ("id", "cluster", "name")
    ]
    with transaction.atomic():
        # Only nodes that the survey neither read nor failed to read are gone.
        keys_by_name = dict(Node.objects.filter(cluster=cluster).values_list("name", "pk"))
        removed_keys = [pk for name, pk in keys_by_name.items() if name not in present_names]
        for part in split_chunks(removed_keys):
            Node.objects.filter(pk__in=part).delete()
        Node.objects.bulk_create(
            rows,
            batch_size=500,
            update_conflicts=True,
            update_fields=fields,
            unique_fields=["cluster", "name"],
        )


def _build_node(cluster: Cluster, observed: ObservedNode) -> Node:
    return Node(
        cluster=cluster,
        name=observed.name,
        is_ready=observed.is_ready,
        is_schedulable=observed.is_schedulable,
        trouble=observed.trouble,
        gpu_type=observed.gpu_type,
        gpus=_round_down(observed.allocatable.gpus, _MOST_GPUS, "0.01"),
        cpu=_round_down(observed.allocatable.cpu, _MOST_CPU, "0.001"),
        memory=int(min(observed.allocatable.memory, _MOST_MEMORY)),
        used_gpus=_round_down(observed.foreign_use.gpus, _MOST_GPUS, "0.01"),
        used_cpu=_round_down(observed.foreign_use.cpu, _MOST_CPU, "0.001"),
        used_memory=int(min(observed.foreign_use.memory, _MOST_MEMORY)),
        used_pods=observed.foreign_use.pods,
        gpus_unhealthy=_round_down(observed.gpus_unhealthy, _MOST_GPUS, "0.01"),
        gpu_memory=int(min(observed.device_memory, _MOST_MEMORY)),
        pods=observed.pod_capacity,
        conditions=observed.conditions,
        taints=observed.taints,
        roles=observed.roles,
        address=observed.address,
        about=observed.system_info,
        labels=observed.labels,
    )


def _round_down(amount: Decimal, most: Decimal, step: str) -> Decimal:
    return min(amount, most).quantize(Decimal(step), rounding=ROUND_DOWN)
