"""A past moment as its reader may see it today: what waited, what ran where, and the quotas.

What they may not see is added up, and has no name. Nothing here asks the database.
"""

import heapq
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from operator import attrgetter

from projects.department_sums import multiply_bound
from workloads.diagnosis import QueuePosition
from workloads.overview.bars import BAR_WIDTH
from workloads.overview.past_sight import PastSight
from workloads.overview.quotas import QuotaRow
from workloads.quantities import format_count
from workloads.queries.past_states import to_datetime
from workloads.states import ACTIVE, UP, Status
from workloads.time_machine import (
    PastNode,
    PastWorkload,
    Placement,
    QueuePlace,
    QuotaOwner,
    State,
    WaitReason,
    list_places,
)

ANOTHER = "another project"
"""What stands for a project that the reader may not see."""
QUEUED = frozenset({Status.PENDING.value})
_WAITING = frozenset(each.value for each in ACTIVE - UP)
_STARTING_TEXTS = {
    Status.CREATING: "It was being sent to its cluster.",
    Status.RESUMING: "It was being sent to its cluster again.",
    Status.PREPARING: "Its data workers were preparing data.",
    Status.INITIALIZING: "Its pods had their places and were starting.",
}


@dataclass(frozen=True, slots=True)
class PastFocus:
    """What a moment is looked at for; without anything it is the whole."""

    project: int | None = None
    node: tuple[bytes, str] | None = None
    workload: bytes | None = None

    @property
    def is_whole(self) -> bool:
        return self == PastFocus()


@dataclass(frozen=True, slots=True)
class PastRow:
    """A visible workload of then."""

    id: uuid.UUID
    name: str
    project: str
    project_id: int
    owner: str
    state: Status
    since: datetime
    gpus_requested: Decimal
    gpu_memory: int
    gpus_allocated: Decimal
    running_pods: int
    requested_pods: int
    preemptible: bool
    sentence: str = ""
    """Why it waited; "" where it did not."""
    place: QueuePlace | None = None
    nodes: Sequence[str] = ()


@dataclass(slots=True)
class Hidden:
    """Workloads of hidden projects in visible clusters: how many, and their GPUs."""

    count: int = 0
    gpus: Decimal = Decimal(0)


@dataclass(slots=True)
class PastRows:
    """Workloads of one kind: the first of the visible ones, how many there are, and the others."""

    rows: Sequence[PastRow] = ()
    count: int = 0
    hidden: Hidden = field(default_factory=Hidden)

    @property
    def more(self) -> int:
        return self.count - len(self.rows)


@dataclass(frozen=True, slots=True)
class NodePart:
    """GPUs of a node in one hand: where its part of the bar begins and ends, in thousandths."""

    kind: str
    """own, other, foreign or free."""
    label: str
    gpus: Decimal
    x: int
    width: int
    workload: uuid.UUID | None = None


@dataclass(frozen=True, slots=True)
class NodePicture:
    """A node of then and who held its GPUs."""

    cluster: str
    cluster_id: uuid.UUID
    name: str
    is_ready: bool
    is_schedulable: bool
    gpu_type: str
    gpus: Decimal
    free: Decimal
    parts: Sequence[NodePart]
    pods: int

    @property
    def words(self) -> str:
        """All of it in words."""
        parts = [f"{each.label} {_format(each.gpus)}" for each in self.parts]
        return f"{format_count(self.gpus, 'GPU')}: {', '.join(parts)}" if parts else "no GPUs"

    @property
    def marks(self) -> Sequence[int]:
        """Where one device ends and the next begins, for as many as can be told apart."""
        devices = int(self.gpus)
        if not 1 < devices <= 32:
            return ()
        return [round(BAR_WIDTH * number / self.gpus) for number in range(1, devices)]


