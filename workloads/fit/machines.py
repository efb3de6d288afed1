"""A total of GPUs as machines on the nodes of a project's cluster."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusters.models import Node
from projects.models import Project
from workloads.fit import nodes
from workloads.fit.demand import PodDemand, calculate_pod_demand
from workloads.manifests.placement import NodePools
from workloads.quantities import format_count
from workloads.specs import Configuration, Problem, Setup, Spec, gpu_totals
from workloads.specs.gpu_totals import MachineSize, NotWhole


@dataclass(frozen=True, slots=True)
class WorkedOut:
    """A spec with the machines of its total of GPUs, or what stands in the way."""

    spec: Spec
    problems: Sequence[Problem] = ()


def work_out_machines(spec: Spec, project: Project, pools: NodePools) -> WorkedOut:
    """Return a spec with the workers, and where nobody asks for GPUs their GPUs, of its total.

    A spec without a total stays as it is. At most one query, where whole nodes count.
    """
    total = spec.total_gpus
    # A total that is no number of GPUs is refused by its own rule.
    if total is None or total < 1 or not spec.is_distributed:
        return WorkedOut(spec)
    spec = gpu_totals.undo_plan(spec)
    has_own_size = gpu_totals.asks_for_gpus(spec.setup.compute)
    sizes = (
        gpu_totals.list_own_sizes(spec)
        if has_own_size
        else gpu_totals.list_node_sizes(spec, load_node_sizes(spec.setup, project, pools))
    )
    if not sizes:
        return WorkedOut(spec, () if has_own_size else [_build_problem(_describe_no_gpus(project))])
    try:
        plan = gpu_totals.plan_machines(total, sizes)
    except NotWhole as error:
        return WorkedOut(spec, [_build_problem(_describe_remainder(spec, total, sizes, error))])
    return WorkedOut(gpu_totals.apply_plan(spec, plan))


def load_node_sizes(setup: Setup, project: Project, pools: NodePools) -> Mapping[int, int]:
    """Return how many nodes there are by their GPUs, of those that may take such pods. One query.

    Nodes that are not ready, or closed to pods, count: they may come back.
    """
    rows = Node.objects.filter(cluster=project.cluster_id).exclude(gpus=0, gpus_unhealthy=0)
    kind = PodDemand(setup, calculate_pod_demand(setup), 1)
    sizes: Counter[int] = Counter()
    for room in nodes.list_open_nodes(kind, rows, pools):
        sizes[int(room.capacity.total.gpus)] += 1
    return {size: count for size, count in sizes.items() if size > 0}


def _build_problem(text: str) -> Problem:
    return Problem(gpu_totals.TOTAL_FIELD, text)


def _describe_no_gpus(project: Project) -> str:
    return (
        "The machines cannot be worked out: the compute resource asks for no GPUs, and no node of "
        f"cluster {project.cluster.name} that may take the pods is known to have any. Choose a "
        "compute resource that says how many GPUs a pod gets, or give the number of workers."
    )


def _describe_remainder(
    spec: Spec, total: int, sizes: Sequence[MachineSize], error: NotWhole
) -> str:
    """Describe why no machines make the total, with the nearest totals that they make."""
    gpus = format_count(total, "GPU")
    pods = "pods" if gpu_totals.asks_for_gpus(spec.setup.compute) else "machines"
    numbers = [
        gpu_totals.format_number(size.worker)
        for size in sorted(sizes, key=lambda size: size.worker, reverse=True)[:4]
    ]
    kinds = f"{' or '.join(numbers)} {'GPU' if numbers == ['1'] else 'GPUs'}"
    leader = spec.framework.master_name if spec.framework else "master"
    requirement = "at least one worker"
    if spec.has_master:
        workers = "any number of workers" if spec.can_master_be_alone else requirement
        requirement = f"a {leader} and {workers}"
    if not error.nearest:
        return f"{gpus} cannot be made of whole {pods} of {kinds}: {requirement} are needed."
    nearest = " or ".join(f"{each:,}" for each in error.nearest)
    text = (
        f"{gpus} cannot be made of whole {pods} of {kinds}, {requirement}. "
        f"The nearest that can: {nearest}."
    )
    can_be_alone = (
        spec.has_master
        and spec.framework is not None
        and Configuration.WORKERS_ONLY in spec.framework.configurations
        and any(MachineSize(size.worker).count_workers(total) for size in sizes)
    )
    return f"{text} Without a {leader} (Workers only) it can be had." if can_be_alone else text
