"""REST views of one workload: itself, its pods, events and history."""

import uuid
from typing import Any

from django.db.models import F, QuerySet
from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from projects.api import schemas
from projects.api.base import ApiView, ListQuery, build_list_body
from projects.models import User
from workloads import runtime_limits
from workloads.actions import NOT_FOUND_TEXT
from workloads.api import workload_serializers
from workloads.api.workload_schemas import EVENT, POD, RECORD, WORKLOAD
from workloads.models import Event, Pod, Workload


def get_workload(user: User, workload_id: uuid.UUID, **conditions: Any) -> Workload:
    """Return a workload that the user may see.

    Raises Http404, the same where it does not exist and where the user may not see it.
    """
    rows = (
        Workload.objects.visible_to(user)
        .select_related("project__department", "submitted_by")
        .defer("pod_group")
    )
    workload: Workload | None = rows.filter(pk=workload_id, **conditions).first()
    if workload is None:
        raise Http404(NOT_FOUND_TEXT)
    return workload


class WorkloadView(ApiView):
    @extend_schema(
        operation_id="get_workload",
        description="One workload, with why it waits.",
        responses={200: schemas.json_response(WORKLOAD)} | schemas.error_responses(401, 404),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID) -> Response:
        workload = get_workload(self.user, workload_id)
        waiting_reason = workload.reason if workload.status == "Pending" else ""
        messages = []
        if waiting_reason:
            messages.append(
                {
                    "nodePool": workload_serializers.DEFAULT_NODE_POOL,
                    "reason": waiting_reason,
                    "userMessage": waiting_reason,
                }
            )
        running_seconds = runtime_limits.load_running_seconds([workload], timezone.now())[
            workload.pk
        ]
        return Response(
            workload_serializers.serialize_workload(workload, running_seconds)
            | {"pendingSchedulingMessages": messages}
        )


class WorkloadPodsView(ApiView):
    @extend_schema(
        operation_id="get_workload_pods",
        description=(
            "The pods of a workload, of all its attempts, the newest attempt first and by rank "
            "within one."
        ),
        parameters=[
            *schemas.paging_parameters(),
            schemas.query_parameter(
                "deleted",
                schemas.BOOLEAN,
                "Those that the cluster has deleted, instead of those that are there.",
            ),
            schemas.query_parameter("search", schemas.TEXT, "Text that a name contains."),
        ],
        responses={200: schemas.json_response(schemas.list_schema("pods", POD))}
        | schemas.error_responses(400, 401, 404),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID) -> Response:
        query, workload = ListQuery(request), get_workload(self.user, workload_id)
        rows = Pod.objects.filter(workload=workload, vanished_at__isnull=not query.flag("deleted"))
        if search := query.text("search"):
            rows = rows.filter(name__icontains=search)
        ranked = rows.order_by("-attempt", F("rank").asc(nulls_last=True), "pk")
        pods, next_offset = query.page(ranked.select_related("workload__project"))
        return Response(
            build_list_body(
                "pods",
                [workload_serializers.serialize_pod(row, full=True) for row in pods],
                next_offset,
            )
        )


class EventsView(ApiView):
    @extend_schema(
        operation_id="get_workload_events",
        description=(
            "The cluster's events about a workload, and what people did to it; they are kept when "
            "the cluster has forgotten them."
        ),
        parameters=[
            *schemas.paging_parameters(),
            schemas.query_parameter(
                "sortOrder",
                schemas.enum_schema("desc", "asc"),
                "By time; desc where it is not given.",
            ),
        ],
        responses={200: schemas.json_response(schemas.list_schema("events", EVENT))}
        | schemas.error_responses(400, 401, 404),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID) -> Response:
        query, workload = ListQuery(request), get_workload(self.user, workload_id)
        rows = Event.objects.filter(workload=workload).exclude(kind=Event.Kind.STATUS)
        newest_first = query.choice("sortOrder", ("desc", "asc")) == "desc"
        events, next_offset = query.page(order_by_time(rows, newest_first))
        return Response(
            build_list_body(
                "events",
                [workload_serializers.serialize_event(row, workload) for row in events],
                next_offset,
            )
        )


class HistoryView(ApiView):
    @extend_schema(
        operation_id="get_workload_history",
        description=(
            "Changes of status and events of a workload in one order of time, the newest first."
        ),
        parameters=schemas.paging_parameters(),
        responses={200: schemas.json_response(schemas.list_schema("records", RECORD))}
        | schemas.error_responses(400, 401, 404),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID) -> Response:
        query, workload = ListQuery(request), get_workload(self.user, workload_id)
        events, next_offset = query.page(
            order_by_time(Event.objects.filter(workload=workload), True)
        )
        return Response(
            build_list_body(
                "records",
                [workload_serializers.serialize_history_record(row, workload) for row in events],
                next_offset,
            )
        )


def order_by_time(rows: QuerySet[Event], newest_first: bool) -> QuerySet[Event]:
    return rows.order_by("-at", "-id") if newest_first else rows.order_by("at", "id")