@dataclass(frozen=True, slots=True)
class PastView:
    """All that a page or an answer has of a moment."""

    waiting: PastRows
    running: PastRows
    nodes: Sequence[NodePicture]
    more_nodes: int
    projects: Sequence[QuotaRow]
    more_projects: int
    departments: Sequence[QuotaRow]
    others_gpus: Decimal
    """Of the whole only: held in visible clusters by projects with hidden quotas."""
    silent: Sequence[tuple[str, datetime]]
    """Clusters of which nothing was known then, and since when."""


def build_past_view(state: State, sight: PastSight, focus: PastFocus, most: int) -> PastView:
    """Return what the reader may see of a moment, at most so many of each."""
    by_node: dict[tuple[bytes, str], list[Placement]] = defaultdict(list)
    for each in state.placements.values():
        if (owner := state.workloads.get(each.workload)) is not None:
            by_node[owner.cluster, each.node].append(each)
    concerned = _choose_workloads(state, focus, by_node)
    # On a node whoever has pods there was there, started or not.
    waiting = [each for each in concerned if each.status in _WAITING and focus.node is None]
    running = [each for each in concerned if each.status not in _WAITING or focus.node is not None]
    placements = None if focus.node is None else by_node.get(focus.node, [])
    nodes = _choose_nodes(state, sight, focus, by_node)
    projects, others = _build_projects(state, sight, focus)
    return PastView(
        waiting=_build_rows(waiting, sight, state, most, _since_key),
        running=_build_rows(running, sight, state, most, _size_key, placements),
        nodes=[_build_node(each, sight, state, by_node) for each in nodes[:most]],
        more_nodes=max(0, len(nodes) - most),
        projects=projects[:most],
        more_projects=max(0, len(projects) - most),
        departments=_build_departments(state, sight) if focus.is_whole else (),
        others_gpus=others,
        silent=[
            (sight.clusters[each.id], to_datetime(each.silent_since))
            for each in state.clusters.values()
            if each.silent_since and each.id in sight.clusters
        ],
    )


def find_past_row(state: State, sight: PastSight, workload: bytes) -> PastRow | None:
    """Return one workload of then; None where it neither waited nor ran, or is not visible."""
    each = state.workloads.get(workload)
    if each is None or each.project not in sight.projects:
        return None
    nodes = [placed.node for placed in state.placements.values() if placed.workload == workload]
    places = list_places(state.workloads.values(), QUEUED, [each])
    return _build_row(each, sight, state.reasons.get(workload), places, nodes)


def _choose_workloads(
    state: State, focus: PastFocus, by_node: Mapping[tuple[bytes, str], Sequence[Placement]]
) -> list[PastWorkload]:
    if focus.node is not None:
        workload_ids = {each.workload for each in by_node.get(focus.node, ())}
        return [state.workloads[key] for key in workload_ids]
    rows: Iterable[PastWorkload] = state.workloads.values()
    if focus.project is not None:
        return [each for each in rows if each.project == focus.project]
    return list(rows)


def _build_rows(
    workloads: Sequence[PastWorkload],
    sight: PastSight,
    state: State,
    most: int,
    key: Callable[[PastWorkload], tuple[object, ...]],
    placements_on_node: Sequence[Placement] | None = None,
) -> PastRows:
    """Return the first of the visible workloads by a key, and the sum of the others.

    Of a node that is looked at, `placements_on_node` has what is there: the others count with what
    they held of it, as in its picture.
    """
    visible = [each for each in workloads if each.project in sight.projects]
    hidden = [
        each
        for each in workloads
        if each.project not in sight.projects and sight.counts_cluster(each.cluster)
    ]
    if placements_on_node is None:
        gpus = sum(
            each.gpus_requested if each.status in _WAITING else each.gpus_allocated
            for each in hidden
        )
    else:
        hidden_ids = {each.id for each in hidden}
        gpus = sum(placed.gpus for placed in placements_on_node if placed.workload in hidden_ids)
    first_workloads = heapq.nsmallest(most, visible, key=key)
    places = list_places(state.workloads.values(), QUEUED, first_workloads)
    nodes: dict[bytes, list[str]] = {each.id: [] for each in first_workloads}
    for placed in state.placements.values():
        if placed.workload in nodes:
            nodes[placed.workload].append(placed.node)
    rows = [
        _build_row(
            each,
            sight,
            state.reasons.get(each.id),
            places,
            nodes[each.id],
        )
        for each in first_workloads
    ]
    return PastRows(rows, len(visible), Hidden(len(hidden), to_gpus(gpus)))


