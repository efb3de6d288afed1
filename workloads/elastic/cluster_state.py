"""The state of a cluster, out of its rows, as the package `scheduling` decides on it."""

import logging
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import (
    Case,
    Count,
    F,
    FilteredRelation,
    IntegerField,
    Q,
    QuerySet,
    Value,
    When,
    Window,
)
from django.db.models.functions import Coalesce, DenseRank

from clusters.job_kinds import JOB_KINDS
from clusters.models import Cluster
from clusters.models import Node as NodeRow
from clusters.project_manifests import QUEUE_PRIORITY, department_queue_name
from console.chunks import split_chunks
from projects.models import Project
from projects.shares import Share, Shares, derive_parent_shares
from scheduling import (
    CPU,
    GPU,
    MEMORY,
    Bound,
    ClusterState,
    Gang,
    Node,
    Pod,
    Preemptibility,
    Queue,
)
from workloads.diagnosis.node_capacity import NodeCapacity, ResourceAmounts
from workloads.elastic.node_devices import NodeDevices
from workloads.elastic.pod_shapes import ShapeBuilder, to_number
from workloads.kube_objects import (
    DATA_WORKER,
    Object,
    get_data_job_name,
    int_or_zero,
    nested_dict,
)
from workloads.models import Pod as PodRow
from workloads.models import Workload
from workloads.pod_counts import WITHOUT_NODE, Standing
from workloads.runtime_limits import load_unbroken_starts
from workloads.specs import Priority

log = logging.getLogger(__name__)

MOST_NODES = 5_000
MOST_PODS = 50_000
MOST_EXAMPLES = 2_000
"""Nodes, pods, and kinds of waiting pods of one cluster that are read."""
MOST_DEVICES = 1024
"""Devices of one node that count: each is looked at alone, and a node may claim any number."""
USUAL_PRIORITY = 50
"""What KAI takes for a workload that names no priority (`train`)."""


_told_nodes: set[tuple[uuid.UUID, str]] = set()
"""Nodes of which this process has logged that they claim too many devices."""


class TooLarge(Exception):
    """The cluster has more than is read of one."""


class LoadedState(NamedTuple):
    """The state of a cluster, as far as it is read.

    `cut_projects` are the ids of the projects of whose workloads that wait only the first in line
    are in it, because the cluster has more than MOST_PODS pods. Pods with a node are all in it.
    `unread_projects` are those of them of whose line nothing is in it.
    """

    state: ClusterState
    cut_projects: frozenset[int] = frozenset()
    unread_projects: frozenset[int] = frozenset()


class _PodValues(NamedTuple):
    id: int
    uid: str
    workload_id: uuid.UUID
    workload__project: int
    role: str
    rank: int | None
    node: str
    standing: str
    gpus: Decimal | None
    cpu: Decimal | None
    memory: int | None


class _LoadedPods(NamedTuple):
    pods: Sequence[_PodValues]
    cut_projects: frozenset[int] = frozenset()
    unread_projects: frozenset[int] = frozenset()


PORT_FIELDS = ("job_kind", "spec__setup__security__host_network")
"""What tells the port that a workload's pods take of their nodes, as `find_host_port` takes it."""
_GANG_FIELDS = (
    *("id", "project__queue", "priority", "preemptible", "created_at", "started_at"),
    *("requested_pods", "framework", "pod_group", "current_attempt__requested_at", *PORT_FIELDS),
)


def load_cluster_state(cluster: Cluster, now: datetime) -> LoadedState:
    """Load the nodes, queues and unfinished pods of a cluster.

    Five queries, and one more for some hundreds of workloads; two more where some gave way before,
    four where it has more than MOST_PODS pods.

    Where nothing enforces quotas, nothing takes anything back either: all work counts as such that
    keeps what it has, so that nobody gets more than the quota of their project. Raises TooLarge.
    """
    rows = load_open_nodes(cluster)
    if len(rows) > MOST_NODES:
        raise TooLarge
    loaded = _load_pods(cluster.pk)
    nodes = {row.name: build_node(row) for row in rows}
    has_kai = cluster.can.has_kai
    state = ClusterState(
        now=now.timestamp(),
        nodes=list(nodes.values()),
        queues=load_queues(cluster),
        gangs=_build_gangs(
            loaded.pods,
            ShapeBuilder(build_capacities(rows)),
            NodeDevices(nodes),
            load_unbroken_starts(cluster.pk, now),
            has_kai=has_kai,
        ),
    )
    return LoadedState(state, loaded.cut_projects, loaded.unread_projects)


