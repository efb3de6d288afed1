"""`/api/v1/org-unit/{projects,departments}/telemetry`: present quotas and allocations.

As one sum, or by one field of the rows.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from console.texts import parse_number
from projects.api import quotas, schemas
from projects.api.base import ApiView, ListQuery
from projects.api.schemas import (
    MOMENT,
    TEXT,
    array_schema,
    describe_schema,
    enum_schema,
    object_schema,
)
from projects.models import Department, Project
from projects.shares import derive_parent_shares, to_json_number

GetAmount = Callable[[Any], int | float | None]
GroupKey = tuple[str, str]
"""An id and its name."""


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
_TELEMETRY = object_schema(
    ["type", "timestamp", "values"],
    type=enum_schema(*_AMOUNT_GETTERS),
    timestamp=MOMENT,
    values=array_schema(
        object_schema(
            ["value"],
            value=describe_schema(
                TEXT, "A number: devices, millicores or megabytes; -1 is without limit."
            ),
            groups=array_schema(
                object_schema(["key", "value"], key=enum_schema(*_GROUPS), value=TEXT, name=TEXT)
            ),
        )
    ),
)
_PARAMETERS = [
    schemas.query_parameter(
        "telemetryType",
        enum_schema(*_AMOUNT_GETTERS),
        "What is asked for. Allocations are as the cluster's queues tell them.",
    ),
    schemas.query_parameter("clusterId", schemas.ID, "Of the projects on this cluster."),
    schemas.query_parameter("departmentId", TEXT, "Of this department."),
]


def _group_parameter(names: Iterable[str]) -> Any:
    return schemas.query_parameter(
        "groupBy",
        enum_schema(*names),
        "A value for each of these; one for all where it is not given.",
    )


class ProjectsTelemetryView(ApiView):
    @extend_schema(
        operation_id="get_projects_telemetry",
        description="What the projects that you may see have, or hold, now.",
        parameters=[*_PARAMETERS, _group_parameter(_GROUPS)],
        responses={200: schemas.json_response(_TELEMETRY)} | schemas.error_responses(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        query = ListQuery(request)
        rows = _filter_projects(Project.objects.visible_to(self.user), query)
        kind, group = _parse_type(query), _parse_group(query, _GROUPS)
        by_group: dict[GroupKey, list[int | float | None]] = defaultdict(list)
        for row in rows:
            by_group[_GROUPS[group](row) if group else ("", "")].append(_AMOUNT_GETTERS[kind](row))
        return Response(
            _serialize_telemetry(
                kind, group, {each: _sum_amounts(values) for each, values in by_group.items()}
            )
        )


class DepartmentsTelemetryView(ApiView):
    @extend_schema(
        operation_id="get_departments_telemetry",
        description=(
            "What the departments that you may see have, or hold, now. One without a quota has its "
            "projects' sum."
        ),
        parameters=[*_PARAMETERS, _group_parameter(("DepartmentId",))],
        responses={200: schemas.json_response(_TELEMETRY)} | schemas.error_responses(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        query = ListQuery(request)
        kind, group = _parse_type(query), _parse_group(query, ("DepartmentId",))
        departments = Department.objects.visible_to(self.user)
        if key := query.text("departmentId"):
            departments = departments.filter(pk=_parse_id("departmentId", key))
        projects: dict[int, list[Project]] = defaultdict(list)
        for project in _filter_projects(
            Project.objects.there().filter(department__in=departments), query
        ):
            projects[project.department_id].append(project)
        amounts = {
            (str(row.pk), row.name): _sum_department(kind, row, projects[row.pk])
            for row in departments.order_by("name")
        }
        return Response(
            _serialize_telemetry(
                kind, group, amounts if group else {("", ""): _sum_amounts(amounts.values())}
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
    if key := query.text("clusterId"):
        try:
            rows = rows.filter(cluster=UUID(key))
        except ValueError:
            raise Invalid(
                [("clusterId", "clusterId must be the id (a UUID) of a cluster.")]
            ) from None
    if key := query.text("departmentId"):
        rows = rows.filter(department=_parse_id("departmentId", key))
    for name in ("nodepoolId", "nodepoolName"):
        if query.text(name) not in ("", "default"):
            raise Invalid([(name, f"{name} can only be default: a quota is of all nodes.")])
    return rows.select_related("department").order_by("name")


def _parse_id(name: str, text: str) -> int:
    key = parse_number(text)
    if key is None:
        raise Invalid([(name, f"{name} must be an id.")])
    return key


def _parse_type(query: ListQuery) -> str:
    if not query.text("telemetryType"):
        raise Invalid(
            [("telemetryType", f"telemetryType must be one of {', '.join(_AMOUNT_GETTERS)}.")]
        )
    return query.choice("telemetryType", tuple(_AMOUNT_GETTERS))


def _parse_group(query: ListQuery, names: Iterable[str]) -> str:
    return query.choice("groupBy", ("", *names))


def _sum_amounts(amounts: Iterable[int | float | None]) -> int | float | None:
    """Return the sum; None, which is unlimited, where one amount is None."""
    values = list(amounts)
    if any(amount is None for amount in values):
        return None
    return to_json_number(sum((Decimal(str(amount)) for amount in values), Decimal(0)))


def _serialize_telemetry(
    kind: str, group: str, amounts: Mapping[GroupKey, int | float | None]
) -> dict[str, Any]:
    values: list[dict[str, Any]] = []
    for (key, name), amount in amounts.items():
        groups = [{"key": group, "value": key} | ({"name": name} if name else {})] if group else []
        values.append({"value": str(-1 if amount is None else amount), "groups": groups})
    if not amounts and not group:
        values.append({"value": "0", "groups": []})
    return {"type": kind, "timestamp": timezone.now().isoformat(), "values": values}
