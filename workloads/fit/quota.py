"""Whether a submission fits into its project's quota and limits."""

from collections.abc import Iterator
from decimal import Decimal

from django.db.models import Sum

from projects.models import Project
from workloads.diagnosis.node_shortage import RESOURCE_FORMATTERS
from workloads.fit.demand import NONE, WorkloadDemand
from workloads.fit.verdict import FitCheck, Verdict
from workloads.models import Workload
from workloads.quantities import format_count, format_number
from workloads.specs import Spec
from workloads.states import ACTIVE, ENDING


def check_quota(spec: Spec, demand: WorkloadDemand, project: Project) -> FitCheck:
    """Check a demand against what the project may hold, and holds now. At most two queries."""
    never = check_total_quota(spec, demand, project)
    if never is not None:
        return never
    if demand.has_gpu_memory:
        return FitCheck(
            Verdict.UNKNOWN,
            (
                "The quota is not checked: how much of a device a share of GPU memory is, only "
                "the cluster knows."
            ),
        )
    gpus, quota = demand.total.gpus, project.gpu_quota
    if not gpus:
        return FitCheck(Verdict.FITS, "It asks for no GPU, so no quota is needed.")
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
    return _check_allocated(spec, gpus, quota, project)


def check_total_quota(spec: Spec, demand: WorkloadDemand, project: Project) -> FitCheck | None:
    """Return why quota or limit let it never start, whatever others hold; None where they do not.

    At most one query.
    """
    if not project.cluster.can.has_kai:
        return None
    needed = demand.at_start.total
    for attribute, owner, limit in _list_limits(project):
        need: Decimal = getattr(needed, attribute)
        if limit is not None and need > limit:
            show = RESOURCE_FORMATTERS[attribute]
            return FitCheck(
                Verdict.NEVER,
                f"Over the limit: it needs {show(need)}, and {owner} may hold {show(limit)} at "
                "most. As it is, it can never start. Ask for less, or ask an administrator for a "
                "higher limit.",
            )
    if spec.is_preemptible:
        return None
    for owner, quota in _list_gpu_quotas(project):
        if quota is not None and needed.gpus > quota:
            return FitCheck(
                Verdict.NEVER,
                f"Over the quota: it needs {format_count(needed.gpus, 'GPU')} and is not "
                f"preemptible, and the quota of {owner} is {format_count(quota, 'GPU')}. As it is, "
                "it can never start. Make it preemptible, ask for less, or ask an administrator "
                "for a larger quota.",
            )
    return None


def _list_limits(project: Project) -> Iterator[tuple[str, str, Decimal | None]]:
    own = f"project {project.name}"
    yield "gpus", own, project.gpu_limit
    yield "cpu", own, project.cpu_limit
    memory = project.memory_limit
    yield "memory", own, None if memory is None else Decimal(memory)
    department = project.department
    yield "gpus", f"department {department.name}", department.gpu_limit


def _list_gpu_quotas(project: Project) -> Iterator[tuple[str, Decimal | None]]:
    yield f"project {project.name}", project.gpu_quota
    yield f"department {project.department.name}", project.department.gpu_quota


def _check_allocated(spec: Spec, gpus: Decimal, quota: Decimal, project: Project) -> FitCheck:
    """Check what it needs beside what the project holds now. One query."""
    limit = project.gpu_limit
    allocated = _load_allocated_gpus(project)
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


def _load_allocated_gpus(project: Project) -> Decimal:
    states = [status.value for status in ACTIVE | ENDING]
    rows = Workload.objects.filter(
        project=project, released_at=None, status__in=states, gpus_allocated__gt=0
    )
    return rows.aggregate(held=Sum("gpus_allocated"))["held"] or NONE
