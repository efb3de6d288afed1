"""Whether a submission fits now, into its project's quota and on the cluster's nodes.

The answer rests on rows as last seen. It informs and refuses nothing.
"""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from django.db.models import Sum

from clusters.models import Cluster, Node
from projects.models import Project
from workloads.diagnosis.node_capacity import (
    NodeCapacity,
    ResourceAmounts,
    calculate_demand,
    filter_open_nodes,
    sum_amounts,
)
from workloads.manifests import placement
from workloads.manifests.placement import NO_POOLS, NodePools
from workloads.models import Pod, Workload
from workloads.quantities import format_count, format_number, parse_quantity
from workloads.specs import Setup, Spec
from workloads.states import ACTIVE, ENDING

NONE = Decimal(0)
MOST_PODS = 20_000
"""Running pods that are read; with more of them the nodes are not checked."""


class Verdict(StrEnum):
    """The outcome of a check; the value is the kind of notice that shows it."""

    FITS = "success"
    WARNS = "warning"
    UNKNOWN = "info"


@dataclass(frozen=True, slots=True)
class FitCheck:
    """One finding as a sentence.

    `seen_at` is the age of the data it rests on; None for our own bookkeeping, or for nothing.
    """

    verdict: Verdict
    text: str
    seen_at: datetime.datetime | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """The checks of quota and nodes together."""

    quota: FitCheck
    nodes: FitCheck

    @property
    def checks(self) -> Sequence[FitCheck]:
        return (self.quota, self.nodes)

    @property
    def verdict(self) -> Verdict:
        verdicts = {check.verdict for check in self.checks}
        return next(
            each for each in (Verdict.WARNS, Verdict.UNKNOWN, Verdict.FITS) if each in verdicts
        )

    @property
    def text(self) -> str:
        """The overall verdict as a sentence."""
        if self.verdict is Verdict.FITS:
            return "It fits now: quota and nodes have room."
        if self.verdict is Verdict.UNKNOWN:
            return "It cannot be said whether it fits now. You can submit it all the same."
        return "It may have to wait. You can submit it all the same; it starts when there is room."


def check_fit(spec: Spec, project: Project, pools: NodePools) -> Fit:
    """Check a valid spec against quota, and the nodes of these pools, as known now.

    Always four queries.
    """
    needed = WorkloadDemand.from_spec(spec)
    return Fit(
        _check_quota(spec, needed, project),
        _check_nodes(needed, project.cluster, pools),
    )


@dataclass(frozen=True, slots=True)
class WorkloadDemand:
    """What must find room at once for the workload to start.

    `kinds` has each kind of pod with the amounts of one pod and the number of pods.
    """

    kinds: Sequence[tuple[Setup, ResourceAmounts, int]]

    @classmethod
    def from_spec(cls, spec: Spec) -> "WorkloadDemand":
        min_workers = min(spec.elastic.min_workers, spec.workers) if spec.elastic else None
        # Only the workers' number can change, and they come after the master.
        kinds = [(setup, count) for setup, count in spec.pod_kinds]
        if min_workers is not None:
            kinds[-1] = (spec.setup, min_workers)
        return cls([(setup, calculate_pod_demand(setup), count) for setup, count in kinds])

    @property
    def total(self) -> ResourceAmounts:
        return sum_amounts(
            ResourceAmounts(amounts.gpus * count, amounts.cpu * count, amounts.memory * count)
            for _, amounts, count in self.kinds
        )

    @property
    def pods(self) -> int:
        return sum(count for _, _, count in self.kinds)

    @property
    def has_gpu_memory(self) -> bool:
        return any(setup.compute.gpus.memory for setup, _, _ in self.kinds)


