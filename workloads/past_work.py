"""What ran and waited in a cluster in the last days, out of rows, to be played again."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from clusters.models import Cluster, NodePool
from console.chunks import split_chunks
from projects.models import Project
from scheduling import Gang, Pod, Preemptibility
from workloads.elastic.cluster_state import find_priority
from workloads.elastic.pod_shapes import ShapeBuilder
from workloads.fit.demand import WorkloadDemand
from workloads.kube_objects import Object
from workloads.manifests.placement import NodePools, build_placement
from workloads.models import Attempt, LedgerEntry, Workload
from workloads.specs import UnreadableSpec, decode_spec
from workloads.states import Status

MOST_ATTEMPTS = 10_000
MOST_PODS = 50_000
"""Newest attempts of one cluster that are played again, and all of their pods."""
MOST_POOLS = 500
MOST_PODS_OF_RUN = 5_000
"""An attempt of more pods is left out: a few of them would leave no room for all others."""
SHORTEST_RUN = 1.0
"""Seconds: whatever has none would hold what it got for ever."""
QUEUED = (Status.PENDING.value,)
"""Statuses in which an attempt waits for nodes."""


@dataclass(frozen=True, slots=True)
class PodGroup:
    """Equal pods: what each requests, and which nodes they accept; no `gpus`: a shared device."""

    gpus: Decimal | None
    cpu: Decimal
    memory: int
    placement: Object
    count: int


@dataclass(frozen=True, slots=True)
class PastRun:
    """An attempt as it was: what it asked for, when it came, started and ended."""

    key: str
    workload: uuid.UUID
    project: int
    queue: str
    priority: int
    is_preemptible: bool
    starts_together: bool
    groups: Sequence[PodGroup]
    came_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @property
    def gpus(self) -> Decimal:
        """Its GPUs; a shared device counts as one."""
        one = Decimal(1)
        return sum(
            ((one if each.gpus is None else each.gpus) * each.count for each in self.groups),
            Decimal(0),
        )


@dataclass(frozen=True, slots=True)
class PastWork:
    """The attempts of a time, the oldest first, and how many are not among them."""

    runs: Sequence[PastRun]
    is_cut: bool = False
    """Whether there were more than are played: the oldest are missing then."""
    never_started: int = 0
    """Attempts that were stopped before they started: nobody knows how long they would have run."""
    left_out: int = 0
    """Attempts of removed projects, of unreadable definitions, and of too many pods."""
    deleted: int = 0
    """Workloads that the ledger has, and whose rows are gone."""


class _AttemptValues(NamedTuple):
    id: int
    workload_id: uuid.UUID
    requested_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    status: str
    workload__released_at: datetime | None


class _Ask(NamedTuple):
    """What a workload asks for: the same in each of its attempts."""

    project: int
    queue: str
    priority: int
    is_preemptible: bool
    starts_together: bool
    groups: Sequence[PodGroup]


def load_past_work(cluster: Cluster, begin: datetime, now: datetime) -> PastWork:
    """Load the attempts that waited or ran in a cluster since `begin`, and how many are gone.

    Four queries, and one for some hundreds of workloads.
    """
    past = load_past_runs(cluster, begin, now, MOST_ATTEMPTS)
    return replace(past, deleted=_count_deleted(cluster, begin))


def load_past_runs(
    cluster: Cluster, begin: datetime, now: datetime, most_attempts: int
) -> PastWork:
    """Load the newest attempts that waited or ran in a cluster since `begin`.

    Three queries, and one for some hundreds of workloads.
    """
    found = _load_attempts(cluster, begin, now, most_attempts)
    rows = [row for row in found[:most_attempts] if _is_played(row)]
    asks = _load_asks(cluster, dict.fromkeys(row.workload_id for row in rows))
    runs: list[PastRun] = []
    pods = left_out = 0
    is_cut = len(found) > most_attempts
    for row in rows:
        ask = asks.get(row.workload_id)
        count = 0 if ask is None else sum(group.count for group in ask.groups)
        if ask is None or count > MOST_PODS_OF_RUN:
            left_out += 1
            continue
        pods += count
        if pods > MOST_PODS:
            is_cut = True
            break
        times = (row.requested_at, row.started_at, _find_end(row))
        runs.append(PastRun(str(row.id), row.workload_id, *ask, *times))
    runs.reverse()
    return PastWork(
        runs,
        is_cut,
        sum(_was_given_up(row) for row in found[:most_attempts]),
        left_out,
    )


def build_gang(run: PastRun, shapes: ShapeBuilder, came_at: float, *, has_kai: bool = True) -> Gang:
    """Build the gang of an attempt that comes at a time, with pods that wait.

    Without KAI nothing gives way, and all that is needed starts together (`require_whole_gangs`).
    """
    starts_together = run.starts_together or not has_kai
    is_preemptible = run.is_preemptible and has_kai
    pods: list[Pod] = []
    for group in run.groups:
        shape = shapes.build(group.gpus, group.cpu, group.memory, group.placement)
        pods += [
            Pod(f"{run.key}-{rank}", shape, rank)
            for rank in range(len(pods), len(pods) + group.count)
        ]
    return Gang(
        key=run.key,
        queue=run.queue,
        pods=pods,
        min_member=max(1, len(pods)) if starts_together else 1,
        priority=run.priority,
        preemptibility=(
            Preemptibility.PREEMPTIBLE if is_preemptible else Preemptibility.NON_PREEMPTIBLE
        ),
        created_at=came_at,
    )


def _load_attempts(
    cluster: Cluster, begin: datetime, now: datetime, most_attempts: int
) -> Sequence[_AttemptValues]:
    """Load the attempts of a time, the newest first, one more than is played."""
    rows: QuerySet[Attempt] = Attempt.objects.filter(
        Q(ended_at=None) | Q(ended_at__gt=begin), workload__cluster=cluster, requested_at__lt=now
    )
    values = rows.order_by("-requested_at", "-pk").values_list(*_AttemptValues._fields)
    return [_AttemptValues(*each) for each in values[: most_attempts + 1]]


def _find_end(row: _AttemptValues) -> datetime | None:
    return row.ended_at or row.workload__released_at


def _was_given_up(row: _AttemptValues) -> bool:
    return row.started_at is None and _find_end(row) is not None


def _is_played(row: _AttemptValues) -> bool:
    """Return whether it ran, or waits for nodes still."""
    return row.started_at is not None or (_find_end(row) is None and row.status in QUEUED)


def _load_asks(cluster: Cluster, workloads: Iterable[uuid.UUID]) -> Mapping[uuid.UUID, _Ask]:
    """Load what workloads ask for; those whose project has no queue any more are left out."""
    pools = _load_pools(cluster)
    asks: dict[uuid.UUID, _Ask] = {}
    fields = (
        *("id", "project_id", "project__queue", "project__removed_at", "priority", "preemptible"),
        "spec",
    )
    for keys in split_chunks(list(workloads)):
        for row in Workload.objects.filter(pk__in=keys).order_by().values(*fields):
            ask = None if row["project__removed_at"] else _build_ask(row, pools)
            if ask is not None:
                asks[row["id"]] = ask
    return asks


def _build_ask(row: Mapping[str, Any], pools: "_ProjectPools") -> _Ask | None:
    try:
        demand = WorkloadDemand.from_spec(decode_spec(row["spec"]))
        groups = [
            PodGroup(
                None if kind.setup.compute.gpus.memory else kind.amounts.gpus,
                kind.amounts.cpu,
                int(kind.amounts.memory),
                build_placement(kind.setup, "", pools.find(row["project_id"])),
                kind.count,
            )
            for kind in demand.kinds
            if kind.count
        ]
    except (UnreadableSpec, AttributeError, ValueError, ArithmeticError):
        return None
    return _Ask(
        row["project_id"],
        row["project__queue"],
        find_priority(row["priority"]),
        row["preemptible"],
        demand.starts_together,
        groups,
    )


class _ProjectPools:
    """The node pools of a cluster, and those to which each project is limited."""

    def __init__(
        self, labels: Mapping[str, tuple[str, str]], limits: Mapping[int, tuple[str, ...]]
    ) -> None:
        self._all = NodePools(labels)
        self._limited = {project: NodePools(labels, names) for project, names in limits.items()}

    def find(self, project: int) -> NodePools:
        return self._limited.get(project, self._all)


def _load_pools(cluster: Cluster) -> _ProjectPools:
    """Load the node pools of a cluster. Two queries."""
    rows = NodePool.objects.filter(cluster=cluster).order_by("name")[:MOST_POOLS]
    labels = {pool.name: (pool.label_key, pool.label_value) for pool in rows}
    limits: dict[int, tuple[str, ...]] = {}
    members = Project.node_pools.through.objects.filter(project__cluster=cluster)
    for project, name in members.order_by("nodepool__name").values_list(
        "project", "nodepool__name"
    )[:MOST_ATTEMPTS]:
        limits[project] = (*limits.get(project, ()), name)
    return _ProjectPools(labels, limits)


def _count_deleted(cluster: Cluster, begin: datetime) -> int:
    """Return how many workloads of a time the ledger has, and no row any more. One query."""
    entries = LedgerEntry.objects.filter(day__gte=begin.date(), project__cluster=cluster)
    gone = entries.exclude(workload__in=Workload.objects.filter(cluster=cluster).values("pk"))
    keys = gone.order_by().values_list("workload", flat=True).distinct()
    return len(keys[:MOST_ATTEMPTS])
