"""Quotas against what is held: of each project, and of each department's projects together."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from django.db.models import Count, Q, QuerySet, Sum

from projects.models import Project
from workloads.models import Workload
from workloads.overview.bars import Bar, bar
from workloads.overview.sights import Sight
from workloads.states import ACTIVE, LEAVING

MOST = 2000
"""Projects that are compared."""
SHOWN = 5
"""Of the highest, and of the lowest."""
_ZERO = Decimal(0)


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


def held_by(projects: Sequence[int] | None = None) -> dict[int, Decimal]:
    """GPUs that the workloads of each project hold now. One query."""
    rows = _at_work() if projects is None else _at_work().filter(project__in=projects)
    return dict(rows.order_by().values_list("project_id").annotate(Sum("gpus_allocated")))


def _at_work() -> "QuerySet[Workload]":
    return Workload.objects.filter(status__in=[each.value for each in ACTIVE | LEAVING], released_at=None, gpus_allocated__gt=0)


def of_projects(sight: Sight) -> Quotas:
    """Of the projects that are seen. Two queries."""
    found = list(sight.project_rows().order_by("name").values_list("pk", "name", "gpu_quota", "gpu_limit")[:MOST])
    held = held_by(None if sight.projects is None else [row[0] for row in found])
    return _sorted([Row(pk, name, held.get(pk, _ZERO), quota, limit) for pk, name, quota, limit in found])


def of_departments(sight: Sight) -> Quotas:
    """Of the departments that are seen: a quota of their own, or the sum of their projects'. Three queries."""
    departments = list(sight.department_rows().order_by("name").values_list("pk", "name", "gpu_quota", "gpu_limit")[:MOST])
    seen = sight.department_rows()
    projects = Project.objects.there().filter(department__in=seen).order_by().values_list("department_id")
    added = projects.annotate(quota=Sum("gpu_quota"), unlimited=Count("id", filter=Q(gpu_quota=None)))
    sums = {key: None if unlimited else quota for key, quota, unlimited in added}
    at_work = _at_work().filter(project__department__in=seen, project__left_at=None)
    held = dict(at_work.order_by().values_list("project__department_id").annotate(Sum("gpus_allocated")))
    return _sorted(
        [Row(pk, name, held.get(pk, _ZERO), sums.get(pk, _ZERO) if own is None else own, limit) for pk, name, own, limit in departments]
    )


def _sorted(rows: Sequence[Row]) -> Quotas:
    return Quotas(sorted(rows, key=lambda row: (row.ratio is None, -(row.ratio or _ZERO), row.name)))
