"""`/api/v1/org-unit/{projects,departments}/telemetry`: present quotas and allocations.

As one sum, or by fields of the rows.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from projects.api import quotas, schemas
from projects.api.base import ApiView, ListQuery
from projects.api.telemetry_answers import (
    GroupKey,
    build_parameters,
    build_schema,
    parse_cluster_id,
    parse_groups,
    parse_id,
    parse_type,
    serialize_telemetry,
)
from projects.models import Department, Project
from projects.shares import derive_parent_shares, to_json_number

GetAmount = Callable[[Any], int | float | None]


def _quota_getter(name: str) -> GetAmount:
    return lambda row: quotas.serialize_total(row.shares)[f"{name}Quota"]


def _allocation_getter(name: str) -> GetAmount:
    return lambda row: quotas.serialize_allocated(row.allocated).get(name, 0)


_AMOUNT_GETTERS: Mapping[str, GetAmount] = {
    **{f"{name.upper()}_QUOTA": _quota_getter(name) for name in ("gpu", "cpu", "memory")},
    **{f"{name.upper()}_ALLOCATION": _allocation_getter(name) for name in ("gpu", "cpu", "memory")},
}
_GROUPS: Mapping[str, Callable[[Project], GroupKey]] = {
    "ProjectId": lambda row: (str(row.pk), row.name),
    "DepartmentId": lambda row: (str(row.department_id), row.department.name),
    "ClusterId": lambda row: (str(row.cluster_id), ""),
}
_VALUE = "A number: devices, millicores or megabytes; -1 is without limit."
_ABOUT = "What is asked for. Allocations are as the cluster's queues tell them."
_PARAMETERS = [
    schemas.query_parameter("clusterId", schemas.ID, "Of the projects on this cluster."),
    schemas.query_parameter("departmentId", schemas.TEXT, "Of this department."),
]
_DEPARTMENT_GROUPS = ("DepartmentId",)


class ProjectsTelemetryView(ApiView):
    @extend_schema(
        operation_id="get_projects_telemetry",
        description="What the projects that you may see have, or hold, now.",
        parameters=[*build_parameters(_AMOUNT_GETTERS, _GROUPS, _ABOUT), *_PARAMETERS],
        responses={200: schemas.json_response(build_schema(_AMOUNT_GETTERS, _GROUPS, _VALUE))}
        | schemas.error_responses(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        query = ListQuery(request)
        rows = _filter_projects(Project.objects.visible_to(self.user), query)
        kind, groups = parse_type(query, _AMOUNT_GETTERS), parse_groups(query, _GROUPS)
        by_group: dict[tuple[GroupKey, ...], list[int | float | None]] = defaultdict(list)
        for row in rows:
            by_group[tuple(_GROUPS[each](row) for each in groups)].append(
                _AMOUNT_GETTERS[kind](row)
            )
        return Response(
            serialize_telemetry(
                kind, groups, {each: _sum_amounts(values) for each, values in by_group.items()}
            )
        )


class DepartmentsTelemetryView(ApiView):
    @extend_schema(
        operation_id="get_departments_telemetry",
        description=(
            "What the departments that you may see have, or hold, now. One without a quota has its "
            "projects' sum."
        ),
        parameters=[*build_parameters(_AMOUNT_GETTERS, _DEPARTMENT_GROUPS, _ABOUT), *_PARAMETERS],
        responses={
            200: schemas.json_response(build_schema(_AMOUNT_GETTERS, _DEPARTMENT_GROUPS, _VALUE))
        }
        | schemas.error_responses(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        query = ListQuery(request)
        kind = parse_type(query, _AMOUNT_GETTERS)
        groups = parse_groups(query, _DEPARTMENT_GROUPS)
        departments = Department.objects.visible_to(self.user)
        if key := query.text("departmentId"):
            departments = departments.filter(pk=parse_id("departmentId", key))
        projects: dict[int, list[Project]] = defaultdict(list)
        for project in _filter_projects(
            Project.objects.there().filter(department__in=departments), query
        ):
            projects[project.department_id].append(project)
        amounts: dict[tuple[GroupKey, ...], int | float | None] = {
            ((str(row.pk), row.name),): _sum_department(kind, row, projects[row.pk])
            for row in departments.order_by("name")
        }
        return Response(
            serialize_telemetry(
                kind, groups, amounts if groups else {(): _sum_amounts(amounts.values())}
            )
        )


def _sum_department(kind: str, row: Department, projects: Sequence[Project]) -> int | float | None:
    if kind.endswith("_QUOTA"):
        name = kind.partition("_")[0].lower()
        return quotas.serialize_total(
            derive_parent_shares(row.shares, (each.shares for each in projects))
        )[f"{name}Quota"]
    return _sum_amounts(_AMOUNT_GETTERS[kind](each) for each in projects)


def _filter_projects(rows: Any, query: ListQuery) -> Any:
    """Return the projects that the query selects. Raises Invalid."""
    if (cluster := parse_cluster_id(query)) is not None:
        rows = rows.filter(cluster=cluster)
    if key := query.text("departmentId"):
        rows = rows.filter(department=parse_id("departmentId", key))
    for name in ("nodepoolId", "nodepoolName"):
        if query.text(name) not in ("", "default"):
            raise Invalid([(name, f"{name} can only be default: a quota is of all nodes.")])
    return rows.select_related("department").order_by("name")


def _sum_amounts(amounts: Iterable[int | float | None]) -> int | float | None:
    """Return the sum; None, which is unlimited, where one amount is None."""
    values = list(amounts)
    if any(amount is None for amount in values):
        return None
    return to_json_number(sum((Decimal(str(amount)) for amount in values), Decimal(0)))