def calculate_pod_demand(setup: Setup) -> ResourceAmounts:
    """Return what one pod of this setup requests.

    GPU memory of shared devices is not counted, as in `calculate_demand`.
    """
    compute, gpus = setup.compute, setup.compute.gpus
    devices = (
        NONE
        if gpus.memory
        else gpus.device_count * (Decimal(1) if gpus.portion is None else gpus.portion)
    )
    cpu, memory = (
        parse_quantity(text or "0")
        for text in (
            compute.cpu_request or compute.cpu_limit,
            compute.memory_request or compute.memory_limit,
        )
    )
    return ResourceAmounts(devices, cpu, memory)


def _check_quota(spec: Spec, demand: WorkloadDemand, project: Project) -> FitCheck:
    gpus, quota, limit = demand.total.gpus, project.gpu_quota, project.gpu_limit
    if demand.has_gpu_memory:
        return FitCheck(
            Verdict.UNKNOWN,
            (
                "The quota is not checked: how much of a device a share of GPU memory is, only "
                "the cluster knows."
            ),
        )
    if not gpus:
        return FitCheck(Verdict.FITS, "It asks for no GPU, so no quota is needed.")
    if limit is not None and gpus > limit:
        limit_words = f"project {project.name} may hold {format_count(limit, 'GPU')} at most"
        return FitCheck(
            Verdict.WARNS,
            (
                f"Over the limit: it needs {format_count(gpus, 'GPU')}, and {limit_words}. As it "
                "is, it can never start."
            ),
        )
    if not project.cluster.can.has_kai:
        return FitCheck(
            Verdict.FITS,
            (
                f"Cluster {project.cluster.name} has no KAI scheduler, so nothing enforces the "
                "quota there."
            ),
        )
    if quota is None:
        return FitCheck(
            Verdict.FITS, f"Project {project.name} has no GPU quota that could be exceeded."
        )
    states = [status.value for status in ACTIVE | ENDING]
    allocated = (
        Workload.objects.filter(project=project, released_at=None, status__in=states).aggregate(
            held=Sum("gpus_allocated")
        )["held"]
        or NONE
    )
    sums = (
        f"it needs {format_count(gpus, 'GPU')}; project {project.name} holds "
        f"{format_number(allocated)} of its {format_count(quota, 'GPU')}"
    )
    if limit is not None and allocated + gpus > limit:
        limit_words = f"{format_count(limit, 'GPU')} is the most it may hold"
        return FitCheck(
            Verdict.WARNS,
            f"Over the limit: {sums}, and {limit_words}. It waits until others of the project end.",
        )
    if allocated + gpus <= quota:
        return FitCheck(Verdict.FITS, f"Within the quota: {sums}.")
    if spec.is_preemptible:
        return FitCheck(
            Verdict.WARNS,
            (
                f"Over the quota: {sums}. It runs while others leave GPUs free, and gives them "
                "back when they need theirs."
            ),
        )
    return FitCheck(
        Verdict.WARNS,
        f"Over the quota: {sums}. It is not preemptible, so it waits until the quota has room.",
    )


def _check_nodes(demand: WorkloadDemand, cluster: Cluster, pools: NodePools) -> FitCheck:
    nodes = list(Node.objects.filter(cluster=cluster))
    if not nodes:
        return FitCheck(
            Verdict.UNKNOWN,
            f"The nodes are not checked: nothing is known of those of cluster {cluster.name} yet.",
        )
    pods = _load_pod_amounts(cluster)
    seen_at = min(node.seen_at for node in nodes)
    if pods is None:
        return FitCheck(
            Verdict.UNKNOWN,
            f"The nodes are not checked: more than {MOST_PODS:,} pods run there.",
            seen_at,
        )
    open_capacities = [
        _build_node_capacity(node, pods.get(node.name, []))
        for node in nodes
        if node.is_ready and node.is_schedulable
    ]
    placeable = count_placeable_pods(demand, open_capacities, pools)
    memory = " GPU memory is not checked." if demand.has_gpu_memory else ""
    if placeable == demand.pods:
        return FitCheck(
            Verdict.FITS,
            f"The nodes have room for {_describe_pods(demand.pods)} now.{memory}",
            seen_at,
        )
    permitted = [
        capacity
        for capacity in open_capacities
        if any(
            filter_open_nodes([capacity], placement.build_placement(setup, "", pools))
            for setup, _, _ in demand.kinds
        )
    ]
    if open_capacities and not permitted:
        lack = "labels that are asked for are missing, or taints are not tolerated"
        none_words = _describe_no_node(len(open_capacities), demand)
        return FitCheck(Verdict.WARNS, f"{none_words}: {lack}.", seen_at)
    free = sum_amounts(capacity.free for capacity in permitted)
    total = sum_amounts(capacity.total for capacity in permitted)
    free_words = (
        f"{format_number(free.gpus)} of {format_count(total.gpus, 'GPU')} free on "
        f"{format_count(len(permitted), 'ready node')}"
    )
    return FitCheck(
        Verdict.WARNS,
        f"The nodes have room for {placeable} of {_describe_pods(demand.pods)} now: "
        f"{free_words}.{memory}",
        seen_at,
    )


