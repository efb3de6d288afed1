"""Whether a submission fits into its project's quota and limits."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Q, Sum

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
    gpus = demand.total.gpus
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
    allocated = _load_allocated_gpus(project)
    return _check_limits(gpus, allocated, project) or _check_quotas(spec, gpus, allocated, project)


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


@dataclass(frozen=True, slots=True)
class _Allocated:
    """GPUs that a project and its department hold on the cluster now.

    `fixed` are those of what is not preemptible.
    """

    in_project: Decimal
    fixed_in_project: Decimal
    in_department: Decimal
    fixed_in_department: Decimal


def _check_limits(gpus: Decimal, allocated: _Allocated, project: Project) -> FitCheck | None:
    """Return that a limit leaves no room for so many GPUs now; None where both have some."""
    department = project.department
    for kind, name, limit, count in (
        ("project", project.name, project.gpu_limit, allocated.in_project),
        ("department", department.name, department.gpu_limit, allocated.in_department),
    ):
        if limit is not None and count + gpus > limit:
            return FitCheck(
                Verdict.WARNS,
                f"Over the limit: it needs {format_count(gpus, 'GPU')}; {kind} {name} holds "
                f"{format_count(count, 'GPU')}, and {format_count(limit, 'GPU')} is the most it "
                f"may hold. It waits until the {kind} holds fewer.",
            )
    return None


def _check_quotas(spec: Spec, gpus: Decimal, allocated: _Allocated, project: Project) -> FitCheck:
    if not spec.is_preemptible:
        return _check_fixed_quotas(gpus, allocated, project)
    quota = project.gpu_quota
    if quota is None:
        return _describe_no_quota(project)
    sums = (
        f"it needs {format_count(gpus, 'GPU')}; project {project.name} holds "
        f"{format_number(allocated.in_project)} of its {format_count(quota, 'GPU')}"
    )
    if allocated.in_project + gpus <= quota:
        return FitCheck(Verdict.FITS, f"Within the quota: {sums}.")
    return FitCheck(
        Verdict.WARNS,
        (
            f"Over the quota: {sums}. It runs while others leave GPUs free, and gives them "
            "back when they need theirs."
        ),
    )


def _check_fixed_quotas(gpus: Decimal, allocated: _Allocated, project: Project) -> FitCheck:
    """Check what is not preemptible, beside what holds GPUs and is not either.

    The scheduler counts no other work against a quota then: that gives way.
    """
    counts = (allocated.fixed_in_project, allocated.fixed_in_department)
    sums = ""
    for (owner, quota), count in zip(_list_gpu_quotas(project), counts, strict=True):
        if quota is None:
            continue
        owner_sums = (
            f"it needs {format_count(gpus, 'GPU')}; work of {owner} that is not preemptible holds "
            f"{format_number(count)} of its {format_count(quota, 'GPU')}"
        )
        if count + gpus > quota:
            return FitCheck(
                Verdict.WARNS,
                f"Over the quota: {owner_sums}. It is not preemptible either, so it waits until "
                "the quota has room.",
            )
        sums = sums or owner_sums
    return (
        FitCheck(Verdict.FITS, f"Within the quota: {sums}.")
        if sums
        else _describe_no_quota(project)
    )


def _describe_no_quota(project: Project) -> FitCheck:
    return FitCheck(
        Verdict.FITS, f"Project {project.name} has no GPU quota that could be exceeded."
    )


def _load_allocated_gpus(project: Project) -> _Allocated:
    """Load what the project, and its department on the cluster, hold. One query."""
    states = [status.value for status in ACTIVE | ENDING]
    rows = Workload.objects.filter(
        project__department=project.department_id,
        cluster=project.cluster_id,
        released_at=None,
        status__in=states,
        gpus_allocated__gt=0,
    )
    own, fixed = Q(project=project), Q(preemptible=False)
    sums = rows.aggregate(
        in_project=Sum("gpus_allocated", filter=own),
        fixed_in_project=Sum("gpus_allocated", filter=own & fixed),
        in_department=Sum("gpus_allocated"),
        fixed_in_department=Sum("gpus_allocated", filter=fixed),
    )
    return _Allocated(**{name: amount or NONE for name, amount in sums.items()})