_since_key = attrgetter("since", "id")


def _size_key(workload: PastWorkload) -> tuple[int, int, bytes]:
    return -workload.gpus_allocated, workload.since, workload.id


def _build_row(
    each: PastWorkload,
    sight: PastSight,
    reason: WaitReason | None,
    places: Mapping[bytes, QueuePlace],
    nodes: Sequence[str],
) -> PastRow:
    status = Status(each.status)
    project = sight.projects[each.project]
    place = places.get(each.id)
    sentence = ""
    if each.status in _WAITING:
        sentence = reason.sentence if reason is not None else each.reason
        sentence = sentence or _STARTING_TEXTS.get(status, "The cluster had not said why.")
        if reason is not None and reason.is_queued and place is not None:
            words = QueuePosition(place.position, place.length, project, each.wants_gpus)
            sentence = f"{sentence} {words.describe()}".rstrip()
    return PastRow(
        id=uuid.UUID(bytes=each.id),
        name=each.name,
        project=project,
        project_id=each.project,
        owner=each.owner,
        state=status,
        since=to_datetime(each.since),
        gpus_requested=to_gpus(each.gpus_requested),
        gpu_memory=each.gpu_memory,
        gpus_allocated=to_gpus(each.gpus_allocated),
        running_pods=each.running_pods,
        requested_pods=each.requested_pods,
        preemptible=each.preemptible,
        sentence=sentence,
        place=place,
        nodes=sorted(nodes),
    )


def _choose_nodes(
    state: State,
    sight: PastSight,
    focus: PastFocus,
    by_node: Mapping[tuple[bytes, str], Sequence[Placement]],
) -> list[PastNode]:
    """Return the visible nodes that are asked for, those with GPUs first, by name.

    Of a project whose workloads are not visible there are none: they would tell where it ran.
    """
    nodes: Collection[PastNode] = state.nodes.values()
    if focus.node is not None:
        nodes = [each for each in nodes if each.key == focus.node]
    elif focus.project is not None and focus.project not in sight.projects:
        nodes = []
    elif focus.project is not None:
        nodes = [
            each
            for each in nodes
            if any(
                state.workloads[placed.workload].project == focus.project
                for placed in by_node.get(each.key, ())
            )
        ]
    visible = [each for each in nodes if each.cluster in sight.clusters]
    visible.sort(key=lambda each: (not each.gpus, sight.clusters[each.cluster], each.name))
    return visible


def _build_node(
    node: PastNode,
    sight: PastSight,
    state: State,
    by_node: Mapping[tuple[bytes, str], Sequence[Placement]],
) -> NodePicture:
    holders: list[tuple[str, str, int, uuid.UUID | None]] = []
    hidden = pods = 0
    for placed in sorted(by_node.get(node.key, ()), key=lambda each: (-each.gpus, each.workload)):
        owner = state.workloads[placed.workload]
        pods += placed.pods
        if owner.project in sight.projects:
            holders.append(("own", owner.name, placed.gpus, uuid.UUID(bytes=owner.id)))
        else:
            hidden += placed.gpus
    holders.append(("other", ANOTHER, hidden, None))
    holders.append(("foreign", "not Muster's", node.foreign_gpus, None))
    free = max(0, node.gpus - sum(gpus for _, _, gpus, _ in holders))
    holders.append(("free", "free", free, None))
    scale = max(node.gpus, sum(gpus for _, _, gpus, _ in holders))
    return NodePicture(
        cluster=sight.clusters[node.cluster],
        cluster_id=uuid.UUID(bytes=node.cluster),
        name=node.name,
        is_ready=node.is_ready,
        is_schedulable=node.is_schedulable,
        gpu_type=node.gpu_type,
        gpus=to_gpus(node.gpus),
        free=to_gpus(free),
        parts=_place_parts(holders, scale),
        pods=pods,
    )


