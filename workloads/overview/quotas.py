"""Quotas against what is held: of each project, and of each department's projects together."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TypeVar

from django.db.models import Count, Exists, Model, OuterRef, Q, QuerySet, Sum

from projects.models import Department, Project
from workloads.models import Workload
from workloads.overview.bars import Bar, build_bar
from workloads.overview.viewer_scope import ViewerScope
from workloads.states import ACTIVE, ENDING

MOST_SHOWN = 5
"""Of the highest, and of the lowest."""
_ENOUGH = 2 * MOST_SHOWN + 1
"""Of those that are equal, so many from either end decide what is shown, and that not all of it is.
"""
_ZERO = Decimal(0)

AnyModel = TypeVar("AnyModel", bound=Model)


@dataclass(frozen=True)
class QuotaRow:
    """`ratio` is what is held of the quota; None where there is no quota to compare with."""

    id: int
    name: str
    allocated: Decimal
    quota: Decimal | None
    limit: Decimal | None

    @property
    def bar(self) -> Bar:
        return build_bar(self.allocated, self.quota, self.limit)

    @cached_property
    def ratio(self) -> Decimal | None:
        return self.allocated / self.quota if self.quota else None


@dataclass(frozen=True)
class QuotaRanking:
    """All rows, the ones with the highest ratio first; those without one come last."""

    rows: Sequence[QuotaRow]

    @cached_property
    def highest(self) -> Sequence[QuotaRow]:
        return self.rows[:MOST_SHOWN] if len(self.rows) > 2 * MOST_SHOWN else self.rows

    @cached_property
    def lowest(self) -> Sequence[QuotaRow]:
        """Empty where `highest` has all of them."""
        compared = [row for row in self.rows if row.ratio is not None]
        return compared[MOST_SHOWN:][-MOST_SHOWN:] if len(self.rows) > 2 * MOST_SHOWN else ()


def sum_project_gpus(project: Project) -> Decimal:
    """GPUs that the workloads of a project hold now. One query."""
    return (
        _filter_active().filter(project=project).aggregate(gpus=Sum("gpus_allocated"))["gpus"]
        or _ZERO
    )


def _filter_active() -> "QuerySet[Workload]":
    return Workload.objects.filter(
        status__in=[each.value for each in ACTIVE | ENDING], released_at=None, gpus_allocated__gt=0
    )


@dataclass(frozen=True, slots=True)
class GpuUsage:
    """What is held now: the rows of the projects that hold something, and what the projects of
    departments do, each by id.
    """

    projects: Mapping[int, QuotaRow]
    departments: Mapping[int, Decimal]


def load_gpu_usage(scope: ViewerScope) -> GpuUsage:
    """Of the projects and of the departments that are seen. One query."""
    mine = Q(project__in=scope.projects or ()) | Q(project__department__in=scope.departments or ())
    seen = Q() if scope.projects is None or scope.departments is None else mine
    columns = (
        "project__department_id",
        "project_id",
        "project__name",
        "project__gpu_quota",
        "project__gpu_limit",
    )
    rows = (
        _filter_active()
        .filter(Q(project__left_at=None), seen)
        .order_by()
        .values_list(*columns)
        .annotate(Sum("gpus_allocated"))
    )
    projects: dict[int, QuotaRow] = {}
    departments: dict[int, Decimal] = defaultdict(Decimal)
    for department, pk, name, quota, limit, gpus in rows:
        if scope.projects is None or pk in scope.projects:
            projects[pk] = QuotaRow(pk, name, gpus, quota, limit)
        if scope.departments is None or department in scope.departments:
            departments[department] += gpus
    return GpuUsage(projects, departments)


def rank_projects(scope: ViewerScope, usage: GpuUsage) -> QuotaRanking:
    """Of the projects that are seen, those among which the highest and the lowest of all of them
    are. Three queries.
    """
    has_quota = Q(gpu_quota__gt=0)
    ends = {
        row.id: row
        for some in _select_extremes(scope.project_rows(), has_quota, len(usage.projects))
        for row in _build_empty_rows(some)
    }
    # Something may have been given away between two queries.
    return _rank_rows(
        [*usage.projects.values(), *(row for key, row in ends.items() if key not in usage.projects)]
    )


def list_projects(scope: ViewerScope, usage: GpuUsage) -> Sequence[QuotaRow]:
    """Every project that is seen, the one with the highest ratio first. One query."""
    return _rank_rows(
        [usage.projects.get(row.id, row) for row in _build_empty_rows(scope.project_rows())]
    ).rows


def rank_departments(scope: ViewerScope, usage: GpuUsage) -> QuotaRanking:
    """Of the departments that are seen, those among which the highest and the lowest of all of them
    are. Five queries.

    The quota is their own, or the sum of their projects'.
    """
    rows = scope.department_rows()
    projects = Project.objects.there().filter(department=OuterRef("pk"))
    has_sum = ~Exists(projects.filter(gpu_quota=None)) & Exists(projects.filter(gpu_quota__gt=0))
    has_quota = Q(gpu_quota__gt=0) | Q(Q(gpu_quota=None), has_sum)
    ends = {
        key
        for some in _select_extremes(rows, has_quota, len(usage.departments))
        for key in some.values_list("pk", flat=True)
    }
    return _build_department_ranking(rows.filter(pk__in=ends | usage.departments.keys()), usage)


def list_departments(scope: ViewerScope, usage: GpuUsage) -> Sequence[QuotaRow]:
    """Every department that is seen, the one with the highest ratio first. Two queries."""
    return _build_department_ranking(scope.department_rows(), usage).rows


def _select_extremes(
    rows: "QuerySet[AnyModel]", has_quota: Q, holding: int
) -> "Sequence[QuerySet[AnyModel]]":
    """Of rows of which so many hold something, those others among which the highest and the lowest
    are.

    Each of the others is at nothing of its quota, or has none: only the first and the last of them
    by name, as the database orders names, can be shown.
    """
    with_quota, without = rows.filter(has_quota), rows.exclude(has_quota)
    # Those that hold something may come first: so many more are looked at.
    return [
        order[: _ENOUGH + holding]
        for order in (
            with_quota.order_by("name"),
            with_quota.order_by("-name"),
            without.order_by("name"),
        )
    ]


def _build_empty_rows(rows: "QuerySet[Project]") -> Sequence[QuotaRow]:
    return [
        QuotaRow(pk, name, _ZERO, quota, limit)
        for pk, name, quota, limit in rows.values_list("pk", "name", "gpu_quota", "gpu_limit")
    ]


def _build_department_ranking(rows: "QuerySet[Department]", usage: GpuUsage) -> QuotaRanking:
    """Two queries."""
    projects = (
        Project.objects.there()
        .filter(department__in=rows.order_by().values("pk"))
        .order_by()
        .values_list("department_id")
    )
    added = projects.annotate(
        quota=Sum("gpu_quota"), unlimited=Count("id", filter=Q(gpu_quota=None))
    )
    sums = {key: None if unlimited else quota for key, quota, unlimited in added}
    return _rank_rows(
        [
            QuotaRow(
                pk,
                name,
                usage.departments.get(pk, _ZERO),
                sums.get(pk, _ZERO) if own is None else own,
                limit,
            )
            for pk, name, own, limit in rows.values_list("pk", "name", "gpu_quota", "gpu_limit")
        ]
    )


def _rank_rows(rows: Sequence[QuotaRow]) -> QuotaRanking:
    return QuotaRanking(
        sorted(rows, key=lambda row: (row.ratio is None, -(row.ratio or _ZERO), row.name))
    )