def _describe_no_node(nodes: int, demand: WorkloadDemand) -> str:
    pods = _describe_pods(demand.pods)
    return (
        f"The one ready node may not take {pods}"
        if nodes == 1
        else f"None of the {nodes:,} ready nodes may take {pods}"
    )


def _describe_pods(count: int) -> str:
    return "its one pod" if count == 1 else f"its {count:,} pods"


def _load_pod_amounts(cluster: Cluster) -> dict[str, list[ResourceAmounts]] | None:
    """Return what our unfinished pods hold, by node; None for more than MOST_PODS."""
    running = (
        Pod.objects.filter(workload__cluster=cluster, vanished_at=None)
        .exclude(node="")
        .exclude(phase__in=("Succeeded", "Failed"))
    )
    amounts: dict[str, list[ResourceAmounts]] = {}
    count = 0
    for node, gpus, data in running.values_list("node", "gpus", "data")[: MOST_PODS + 1]:
        holds = calculate_demand(data)
        amounts.setdefault(node, []).append(
            ResourceAmounts(holds.gpus or gpus or NONE, holds.cpu, holds.memory)
        )
        count += 1
    return amounts if count <= MOST_PODS else None


def _build_node_capacity(node: Node, pods: Iterable[ResourceAmounts]) -> NodeCapacity:
    total = ResourceAmounts(node.gpus, node.cpu, Decimal(node.memory))
    foreign = ResourceAmounts(node.used_gpus, node.used_cpu, Decimal(node.used_memory))
    labels = {str(key): str(value) for key, value in node.labels.items()}
    return NodeCapacity(
        node.name, total, total - foreign - sum_amounts(pods), True, labels, node.taints
    )


def count_placeable_pods(
    demand: WorkloadDemand, nodes: Sequence[NodeCapacity], pools: NodePools = NO_POOLS
) -> int:
    """Count the pods that find a node, filling one node after the other."""
    free = {node.name: node.free for node in nodes}
    placed = 0
    for setup, pod_amounts, count in demand.kinds:
        remaining = count
        for node in filter_open_nodes(nodes, placement.build_placement(setup, "", pools)):
            if not remaining:
                break
            fitting = min(remaining, _count_copies(pod_amounts, free[node.name]))
            free[node.name] = free[node.name] - ResourceAmounts(
                pod_amounts.gpus * fitting, pod_amounts.cpu * fitting, pod_amounts.memory * fitting
            )
            remaining -= fitting
        placed += count - remaining
    return placed


def _count_copies(pod_amounts: ResourceAmounts, free: ResourceAmounts) -> int:
    """Return how many pods with these amounts fit into the free amounts."""
    pairs = (
        (pod_amounts.gpus, free.gpus),
        (pod_amounts.cpu, free.cpu),
        (pod_amounts.memory, free.memory),
    )
    return min((int(available // asks) for asks, available in pairs if asks), default=MOST_PODS)