def load_open_nodes(cluster: Cluster) -> Sequence[NodeRow]:
    """Load the nodes that take pods now, one more than is read of a cluster at most. One query."""
    rows = NodeRow.objects.filter(cluster=cluster, is_ready=True, is_schedulable=True)
    return list(rows[: MOST_NODES + 1])


def build_capacities(rows: Iterable[NodeRow]) -> Sequence[NodeCapacity]:
    """Return the nodes as pods choose them, by labels and taints."""
    return [
        NodeCapacity(
            row.name,
            ResourceAmounts(),
            ResourceAmounts(),
            row.is_ready and row.is_schedulable,
            {str(key): str(value) for key, value in row.labels.items()},
            row.taints,
        )
        for row in rows
    ]


def build_node(row: NodeRow) -> Node:
    """Build a node with what it has beside the pods of others."""
    offered = {
        GPU: _count_devices(row),
        CPU: to_number(max(Decimal(0), row.cpu - row.used_cpu)),
        MEMORY: max(0, row.memory - row.used_memory),
    }
    return Node(
        row.name,
        {name: amount for name, amount in offered.items() if amount},
        row.gpu_memory or None,
        max(0, row.pods - row.used_pods) if row.pods else None,
    )


def _count_devices(row: NodeRow) -> int:
    """Return how many devices a node has beside the pods of others; log once if not all count."""
    count = int(max(Decimal(0), row.gpus - row.used_gpus))
    key = (row.cluster_id, row.name)
    if count > MOST_DEVICES and key not in _told_nodes and len(_told_nodes) < MOST_NODES:
        _told_nodes.add(key)
        log.warning(
            "node %s of cluster %s claims %d GPUs: elastic workloads count %d of them",
            *(row.name, row.cluster_id, count, MOST_DEVICES),
        )
    return min(count, MOST_DEVICES)


def load_queues(cluster: Cluster) -> Sequence[Queue]:
    """Load the queues of the cluster's projects, and above them those of departments. One query."""
    return build_queues(load_queue_projects(cluster))


def load_queue_projects(cluster: Cluster) -> Sequence[Project]:
    """Load the projects of a cluster that have a queue there, with their departments. One query."""
    rows = Project.objects.filter(cluster=cluster, removed_at=None)
    return list(rows.select_related("department"))


def build_queues(projects: Iterable[Project]) -> Sequence[Queue]:
    """Build the queues of a cluster's projects, and above them those of their departments."""
    members: dict[int, list[Project]] = defaultdict(list)
    for project in projects:
        members[project.department_id].append(project)
    queues = []
    for of_one in members.values():
        department = of_one[0].department
        name = department_queue_name(department)
        project_shares = [each.shares for each in of_one if each.deleted_at is None]
        shares = derive_parent_shares(department.shares, project_shares)
        queues.append(_build_queue(name, "", department.name, shares))
        queues += [_build_queue(each.queue, name, each.name, each.shares) for each in of_one]
    return queues


def _build_queue(name: str, parent: str, title: str, shares: Shares) -> Queue:
    bounds = {GPU: shares.gpu, CPU: shares.cpu, MEMORY: shares.memory}
    return Queue(
        name,
        parent,
        {resource: _build_bound(share) for resource, share in bounds.items()},
        QUEUE_PRIORITY,
        title,
    )


def _build_bound(share: Share) -> Bound:
    return Bound(
        None if share.quota is None else to_number(share.quota),
        None if share.limit is None else to_number(share.limit),
        to_number(share.weight),
    )


