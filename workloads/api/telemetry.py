"""`GET /api/v1/workloads/telemetry`: how many workloads there are now, and what they hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import itemgetter
from typing import Any

from django.db.models import Aggregate, Count, QuerySet, Sum
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from projects.api import schemas
from projects.api.base import ApiView, ListQuery
from projects.api.telemetry_answers import (
    MAX_VALUES,
    GroupKey,
    build_parameters,
    build_schema,
    parse_cluster_id,
    parse_groups,
    parse_id,
    parse_type,
    serialize_telemetry,
)
from projects.shares import to_json_number
from workloads.filter_catalogue import ARCHITECTURES
from workloads.models import Workload
from workloads.phases import PHASES, get_phase
from workloads.states import Status


@dataclass(frozen=True, slots=True)
class Group:
    """The columns of a group's id and name; `words` are what REST calls some ids."""

    column: str
    name: str = ""
    words: Mapping[str, str] | None = None

    @property
    def columns(self) -> Sequence[str]:
        return (self.column, self.name) if self.name else (self.column,)

    def get_key(self, row: Mapping[str, Any]) -> GroupKey:
        value = str(row[self.column])
        return (self.words or {}).get(value, value), str(row[self.name]) if self.name else ""


_TYPES: Mapping[str, Aggregate] = {
    "WORKLOADS_COUNT": Count("pk"),
    "GPU_ALLOCATION": Sum("gpus_allocated"),
}
_GROUPS: Mapping[str, Group] = {
    "ProjectId": Group("project_id", "project__name"),
    "DepartmentId": Group("project__department_id", "project__department__name"),
    "ClusterId": Group("cluster_id"),
    "Type": Group("architecture", words={value: name for name, value in ARCHITECTURES.items()}),
    "Framework": Group("framework"),
    "Phase": Group("status", words={each.value: get_phase(each) for each in Status}),
}


class WorkloadsTelemetryView(ApiView):
    @extend_schema(
        operation_id="get_workloads_telemetry",
        description=(
            "How many workloads you may see, without deleted ones, and the GPUs that they hold. "
            f"At most {MAX_VALUES:,} values, the largest first."
        ),
        parameters=[
            *build_parameters(_TYPES, _GROUPS, "What is asked for."),
            schemas.query_parameter("clusterId", schemas.ID, "Of those on this cluster."),
            schemas.query_parameter("departmentId", schemas.TEXT, "Of those of this department."),
            schemas.query_parameter(
                "filterByPhases",
                schemas.array_schema(schemas.enum_schema(*PHASES)),
                "Of those in one of these phases.",
            ),
        ],
        responses={
            200: schemas.json_response(
                build_schema(_TYPES, _GROUPS, "A number: workloads, or devices.")
            )
        }
        | schemas.error_responses(400, 401),
        tags=["workloads"],
    )
    def get(self, request: Request) -> Response:
        query = ListQuery(request)
        kind, names = parse_type(query, _TYPES), parse_groups(query, _GROUPS)
        groups = [_GROUPS[name] for name in names]
        columns = [column for group in groups for column in group.columns]
        rows = _filter_workloads(Workload.objects.visible_to(self.user), query).order_by()
        if not groups:
            total = rows.aggregate(amount=_TYPES[kind])["amount"]
            return Response(serialize_telemetry(kind, names, {(): _serialize_amount(total)}))
        totals = rows.values(*columns).annotate(amount=_TYPES[kind])
        amounts: dict[tuple[GroupKey, ...], Any] = {}
        for row in totals.order_by("-amount", *columns)[:MAX_VALUES]:
            key = tuple(group.get_key(row) for group in groups)
            # Two statuses may be one phase.
            amounts[key] = amounts.get(key, 0) + (row["amount"] or 0)
        largest = sorted(amounts.items(), key=itemgetter(1), reverse=True)
        values = {key: _serialize_amount(amount) for key, amount in largest}
        return Response(serialize_telemetry(kind, names, values))


def _filter_workloads(rows: Any, query: ListQuery) -> "QuerySet[Workload]":
    """Return the workloads that the query selects. Raises Invalid."""
    rows = rows.filter(released_at=None)
    if (cluster := parse_cluster_id(query)) is not None:
        rows = rows.filter(cluster=cluster)
    if key := query.text("departmentId"):
        rows = rows.filter(project__department=parse_id("departmentId", key))
    if phases := query.choices("filterByPhases", PHASES, len(PHASES)):
        rows = rows.filter(status__in=[each for each in Status if get_phase(each) in phases])
    if query.text("nodepoolName"):
        raise Invalid(
            [
                (
                    "nodepoolName",
                    "nodepoolName is not supported: a workload may be on nodes of several pools. "
                    "GET /api/v1/nodes/telemetry has what is allocated in each.",
                )
            ]
        )
    filtered: QuerySet[Workload] = rows
    return filtered


def _serialize_amount(amount: Decimal | int | None) -> int | float | None:
    return to_json_number(Decimal(amount or 0))
