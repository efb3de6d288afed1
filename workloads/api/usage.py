"""`GET /api/v1/usage`: what became of GPU hours in a month, by project, person, workload or day."""

from datetime import UTC, datetime
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from projects import access
from projects.api import filtering, schemas
from projects.api.base import ApiView, ListQuery, build_list_body
from projects.api.schemas import (
    INTEGER,
    NUMBER,
    TEXT,
    Schema,
    array_schema,
    describe_schema,
    enum_schema,
    object_schema,
)
from projects.permissions import Entity, Verb
from workloads.ledger import KINDS, Amounts, Costs, Kind, Month, get_month, parse_month, to_hours
from workloads.models import LedgerEntry
from workloads.queries import ledger
from workloads.queries.ledger import Grouping, LedgerGroup

FIELDS = {
    "projectId": filtering.id_field("project_id"),
    "projectName": filtering.text_field("project__name"),
    "user": filtering.text_field("user"),
    "workloadId": filtering.uuid_field("workload"),
    "workloadName": filtering.text_field("workload_name"),
    "nodePool": filtering.text_field("pool_name"),
}
HOURS = {
    Kind.USEFUL: "usefulHours",
    Kind.WAITING: "waitingForDataHours",
    Kind.IDLE: "idleHours",
    Kind.LOST: "lostHours",
    Kind.STARTING: "startingHours",
    Kind.UNKNOWN: "unknownHours",
    Kind.QUEUED: "queuedHours",
    Kind.PREPARING: "preparingDataHours",
}
SORTS = {"allocatedHours": "allocated", "name": "name"} | {
    name: kind.value for kind, name in HOURS.items()
}
_COST = object_schema(["currency", "amount"], currency=TEXT, amount=NUMBER)
_HOURS_SCHEMA = {HOURS[kind]: describe_schema(NUMBER, kind.about) for kind in KINDS} | {
    "allocatedHours": describe_schema(
        NUMBER, "What pods held: the sum of all but queuedHours and preparingDataHours."
    ),
    "costs": describe_schema(
        array_schema(_COST), "By currency, of node pools with a price; empty where none has one."
    ),
    "hoursWithoutPrice": NUMBER,
    "kilowattHours": describe_schema(
        {"type": ["number", "null"]},
        "What the GPUs took, measured or by the power of node pools; null where neither is known.",
    ),
    "hoursWithoutPower": NUMBER,
}
AMOUNTS: Schema = object_schema(list(_HOURS_SCHEMA), **_HOURS_SCHEMA)
GROUP: Schema = object_schema(
    ["name", *_HOURS_SCHEMA],
    name=TEXT,
    projectId=describe_schema(TEXT, "Of a project, and of a workload."),
    projectName=TEXT,
    workloadId=schemas.ID,
    user=describe_schema(TEXT, "Who submitted it; empty where that is nobody any more."),
    day={"type": "string", "format": "date"},
    **_HOURS_SCHEMA,
)
USAGE: Schema = object_schema(
    ["month", "groupBy", "total", "usage"],
    month=TEXT,
    groupBy=enum_schema(*Grouping),
    total=describe_schema(AMOUNTS, "Of all that is asked for, whatever the page."),
    usage=array_schema(GROUP),
    next=describe_schema(INTEGER, "The offset of the items after these; missing at the end."),
)


class UsageView(ApiView):
    @extend_schema(
        operation_id="list_usage",
        description=(
            "What became of the GPU-hours of a month, in UTC, of the projects whose workloads you "
            "may see. The largest come first."
        ),
        parameters=[
            schemas.query_parameter(
                "month",
                TEXT | {"pattern": "^20[0-9]{2}-(0[1-9]|1[0-2])$"},
                "As 2026-11; the present month without it.",
            ),
            schemas.query_parameter("groupBy", enum_schema(*Grouping), "What is added up."),
            schemas.query_parameter("sortBy", enum_schema(*SORTS), "What it is sorted by."),
            schemas.query_parameter(
                "sortOrder", enum_schema("desc", "asc"), "Without it the largest come first."
            ),
            schemas.filter_parameters(FIELDS)[0],
            *schemas.paging_parameters(),
        ],
        responses={200: schemas.json_response(USAGE)} | schemas.error_responses(400, 401, 403),
        tags=["workloads"],
    )
    def get(self, request: Request) -> Response:
        access.require_anywhere(self.user, Verb.VIEW, Entity.WORKLOADS)
        query = ListQuery(request)
        month = _parse_month(query)
        grouping = Grouping(query.choice("groupBy", [each.value for each in Grouping]))
        descending = query.choice("sortOrder", ("desc", "asc")) == "desc"
        sort = SORTS[query.choice("sortBy", list(SORTS))]
        offset, limit = query.page_bounds()
        entries = ledger.filter_month(LedgerEntry.objects.visible_to(self.user), month)
        entries = filtering.filter_rows(entries, query, FIELDS)
        groups = ledger.load_groups(
            entries,
            grouping,
            sort=f"-{sort}" if descending else sort,
            offset=offset,
            limit=limit + 1,
        )
        total = ledger.load_total(entries)
        return Response(
            {
                "month": str(month),
                "groupBy": grouping.value,
                "total": serialize_amounts(total.amounts, total.costs),
            }
            | build_list_body(
                "usage",
                [serialize_group(group, grouping) for group in groups[:limit]],
                offset + limit if len(groups) > limit else None,
            )
        )


def _parse_month(query: ListQuery) -> Month:
    text = query.text("month")
    month = parse_month(text) if text else get_month(datetime.now(UTC).date())
    if month is None:
        raise Invalid([("month", "month must be a month as 2026-11.")])
    return month


def serialize_amounts(amounts: Amounts, costs: Costs) -> dict[str, Any]:
    """Return the hours of each kind and what they cost, as the API has them."""
    hours = {HOURS[kind]: float(to_hours(amounts.get(kind))) for kind in KINDS}
    return hours | {
        "allocatedHours": float(to_hours(amounts.allocated)),
        "costs": [
            {"currency": currency, "amount": float(money)}
            for currency, money in costs.money.items()
        ],
        "hoursWithoutPrice": float(to_hours(costs.without_price)),
        "kilowattHours": None if costs.kilowatt_hours is None else float(costs.kilowatt_hours),
        "hoursWithoutPower": float(to_hours(costs.without_power)),
    }


def serialize_group(group: LedgerGroup, grouping: Grouping) -> dict[str, Any]:
    """Return the hours of a project, person, workload or day, as the API has them."""
    item: dict[str, Any] = {"name": group.name}
    if group.project is not None:
        item |= {"projectId": str(group.project), "projectName": group.project_name}
    match grouping:
        case Grouping.WORKLOAD:
            item |= {"workloadId": str(group.key), "user": group.user}
        case Grouping.USER:
            item["user"] = group.user
        case Grouping.DAY:
            item["day"] = group.name
    return item | serialize_amounts(group.amounts, group.costs)