def _load_pods(cluster_id: uuid.UUID) -> _LoadedPods:
    """Load the unended pods of a cluster, or of too many those that count most.

    Raises TooLarge where too many have a node: those are never cut, for they take room.
    """
    rows = PodRow.objects.filter(
        workload__cluster=cluster_id, phase__in=("Pending", "Running"), vanished_at=None
    )
    pods = _read_pods(rows)
    if len(pods) <= MOST_PODS:
        return _LoadedPods(pods)
    waiting, placed = rows.filter(node="").order_by(), rows.exclude(node="")
    counts = dict(waiting.values_list("workload__project").annotate(Count("pk")))
    share = _find_share(counts.values(), max(0, MOST_PODS - placed.count()))
    # As much as each might have if nothing had a node: no more than MOST_PODS together.
    most = _find_share(counts.values(), MOST_PODS)
    first = _read_pods(_select_first_in_line(waiting, placed, share, most))
    # Last, so that a pod that gets its node meanwhile is not missed.
    placed_pods = _read_pods(placed)
    if len(placed_pods) > MOST_PODS:
        raise TooLarge
    by_id = {pod.id: pod for pod in (*first, *placed_pods)}
    read_counts = Counter(pod.workload__project for pod in first)
    cut = frozenset(project for project, count in counts.items() if count > read_counts[project])
    begun = {pod.workload_id for pod in placed_pods}
    in_line = {pod.workload__project for pod in first if pod.workload_id not in begun}
    pods = sorted(by_id.values(), key=lambda pod: (pod.workload_id, pod.id))
    return _LoadedPods(pods, cut, cut - in_line)


def _select_first_in_line(
    waiting: "QuerySet[PodRow]", placed: "QuerySet[PodRow]", share: int, most: int
) -> "QuerySet[PodRow]":
    """Select the pods that wait of the workloads that are first in line in their projects.

    A project has `share` of them, and up to `most` for the gangs of which some pods have a node and
    for the first workload in line.
    """
    current = FilteredRelation(
        "workload__attempts", condition=Q(workload__attempts__number=F("workload__attempt"))
    )
    waiting = waiting.alias(
        current_attempt=current,
        # Not Exists: SQLite would look for each pod through all those with a node.
        has_begun=Case(When(workload__in=placed.values("workload"), then=1), default=0),
        priority=build_priority_case("workload__priority"),
        asked_at=Coalesce("current_attempt__requested_at", "workload__created_at"),
    )
    # As `scheduling` orders gangs. All pods of a workload are equal in it, so that none is cut in
    # two.
    line = [F("priority").desc(), F("asked_at").asc(), F("workload").asc()]
    waiting = waiting.alias(
        sum_so_far=Window(Count("pk"), ["workload__project"], [F("has_begun").desc(), *line]),
        place=Window(DenseRank(), ["workload__project", "has_begun"], line),
    )
    is_foremost = Q(has_begun=1) | Q(place=1)
    return waiting.filter(Q(sum_so_far__lte=share) | Q(is_foremost, sum_so_far__lte=most))


def _read_pods(rows: "QuerySet[PodRow]") -> Sequence[_PodValues]:
    """Read pods by workload, one more than is read of a cluster at most. One query."""
    values = rows.order_by("workload_id", "id").values_list(*_PodValues._fields)
    return [_PodValues(*each) for each in values[: MOST_PODS + 1]]


def _find_share(counts: Iterable[int], room: int) -> int:
    """Return how many each may have at most, so that all have room: who has few keeps them."""
    ordered = sorted(counts)
    share = 0
    for index, count in enumerate(ordered):
        share = room // (len(ordered) - index)
        if count > share:
            break
        room -= count
    return share


def _build_gangs(
    pods: Sequence[_PodValues],
    shapes: ShapeBuilder,
    devices: NodeDevices,
    unbroken_starts: Mapping[uuid.UUID, datetime],
    *,
    has_kai: bool,
) -> Sequence[Gang]:
    """Build a gang of each workload's pods, and one of its data workers.

    A query for some hundreds of them, and one more.
    """
    by_workload: dict[uuid.UUID, dict[bool, list[_PodValues]]] = {}
    for pod in pods:
        parts = by_workload.setdefault(pod.workload_id, {})
        parts.setdefault(pod.role == DATA_WORKER, []).append(pod)
    examples = load_pod_specs(pods)
    return [
        _build_gang(
            each,
            _build_pods(each, members, examples, shapes, devices, is_of_data=is_of_data),
            unbroken_starts.get(each["id"], each["started_at"]),
            has_kai=has_kai,
            is_of_data=is_of_data,
        )
        for keys in split_chunks(list(by_workload))
        for each in _select_gangs(keys).values(*_GANG_FIELDS)
        for is_of_data, members in by_workload[each["id"]].items()
    ]


