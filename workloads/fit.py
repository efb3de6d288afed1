"""Whether a submission fits now: its project's quota and the cluster's nodes, from rows as last
seen. It informs and refuses nothing.
"""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from django.db.models import Sum

from clusters.models import Cluster, Node
from projects.models import Project
from workloads import placing
from workloads.diagnosis.room import Amounts, NodeRoom, demand, open_to, total_of
from workloads.manifests import placement
from workloads.manifests.placement import NO_POOLS, Pools
from workloads.models import Pod, Workload
from workloads.quantities import counted, parse, plain
from workloads.specs import Setup, Spec
from workloads.states import ACTIVE, LEAVING

NONE = Decimal(0)
MOST_PODS = 20_000
"""Running pods that are looked at; with more of them the nodes are not checked."""


class Verdict(StrEnum):
    """The value is the kind of notice that shows it."""

    FITS = "success"
    WARNS = "warning"
    UNKNOWN = "info"


@dataclass(frozen=True, slots=True)
class Check:
    """One finding in a sentence. `seen_at` is the age of what it is based on; None where that is
    our own bookkeeping, or nothing.
    """

    verdict: Verdict
    text: str
    seen_at: datetime.datetime | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    quota: Check
    nodes: Check

    @property
    def checks(self) -> Sequence[Check]:
        return (self.quota, self.nodes)

    @property
    def verdict(self) -> Verdict:
        verdicts = {check.verdict for check in self.checks}
        return next(
            each for each in (Verdict.WARNS, Verdict.UNKNOWN, Verdict.FITS) if each in verdicts
        )

    @property
    def text(self) -> str:
        """The whole in a sentence."""
        if self.verdict is Verdict.FITS:
            return "It fits now: quota and nodes have room."
        if self.verdict is Verdict.UNKNOWN:
            return "It cannot be said whether it fits now. You can submit it all the same."
        return "It may have to wait. You can submit it all the same; it starts when there is room."


def of(spec: Spec, project: Project) -> Fit:
    """Check a spec without problems against what is known now. Five queries, whatever there is."""
    needed = Needed.of(spec)
    return Fit(
        _quota(spec, needed, project), _nodes(needed, project.cluster, placing.pools_of(project))
    )


@dataclass(frozen=True, slots=True)
class Needed:
    """What must find room at once for the workload to start: each kind of pod with its number."""

    kinds: Sequence[tuple[Setup, Amounts, int]]

    @classmethod
    def of(cls, spec: Spec) -> "Needed":
        least = min(spec.elastic.min_workers, spec.workers) if spec.elastic else None
        # Only the workers' number can change, and they come after the master.
        kinds = [(setup, count) for setup, count in spec.kinds]
        if least is not None:
            kinds[-1] = (spec.setup, least)
        return cls([(setup, asked(setup), count) for setup, count in kinds])

    @property
    def total(self) -> Amounts:
        return total_of(
            Amounts(one.gpus * count, one.cpu * count, one.memory * count)
            for _, one, count in self.kinds
        )

    @property
    def pods(self) -> int:
        return sum(count for _, _, count in self.kinds)

    @property
    def has_gpu_memory(self) -> bool:
        return any(setup.compute.gpus.memory for setup, _, _ in self.kinds)


def asked(setup: Setup) -> Amounts:
    """What one such pod asks for; GPU memory of shared devices is not counted, as `demand` does
    not.
    """
    compute, gpus = setup.compute, setup.compute.gpus
    devices = (
        NONE
        if gpus.memory
        else gpus.device_count * (Decimal(1) if gpus.portion is None else gpus.portion)
    )
    cpu, memory = (
        parse(text or "0")
        for text in (
            compute.cpu_request or compute.cpu_limit,
            compute.memory_request or compute.memory_limit,
        )
    )
    return Amounts(devices, cpu, memory)


def _quota(spec: Spec, needed: Needed, project: Project) -> Check:
    gpus, quota, limit = needed.total.gpus, project.gpu_quota, project.gpu_limit
    if needed.has_gpu_memory:
        return Check(
            Verdict.UNKNOWN,
            (
                "The quota is not checked: how much of a device a share of GPU memory is, only "
                "the cluster knows."
            ),
        )
    if not gpus:
        return Check(Verdict.FITS, "It asks for no GPU, so no quota is needed.")
    if limit is not None and gpus > limit:
        most = f"project {project.name} may hold {counted(limit, 'GPU')} at most"
        return Check(
            Verdict.WARNS,
            (
                f"Over the limit: it needs {counted(gpus, 'GPU')}, and {most}. As it is, it can "
                "never start."
            ),
        )
    if not project.cluster.can.kai:
        return Check(
            Verdict.FITS,
            (
                f"Cluster {project.cluster.name} has no KAI scheduler, so nothing enforces the "
                "quota there."
            ),
        )
    if quota is None:
        return Check(
            Verdict.FITS, f"Project {project.name} has no GPU quota that could be exceeded."
        )
    states = [status.value for status in ACTIVE | LEAVING]
    held = (
        Workload.objects.filter(project=project, released_at=None, status__in=states).aggregate(
            held=Sum("gpus_allocated")
        )["held"]
        or NONE
    )
    sums = (
        f"it needs {counted(gpus, 'GPU')}; project {project.name} holds {plain(held)} of its "
        f"{counted(quota, 'GPU')}"
    )
    if limit is not None and held + gpus > limit:
        most = f"{counted(limit, 'GPU')} is the most it may hold"
        return Check(
            Verdict.WARNS,
            f"Over the limit: {sums}, and {most}. It waits until others of the project end.",
        )
    if held + gpus <= quota:
        return Check(Verdict.FITS, f"Within the quota: {sums}.")
    if spec.is_preemptible:
        return Check(
            Verdict.WARNS,
            (
                f"Over the quota: {sums}. It runs while others leave GPUs free, and gives them "
                "back when they need theirs."
            ),
        )
    return Check(
        Verdict.WARNS,
        f"Over the quota: {sums}. It is not preemptible, so it waits until the quota has room.",
    )


