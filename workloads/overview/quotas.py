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
from workloads.overview.bars import Bar, bar
from workloads.overview.sights import Sight
from workloads.states import ACTIVE, LEAVING

SHOWN = 5
"""Of the highest, and of the lowest."""
_ENOUGH = 2 * SHOWN + 1
"""Of those that are equal, so many from either end decide what is shown, and that not all of it is.
"""
_ZERO = Decimal(0)

AnyModel = TypeVar("AnyModel", bound=Model)


@dataclass(frozen=True)
class Row:
    """`ratio` is what is held of the quota; None where there is no quota to compare with."""

    id: int
    name: str
    held: Decimal
    quota: Decimal | None
    limit: Decimal | None

    @property
    def bar(self) -> Bar:
        return bar(self.held, self.quota, self.limit)

    @cached_property
    def ratio(self) -> Decimal | None:
        return self.held / self.quota if self.quota else None


@dataclass(frozen=True)
class Quotas:
    """All rows, the ones with the highest ratio first; those without one come last."""

    rows: Sequence[Row]

    @cached_property
    def highest(self) -> Sequence[Row]:
        return self.rows[:SHOWN] if len(self.rows) > 2 * SHOWN else self.rows

    @cached_property
    def lowest(self) -> Sequence[Row]:
        """Empty where `highest` has all of them."""
        compared = [row for row in self.rows if row.ratio is not None]
        return compared[SHOWN:][-SHOWN:] if len(self.rows) > 2 * SHOWN else ()


def held_by(project: Project) -> Decimal:
    """GPUs that the workloads of a project hold now. One query."""
    return _at_work().filter(project=project).aggregate(gpus=Sum("gpus_allocated"))["gpus"] or _ZERO


def _at_work() -> "QuerySet[Workload]":
    return Workload.objects.filter(
        status__in=[each.value for each in ACTIVE | LEAVING], released_at=None, gpus_allocated__gt=0
    )


@dataclass(frozen=True, slots=True)
class Held:
    """What is held now: the rows of the projects that hold something, and what the projects of
    departments do, each by id.
    """

    projects: Mapping[int, Row]
    departments: Mapping[int, Decimal]


def held(sight: Sight) -> Held:
    """Of the projects and of the departments that are seen. One query."""
    mine = Q(project__in=sight.projects or ()) | Q(project__department__in=sight.departments or ())
    seen = Q() if sight.projects is None or sight.departments is None else mine
    columns = (
        "project__department_id",
        "project_id",
        "project__name",
        "project__gpu_quota",
        "project__gpu_limit",
    )
    rows = (
        _at_work()
        .filter(Q(project__left_at=None), seen)
        .order_by()
        .values_list(*columns)
        .annotate(Sum("gpus_allocated"))
    )
    projects: dict[int, Row] = {}
    departments: dict[int, Decimal] = defaultdict(Decimal)
    for department, pk, name, quota, limit, gpus in rows:
        if sight.projects is None or pk in sight.projects:
            projects[pk] = Row(pk, name, gpus, quota, limit)
        if sight.departments is None or department in sight.departments:
            departments[department] += gpus
    return Held(projects, departments)


def of_projects(sight: Sight, held: Held) -> Quotas:
    """Of the projects that are seen, those among which the highest and the lowest of all of them
    are. Three queries.
    """
    has_quota = Q(gpu_quota__gt=0)
    ends = {
        row.id: row
        for some in _ends(sight.project_rows(), has_quota, len(held.projects))
        for row in _idle(some)
    }
    # Something may have been given away between two queries.
    return _sorted(
        [*held.projects.values(), *(row for key, row in ends.items() if key not in held.projects)]
    )


def all_projects(sight: Sight, held: Held) -> Sequence[Row]:
    """Every project that is seen, the one with the highest ratio first. One query."""
    return _sorted([held.projects.get(row.id, row) for row in _idle(sight.project_rows())]).rows


def of_departments(sight: Sight, held: Held) -> Quotas:
    """Of the departments that are seen, those among which the highest and the lowest of all of them
    are. Five queries.

    The quota is their own, or the sum of their projects'.
    """
    rows = sight.department_rows()
    projects = Project.objects.there().filter(department=OuterRef("pk"))
    has_sum = ~Exists(projects.filter(gpu_quota=None)) & Exists(projects.filter(gpu_quota__gt=0))
    has_quota = Q(gpu_quota__gt=0) | Q(Q(gpu_quota=None), has_sum)
    ends = {
        key
        for some in _ends(rows, has_quota, len(held.departments))
        for key in some.values_list("pk", flat=True)
    }
    return _departments(rows.filter(pk__in=ends | held.departments.keys()), held)


def all_departments(sight: Sight, held: Held) -> Sequence[Row]:
    """Every department that is seen, the one with the highest ratio first. Two queries."""
    return _departments(sight.department_rows(), held).rows


def _ends(rows: "QuerySet[AnyModel]", has_quota: Q, holding: int) -> "Sequence[QuerySet[AnyModel]]":
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


def _idle(rows: "QuerySet[Project]") -> Sequence[Row]:
    return [
        Row(pk, name, _ZERO, quota, limit)
        for pk, name, quota, limit in rows.values_list("pk", "name", "gpu_quota", "gpu_limit")
    ]


def _departments(rows: "QuerySet[Department]", held: Held) -> Quotas:
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
    return _sorted(
        [
            Row(
                pk,
                name,
                held.departments.get(pk, _ZERO),
                sums.get(pk, _ZERO) if own is None else own,
                limit,
            )
            for pk, name, own, limit in rows.values_list("pk", "name", "gpu_quota", "gpu_limit")
        ]
    )


def _sorted(rows: Sequence[Row]) -> Quotas:
    return Quotas(
        sorted(rows, key=lambda row: (row.ratio is None, -(row.ratio or _ZERO), row.name))
    )
