"""`/api/v1/org-unit/{projects,departments}/telemetry`: what they have and hold now, in sum or by
one of their fields.
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
from projects.api import quotas, schemas
from projects.api.base import ApiView, Asked
from projects.api.schemas import MOMENT, TEXT, array, obj, said, words
from projects.models import Department, Project
from projects.shares import above, number

Amount = Callable[[Any], int | float | None]
Group = tuple[str, str]
"""An id, and what it is called."""


def _quota(name: str) -> Amount:
    return lambda row: quotas.total(row.shares)[f"{name}Quota"]


def _allocation(name: str) -> Amount:
    return lambda row: quotas.allocated(row.allocated).get(name, 0)


_TYPES: Mapping[str, Amount] = {
    **{f"{name.upper()}_QUOTA": _quota(name) for name in ("gpu", "cpu", "memory")},
    **{f"{name.upper()}_ALLOCATION": _allocation(name) for name in ("gpu", "cpu", "memory")},
}
_GROUPS: Mapping[str, Callable[[Project], Group]] = {
    "ProjectId": lambda row: (str(row.pk), row.name),
    "DepartmentId": lambda row: (str(row.department_id), row.department.name),
    "ClusterId": lambda row: (str(row.cluster_id), ""),
}
_TOLD = obj(
    ["type", "timestamp", "values"],
    type=words(*_TYPES),
    timestamp=MOMENT,
    values=array(
        obj(
            ["value"],
            value=said(TEXT, "A number: devices, millicores or megabytes; -1 is without limit."),
            groups=array(obj(["key", "value"], key=words(*_GROUPS), value=TEXT, name=TEXT)),
        )
    ),
)
_PARAMETERS = [
    schemas.parameter(
        "telemetryType",
        words(*_TYPES),
        "What is asked for. Allocations are as the cluster's queues tell them.",
    ),
    schemas.parameter("clusterId", schemas.ID, "Of the projects on this cluster."),
    schemas.parameter("departmentId", TEXT, "Of this department."),
]


def _grouping(names: Iterable[str]) -> Any:
    return schemas.parameter(
        "groupBy", words(*names), "A value for each of these; one for all where it is not given."
    )


class ProjectsTelemetryView(ApiView):
    @extend_schema(
        operation_id="get_projects_telemetry",
        description="What the projects that you may see have, or hold, now.",
        parameters=[*_PARAMETERS, _grouping(_GROUPS)],
        responses={200: schemas.answer(_TOLD)} | schemas.errors(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        asked = Asked(request)
        rows = _projects(Project.objects.visible_to(self.user), asked)
        kind, group = _type(asked), _group(asked, _GROUPS)
        found: dict[Group, list[int | float | None]] = defaultdict(list)
        for row in rows:
            found[_GROUPS[group](row) if group else ("", "")].append(_TYPES[kind](row))
        return Response(
            _told(kind, group, {each: _sum(amounts) for each, amounts in found.items()})
        )


class DepartmentsTelemetryView(ApiView):
    @extend_schema(
        operation_id="get_departments_telemetry",
        description=(
            "What the departments that you may see have, or hold, now. One without a quota has its "
            "projects' sum."
        ),
        parameters=[*_PARAMETERS, _grouping(("DepartmentId",))],
        responses={200: schemas.answer(_TOLD)} | schemas.errors(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        asked = Asked(request)
        kind, group = _type(asked), _group(asked, ("DepartmentId",))
        departments = Department.objects.visible_to(self.user)
        if key := asked.text("departmentId"):
            departments = departments.filter(pk=_whole("departmentId", key))
        projects: dict[int, list[Project]] = defaultdict(list)
        for project in _projects(Project.objects.there().filter(department__in=departments), asked):
            projects[project.department_id].append(project)
        found = {
            (str(row.pk), row.name): _of_department(kind, row, projects[row.pk])
            for row in departments.order_by("name")
        }
        return Response(_told(kind, group, found if group else {("", ""): _sum(found.values())}))


def _of_department(kind: str, row: Department, projects: Sequence[Project]) -> int | float | None:
    if kind.endswith("_QUOTA"):
        name = kind.partition("_")[0].lower()
        return quotas.total(above(row.shares, (each.shares for each in projects)))[f"{name}Quota"]
    return _sum(_TYPES[kind](each) for each in projects)


def _projects(rows: Any, asked: Asked) -> Any:
    """Those that are asked for. Raises Invalid."""
    if key := asked.text("clusterId"):
        try:
            rows = rows.filter(cluster=UUID(key))
        except ValueError:
            raise Invalid(
                [("clusterId", "clusterId must be the id (a UUID) of a cluster.")]
            ) from None
    if key := asked.text("departmentId"):
        rows = rows.filter(department=_whole("departmentId", key))
    for name in ("nodepoolId", "nodepoolName"):
        if asked.text(name) not in ("", "default"):
            raise Invalid([(name, f"{name} can only be default: a quota is of all nodes.")])
    return rows.select_related("department").order_by("name")


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Invalid([(name, f"{name} must be an id.")])
    return int(text)


def _type(asked: Asked) -> str:
    if not asked.text("telemetryType"):
        raise Invalid([("telemetryType", f"telemetryType must be one of {', '.join(_TYPES)}.")])
    return asked.choice("telemetryType", tuple(_TYPES))


def _group(asked: Asked, names: Iterable[str]) -> str:
    return asked.choice("groupBy", ("", *names))


def _sum(amounts: Iterable[int | float | None]) -> int | float | None:
    """None, which is without limit, where one of them is."""
    each = list(amounts)
    if any(amount is None for amount in each):
        return None
    return number(sum((Decimal(str(amount)) for amount in each), Decimal(0)))


def _told(kind: str, group: str, found: Mapping[Group, int | float | None]) -> dict[str, Any]:
    values: list[dict[str, Any]] = []
    for (key, name), amount in found.items():
        groups = [{"key": group, "value": key} | ({"name": name} if name else {})] if group else []
        values.append({"value": str(-1 if amount is None else amount), "groups": groups})
    if not found and not group:
        values.append({"value": "0", "groups": []})
    return {"type": kind, "timestamp": timezone.now().isoformat(), "values": values}
