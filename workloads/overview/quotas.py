"""Quotas against allocations, of each project and of each department's projects together."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TypeVar

from django.db.models import Exists, Model, OuterRef, Q, QuerySet, Sum

from projects.department_sums import (
    QUOTA_SUMS,
    annotate_sums,
    gpu_limit_on_all_clusters,
    gpu_quota_on_all_clusters,
)
from projects.models import Department, Project
from workloads.models import Workload
from workloads.overview.bars import Bar, build_bar
from workloads.overview.viewer_scope import ViewerScope
from workloads.states import ACTIVE, ENDING

MOST_SHOWN = 5
"""Of the highest, and of the lowest."""
_ENOUGH = 2 * MOST_SHOWN + 1
"""Of equal ratios, so many rows from either end decide what is shown, and that not all of it is."""
_ZERO = Decimal(0)

AnyModel = TypeVar("AnyModel", bound=Model)


@dataclass(frozen=True)
class QuotaRow:
    """`ratio` is the allocated part of the quota; None without a quota."""

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
    """All rows, the highest ratio first; rows without a ratio come last."""

    rows: Sequence[QuotaRow]

    @cached_property
    def highest(self) -> Sequence[QuotaRow]:
        return self.rows[:MOST_SHOWN] if len(self.rows) > 2 * MOST_SHOWN else self.rows

    @cached_property
    def lowest(self) -> Sequence[QuotaRow]:
        """Empty where `highest` has all rows."""
        compared = [row for row in self.rows if row.ratio is not None]
        return compared[MOST_SHOWN:][-MOST_SHOWN:] if len(self.rows) > 2 * MOST_SHOWN else ()


def sum_project_gpus(project: Project) -> tuple[Decimal, Decimal]:
    """Return the GPUs that a project's workloads hold now, and those of them that nobody may take.

    One query.
    """
    fixed = Sum("gpus_allocated", filter=Q(preemptible=False))
    sums = _filter_active().filter(project=project)
    totals = sums.aggregate(gpus=Sum("gpus_allocated"), fixed=fixed)
    return totals["gpus"] or _ZERO, totals["fixed"] or _ZERO


def _filter_active() -> "QuerySet[Workload]":
    return Workload.objects.filter(
        status__in=[each.value for each in ACTIVE | ENDING], released_at=None, gpus_allocated__gt=0
    )


@dataclass(frozen=True, slots=True)
class GpuUsage:
    """The current allocation: rows of projects that hold GPUs, and sums of departments, by id."""

    projects: Mapping[int, QuotaRow]
    departments: Mapping[int, Decimal]


def load_gpu_usage(scope: ViewerScope) -> GpuUsage:
    """Load the allocation of the visible projects and departments.

    One query.
    """
    is_visible = Q(project__in=scope.projects or ()) | Q(
        project__department__in=scope.departments or ()
    )
    visibility = Q() if scope.projects is None or scope.departments is None else is_visible
    columns = (
        "project__department_id",
        "project_id",
        "project__name",
        "project__gpu_quota",
        "project__gpu_limit",
    )
    rows = (
        _filter_active()
        .filter(Q(project__deleted_at=None), visibility)
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
    """Return the visible projects among which the highest and lowest ratios are.

    Three queries.
    """
    has_quota = Q(gpu_quota__gt=0)
    ends = {
        row.id: row
        for extreme_rows in _select_extremes(scope.project_rows(), has_quota, len(usage.projects))
        for row in _build_empty_rows(extreme_rows)
    }
    # A project may have allocated GPUs between the two queries: its row from the first counts.
    return _rank_rows(
        [*usage.projects.values(), *(row for key, row in ends.items() if key not in usage.projects)]
    )


def list_projects(scope: ViewerScope, usage: GpuUsage) -> Sequence[QuotaRow]:
    """Return every visible project, the highest ratio first.

    One query.
    """
    return _rank_rows(
        [usage.projects.get(row.id, row) for row in _build_empty_rows(scope.project_rows())]
    ).rows


def rank_departments(scope: ViewerScope, usage: GpuUsage) -> QuotaRanking:
    """Return the visible departments among which the highest and lowest ratios are.

    Four queries. The quota is their own, on each of their clusters, or the sum of their projects'.
    """
    rows = scope.department_rows()
    projects = Project.objects.there().filter(department=OuterRef("pk"))
    has_sum = ~Exists(projects.filter(gpu_quota=None)) & Exists(projects.filter(gpu_quota__gt=0))
    has_quota = Q(gpu_quota__gt=0) | Q(Q(gpu_quota=None), has_sum)
    ends = {
        key
        for extreme_rows in _select_extremes(rows, has_quota, len(usage.departments))
        for key in extreme_rows.values_list("pk", flat=True)
    }
    return _build_department_ranking(rows.filter(pk__in=ends | usage.departments.keys()), usage)


def list_departments(scope: ViewerScope, usage: GpuUsage) -> Sequence[QuotaRow]:
    """Return every visible department, the highest ratio first.

    One query.
    """
    return _build_department_ranking(scope.department_rows(), usage).rows


def _select_extremes(
    rows: "QuerySet[AnyModel]", has_quota: Q, holding: int
) -> "Sequence[QuerySet[AnyModel]]":
    """Return rows without an allocation that may be among the highest or lowest.

    `holding` is the number of rows with one. Rows without an allocation use none of their quota, or
    have none: only the first and the last of them by name, in the database's order, can be shown.
    """
    with_quota, without = rows.filter(has_quota), rows.exclude(has_quota)
    # Up to `holding` of the first rows have an allocation and are dropped by the caller.
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
    """Rank these departments by their own quotas on all clusters, or the sums of their projects'.

    One query.
    """
    columns = ("pk", "name", "gpu_quota", "gpu_limit", *QUOTA_SUMS)
    return _rank_rows(
        [
            QuotaRow(
                row.pk,
                row.name,
                usage.departments.get(row.pk, _ZERO),
                gpu_quota_on_all_clusters(row),
                gpu_limit_on_all_clusters(row),
            )
            for row in annotate_sums(rows).values_list(*columns, named=True)
        ]
    )


def _rank_rows(rows: Sequence[QuotaRow]) -> QuotaRanking:
    return QuotaRanking(
        sorted(rows, key=lambda row: (row.ratio is None, -(row.ratio or _ZERO), row.name))
    )