def _nodes(needed: Needed, cluster: Cluster, pools: Pools) -> Check:
    nodes = list(Node.objects.filter(cluster=cluster))
    if not nodes:
        return Check(
            Verdict.UNKNOWN,
            f"The nodes are not checked: nothing is known of those of cluster {cluster.name} yet.",
        )
    pods = _pods(cluster)
    seen = min(node.seen_at for node in nodes)
    if pods is None:
        return Check(
            Verdict.UNKNOWN,
            f"The nodes are not checked: more than {MOST_PODS:,} pods run there.",
            seen,
        )
    rooms = [
        _room(node, pods.get(node.name, []))
        for node in nodes
        if node.is_ready and node.is_schedulable
    ]
    placed = place(needed, rooms, pools)
    memory = " GPU memory is not checked." if needed.has_gpu_memory else ""
    if placed == needed.pods:
        return Check(
            Verdict.FITS,
            f"The nodes have room for {_pods_in_words(needed.pods)} now.{memory}",
            seen,
        )
    able = [
        room
        for room in rooms
        if any(open_to([room], placement.of_pod(setup, "", pools)) for setup, _, _ in needed.kinds)
    ]
    if rooms and not able:
        lack = "labels that are asked for are missing, or taints are not tolerated"
        return Check(Verdict.WARNS, f"{_none_of(len(rooms), needed)}: {lack}.", seen)
    free = total_of(room.free for room in able)
    has = (
        f"{plain(free.gpus)} of {counted(total_of(room.total for room in able).gpus, 'GPU')} free "
        f"on {counted(len(able), 'ready node')}"
    )
    return Check(
        Verdict.WARNS,
        f"The nodes have room for {placed} of {_pods_in_words(needed.pods)} now: {has}.{memory}",
        seen,
    )


def _none_of(nodes: int, needed: Needed) -> str:
    pods = _pods_in_words(needed.pods)
    return (
        f"The one ready node may not take {pods}"
        if nodes == 1
        else f"None of the {nodes:,} ready nodes may take {pods}"
    )


def _pods_in_words(count: int) -> str:
    return "its one pod" if count == 1 else f"its {count:,} pods"


def _pods(cluster: Cluster) -> dict[str, list[Amounts]] | None:
    """What our unfinished pods hold, by node; None for too many of them."""
    running = (
        Pod.objects.filter(workload__cluster=cluster, vanished_at=None)
        .exclude(node="")
        .exclude(phase__in=("Succeeded", "Failed"))
    )
    found: dict[str, list[Amounts]] = {}
    count = 0
    for node, gpus, data in running.values_list("node", "gpus", "data")[: MOST_PODS + 1]:
        holds = demand(data)
        found.setdefault(node, []).append(
            Amounts(holds.gpus or gpus or NONE, holds.cpu, holds.memory)
        )
        count += 1
    return found if count <= MOST_PODS else None


def _room(node: Node, pods: Iterable[Amounts]) -> NodeRoom:
    total = Amounts(node.gpus, node.cpu, Decimal(node.memory))
    foreign = Amounts(node.used_gpus, node.used_cpu, Decimal(node.used_memory))
    labels = {str(key): str(value) for key, value in node.labels.items()}
    return NodeRoom(node.name, total, total - foreign - total_of(pods), True, labels, node.taints)


def place(needed: Needed, rooms: Sequence[NodeRoom], pools: Pools = NO_POOLS) -> int:
    """How many of the pods find a node, filling one node after the other."""
    free = {room.name: room.free for room in rooms}
    placed = 0
    for setup, one, count in needed.kinds:
        left = count
        for room in open_to(rooms, placement.of_pod(setup, "", pools)):
            if not left:
                break
            here = min(left, _times(one, free[room.name]))
            free[room.name] = free[room.name] - Amounts(
                one.gpus * here, one.cpu * here, one.memory * here
            )
            left -= here
        placed += count - left
    return placed


def _times(one: Amounts, room: Amounts) -> int:
    """How often this much goes into a room."""
    pairs = ((one.gpus, room.gpus), (one.cpu, room.cpu), (one.memory, room.memory))
    return min((int(has // asks) for asks, has in pairs if asks), default=MOST_PODS)
