"""What the REST API tells of one workload: itself, its pods, events and history."""

import uuid
from typing import Any

from django.db.models import F, QuerySet
from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from projects.api import schemas
from projects.api.base import ApiView, Asked, listed
from projects.models import User
from workloads import limits
from workloads.actions import NOT_THERE
from workloads.api import showing
from workloads.api.descriptions import EVENT, POD, RECORD, WORKLOAD
from workloads.models import Event, Pod, Workload


def found(user: User, workload_id: uuid.UUID, **conditions: Any) -> Workload:
    """A workload that the user may see. Raises Http404, whether it does not exist or is not
    theirs.
    """
    rows = (
        Workload.objects.visible_to(user)
        .select_related("project__department", "submitted_by")
        .defer("pod_group")
    )
    workload: Workload | None = rows.filter(pk=workload_id, **conditions).first()
    if workload is None:
        raise Http404(NOT_THERE)
    return workload


class WorkloadView(ApiView):
    @extend_schema(
        operation_id="get_workload",
        description="One workload, with why it waits.",
        responses={200: schemas.answer(WORKLOAD)} | schemas.errors(401, 404),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID) -> Response:
        workload = found(self.user, workload_id)
        waits = workload.status == "Pending" and workload.reason
        messages = (
            [
                {
                    "nodePool": showing.NODE_POOL,
                    "reason": workload.reason,
                    "userMessage": workload.reason,
                }
            ]
            if waits
            else []
        )
        ran = limits.ran([workload], timezone.now())[workload.pk]
        return Response(showing.item(workload, ran) | {"pendingSchedulingMessages": messages})


class WorkloadPodsView(ApiView):
    @extend_schema(
        operation_id="get_workload_pods",
        description=(
            "The pods of a workload, of all its attempts, the newest attempt first and by rank "
            "within one."
        ),
        parameters=[
            *schemas.paging(),
            schemas.parameter(
                "deleted",
                schemas.FLAG,
                "Those that the cluster has deleted, instead of those that are there.",
            ),
            schemas.parameter("search", schemas.TEXT, "Text that a name contains."),
        ],
        responses={200: schemas.answer(schemas.items("pods", POD))} | schemas.errors(400, 401, 404),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID) -> Response:
        asked, workload = Asked(request), found(self.user, workload_id)
        rows = Pod.objects.filter(workload=workload, vanished_at__isnull=not asked.flag("deleted"))
        if search := asked.text("search"):
            rows = rows.filter(name__icontains=search)
        ranked = rows.order_by("-attempt", F("rank").asc(nulls_last=True), "pk")
        pods, following = asked.page(ranked.select_related("workload__project"))
        return Response(listed("pods", [showing.pod(row, full=True) for row in pods], following))


class EventsView(ApiView):
    @extend_schema(
        operation_id="get_workload_events",
        description=(
            "The cluster's events about a workload, and what people did to it; they are kept when "
            "the cluster has forgotten them."
        ),
        parameters=[
            *schemas.paging(),
            schemas.parameter(
                "sortOrder", schemas.words("desc", "asc"), "By time; desc where it is not given."
            ),
        ],
        responses={200: schemas.answer(schemas.items("events", EVENT))}
        | schemas.errors(400, 401, 404),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID) -> Response:
        asked, workload = Asked(request), found(self.user, workload_id)
        rows = Event.objects.filter(workload=workload).exclude(kind=Event.Kind.STATUS)
        newest_first = asked.choice("sortOrder", ("desc", "asc")) == "desc"
        events, following = asked.page(in_time_order(rows, newest_first))
        return Response(
            listed("events", [showing.event(row, workload) for row in events], following)
        )


class HistoryView(ApiView):
    @extend_schema(
        operation_id="get_workload_history",
        description=(
            "Changes of status and events of a workload in one order of time, the newest first."
        ),
        parameters=schemas.paging(),
        responses={200: schemas.answer(schemas.items("records", RECORD))}
        | schemas.errors(400, 401, 404),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID) -> Response:
        asked, workload = Asked(request), found(self.user, workload_id)
        events, following = asked.page(in_time_order(Event.objects.filter(workload=workload), True))
        return Response(
            listed("records", [showing.record(row, workload) for row in events], following)
        )


def in_time_order(rows: QuerySet[Event], newest_first: bool) -> QuerySet[Event]:
    return rows.order_by("-at", "-id") if newest_first else rows.order_by("at", "id")