def _select_gangs(keys: Sequence[uuid.UUID]) -> "QuerySet[Workload]":
    """Select workloads with their current attempts, in no order."""
    current = FilteredRelation("attempts", condition=Q(attempts__number=F("attempt")))
    rows = Workload.objects.filter(pk__in=keys).order_by()
    selected: QuerySet[Workload] = rows.alias(current_attempt=current)
    return selected


def load_pod_specs(pods: Sequence[_PodValues]) -> Mapping[tuple[uuid.UUID, str], Object]:
    """Load the specs of waiting pods, one of each workload and role: they have one template.

    One query.
    """
    firsts: dict[tuple[uuid.UUID, str], int] = {}
    for pod in pods:
        if pod.standing in WITHOUT_NODE and len(firsts) < MOST_EXAMPLES:
            firsts.setdefault((pod.workload_id, pod.role), pod.id)
    keys = {pk: key for key, pk in firsts.items()}
    rows = PodRow.objects.filter(pk__in=list(keys)).values_list("pk", "data")
    return {keys[pk]: nested_dict(data, "spec") for pk, data in rows}


def _build_pods(
    workload: Mapping[str, Any],
    pods: Sequence[_PodValues],
    examples: Mapping[tuple[uuid.UUID, str], Object],
    shapes: ShapeBuilder,
    devices: NodeDevices,
    *,
    is_of_data: bool,
) -> Sequence[Pod]:
    """Build the pods of a workload's gang; data workers are never on the host's network."""
    host_port = None if is_of_data else find_host_port(*(workload[name] for name in PORT_FIELDS))
    return [_build_pod(pod, examples, shapes, devices, host_port) for pod in pods]


def _build_pod(
    pod: _PodValues,
    examples: Mapping[tuple[uuid.UUID, str], Object],
    shapes: ShapeBuilder,
    devices: NodeDevices,
    host_port: int | None,
) -> Pod:
    spec = None if pod.node else examples.get((pod.workload_id, pod.role), {})
    shape = shapes.build(pod.gpus, pod.cpu, pod.memory, spec, host_port)
    return Pod(
        pod.uid,
        shape,
        pod.rank or 0,
        pod.node,
        devices.take(pod.node, shape) if pod.node else (),
        is_leaving=pod.standing == Standing.ENDING,
    )


def _build_gang(
    workload: Mapping[str, Any],
    pods: Sequence[Pod],
    started_at: datetime | None,
    *,
    has_kai: bool,
    is_of_data: bool = False,
) -> Gang:
    """Build a gang. Data workers are one of their own, which start one by one.

    Its age is that of the current attempt, whose PodGroup is no older. One that gave way has
    started as long ago as it ran.
    """
    preemptibility = (
        Preemptibility.PREEMPTIBLE
        if workload["preemptible"] and has_kai
        else Preemptibility.NON_PREEMPTIBLE
    )
    asked_at = workload["current_attempt__requested_at"] or workload["created_at"]
    return Gang(
        key=get_data_job_name(str(workload["id"])) if is_of_data else str(workload["id"]),
        queue=workload["project__queue"],
        pods=pods,
        min_member=_find_min_member(workload) if has_kai and not is_of_data else 1,
        priority=find_priority(workload["priority"]),
        preemptibility=preemptibility,
        created_at=asked_at.timestamp(),
        started_at=started_at.timestamp() if started_at else None,
    )


def find_host_port(job_kind: str, is_on_host_network: object) -> int | None:
    """Return the port that each pod of a job takes of its node; None for none."""
    kind = JOB_KINDS.get(job_kind)
    return kind.port or None if kind is not None and is_on_host_network is True else None


def _find_min_member(workload: Mapping[str, Any]) -> int:
    """Return how many pods start together, by the PodGroup; without one all of a framework's."""
    group = workload["pod_group"]
    if group:
        return max(1, int_or_zero(nested_dict(group, "spec").get("minMember")))
    return max(1, workload["requested_pods"]) if workload["framework"] else 1


def build_priority_case(path: str) -> Case:
    """Build what `find_priority` returns for queries, with the path to the column."""
    return Case(
        *(When(**{path: each.value}, then=Value(each.number)) for each in Priority),
        default=Value(USUAL_PRIORITY),
        output_field=IntegerField(),
    )


def find_priority(name: str) -> int:
    """Return the value of a priority class; that of training where a workload names none."""
    is_known = name in Priority.__members__.values()
    return Priority(name).number if is_known else USUAL_PRIORITY