def _place_parts(
    holders: Sequence[tuple[str, str, int, uuid.UUID | None]], scale: int
) -> list[NodePart]:
    parts, before = [], 0
    for kind, label, gpus, workload in holders:
        if not gpus:
            continue
        begin, end = (BAR_WIDTH * amount // scale for amount in (before, before + gpus))
        parts.append(NodePart(kind, label, to_gpus(gpus), begin, end - begin, workload))
        before += gpus
    return parts


def _build_projects(
    state: State, sight: PastSight, focus: PastFocus
) -> tuple[list[QuotaRow], Decimal]:
    """Return the visible projects' quotas, and what the others held in visible clusters."""
    if focus.node is not None:
        return [], Decimal(0)
    allocated = _sum_allocated(state)
    rows = [
        _build_quota(
            each.id, sight.quotas[each.id], allocated.get(each.id, 0), each.quota, each.limit
        )
        for each in state.quotas.values()
        if each.owner == QuotaOwner.PROJECT
        and each.id in sight.quotas
        and focus.project in (None, each.id)
    ]
    if not focus.is_whole:
        return _rank(rows), Decimal(0)
    others = sum(
        each.gpus_allocated
        for each in state.workloads.values()
        if each.project not in sight.quotas and sight.counts_cluster(each.cluster)
    )
    return _rank(rows), to_gpus(others)


def _build_departments(state: State, sight: PastSight) -> list[QuotaRow]:
    """Return the visible departments' quotas against what all their projects held."""
    allocated = _sum_allocated(state)
    department_totals: dict[int, int] = defaultdict(int)
    quotas: dict[int, list[int | None]] = defaultdict(list)
    for each in state.quotas.values():
        if each.owner == QuotaOwner.PROJECT:
            department_totals[each.department] += allocated.get(each.id, 0)
            quotas[each.department].append(each.quota)
    rows = []
    for each in state.quotas.values():
        if each.owner != QuotaOwner.DEPARTMENT or each.id not in sight.departments:
            continue
        clusters = sight.cluster_counts.get(each.id, 1)
        quota = multiply_bound(each.quota, clusters)
        if quota is None and None not in quotas[each.id]:
            quota = sum(amount or 0 for amount in quotas[each.id])
        limit = multiply_bound(each.limit, clusters)
        name, allocated_there = sight.departments[each.id], department_totals[each.id]
        rows.append(_build_quota(each.id, name, allocated_there, quota, limit))
    return _rank(rows)


def _sum_allocated(state: State) -> Mapping[int, int]:
    allocated: dict[int, int] = defaultdict(int)
    for each in state.workloads.values():
        allocated[each.project] += each.gpus_allocated
    return allocated


def _build_quota(
    id: int, name: str, allocated: int, quota: int | None, limit: int | None
) -> QuotaRow:
    return QuotaRow(
        id,
        name,
        to_gpus(allocated),
        None if quota is None else to_gpus(quota),
        None if limit is None else to_gpus(limit),
    )


def _rank(rows: Iterable[QuotaRow]) -> list[QuotaRow]:
    """Sort quotas: the highest ratio first, those without a ratio last."""
    return sorted(
        rows,
        key=lambda row: (row.ratio is None, -(row.ratio or Decimal(0)), -row.allocated, row.name),
    )


def to_gpus(thousandths: int) -> Decimal:
    """Return an amount of GPUs of recorded thousandths."""
    return Decimal(thousandths) / 1000


def _format(gpus: Decimal) -> str:
    return f"{gpus.normalize():f}" if gpus else "0"
