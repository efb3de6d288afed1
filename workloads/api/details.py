"""REST views of one workload: itself, its events and its history."""

import uuid
from collections.abc import Sequence
from typing import Any

from django.db.models import Q, QuerySet
from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from projects.api import filtering, schemas
from projects.api.base import ApiView, ListQuery, build_list_body
from projects.models import User
from workloads import runtime_limits
from workloads.actions import NOT_FOUND_TEXT
from workloads.api import workload_serializers
from workloads.api.finding_answers import serialize_finding, serialize_watch
from workloads.api.progress_answers import serialize_progress
from workloads.api.workload_schemas import DATA_DELIVERY, EVENT, RECORD, WORKLOAD_DETAILS
from workloads.models import Event, Pod, Workload
from workloads.queries import (
    Explanation,
    explain_workload,
    load_delivery,
    load_disruptions,
    load_event_words,
    load_open_findings,
    load_preparations,
    load_watch,
    view_progress,
)
from workloads.queries.data_delivery import MOST_RANKS, build_no_delivery
from workloads.states import Status

MOST_ATTEMPTS = 200
"""Attempts of one workload that its answer has, the newest first."""
MOST_POD_CHANGES = 5
"""Changes of how many pods a workload has that its answer has, the newest first."""
UNUSED_CLUSTER_FIELDS = tuple(
    f"cluster__{name}" for name in ("kubeconfig", "capabilities", "findings", "permissions")
)
"""Long texts of a cluster that no answer about a workload needs."""


def get_workload(user: User, workload_id: uuid.UUID, **conditions: Any) -> Workload:
    """Return a workload that the user may see.

    Raises Http404, the same where it does not exist and where the user may not see it.
    """
    rows = select_serialized(Workload.objects.visible_to(user))
    workload: Workload | None = rows.filter(pk=workload_id, **conditions).first()
    if workload is None:
        raise Http404(NOT_FOUND_TEXT)
    return workload


def get_pod(workload: Workload, key: str, **conditions: Any) -> Pod:
    """Return the newest pod of a workload with this id or name. Raises Http404."""
    # PostgreSQL refuses a null character in a text, also in one to compare with.
    key = key.replace("\x00", "")
    rows = workload.pods.filter(Q(uid=key) | Q(name=key), **conditions)
    pod: Pod | None = rows.order_by("-attempt", "-pk").first()
    if pod is None:
        raise Http404("This workload has no such pod. GET /api/v1/workloads/{id}/pods lists them.")
    return pod


def _parse_event_type(text: str) -> bool:
    """Parse the type of an event to whether it is a warning. Raises ValueError."""
    if text not in ("Normal", "Warning"):
        raise ValueError(text)
    return text == "Warning"


def select_serialized(rows: "QuerySet[Workload]") -> "QuerySet[Workload]":
    """Load with each workload what its answer shows of other rows."""
    related = ("project__department", "submitted_by", "cluster", "progress", "metric_series")
    return rows.select_related(*related).defer(*UNUSED_CLUSTER_FIELDS, "progress__pace")


EVENT_FIELDS = {
    "createdAt": filtering.moment_field("at"),
    "type": filtering.exact_field("is_warning", _parse_event_type, "Normal or Warning"),
    "reason": filtering.text_field("reason"),
    "message": filtering.text_field("text"),
    "involvedObject": filtering.text_field("subject"),
    "attempt": filtering.whole_number_field("attempt"),
}
"""What events and history are filtered by; `createdAt` leads past the longest offset."""


class WorkloadView(ApiView):
    @extend_schema(
        operation_id="get_workload",
        description="One workload, with why it waits or why it failed, and its attempts.",
        responses={200: schemas.json_response(WORKLOAD_DETAILS)}
        | schemas.error_responses(401, 404),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID) -> Response:
        workload = get_workload(self.user, workload_id)
        explanation = explain_workload(workload, self.user)
        attempts = workload.attempts.select_related("requested_by").order_by("-number")
        running_seconds = runtime_limits.load_running_seconds([workload], timezone.now())
        findings = load_open_findings(workload)
        return Response(
            workload_serializers.serialize_workload(
                workload,
                running_seconds[workload.pk],
                explanation,
                load_preparations([workload]).get(workload.pk),
            )
            | {
                "progress": serialize_progress(view_progress(workload)),
                "needsALook": bool(findings),
                "findings": list(map(serialize_finding, findings)),
                "radar": serialize_watch(load_watch(workload)),
                "excludedNodes": workload.excluded_nodes,
                "pendingSchedulingMessages": _build_scheduling_messages(workload, explanation),
                "attempts": list(
                    map(workload_serializers.serialize_attempt, attempts[:MOST_ATTEMPTS])
                ),
                "limits": list(
                    map(
                        workload_serializers.serialize_limit,
                        runtime_limits.load_limit_uses(workload),
                    )
                ),
                "podChanges": _serialize_events(
                    load_disruptions(workload, MOST_POD_CHANGES), workload, self.user
                ),
            }
        )


class DataDeliveryView(ApiView):
    @extend_schema(
        operation_id="get_workload_data_delivery",
        description=(
            "How the data of a workload's present attempt is prepared and delivered: how far its "
            "data workers are, and how long its ranks waited for data of late. Ranks that waited "
            f"the largest share of their time come first, at most {MOST_RANKS}. A workload without "
            "data workers has 0 of them: its ranks load their data themselves."
        ),
        responses={200: schemas.json_response(DATA_DELIVERY)} | schemas.error_responses(401, 404),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID) -> Response:
        workload = get_workload(self.user, workload_id)
        return Response(
            workload_serializers.serialize_delivery(
                load_delivery(workload) or build_no_delivery(workload)
            )
        )


def _build_scheduling_messages(
    workload: Workload, explanation: Explanation
) -> list[dict[str, Any]]:
    if workload.status != Status.PENDING or not explanation.text:
        return []
    return [
        {
            "nodePool": workload_serializers.DEFAULT_NODE_POOL,
            "reason": workload.reason or explanation.text,
            "userMessage": explanation.text,
        }
    ]


class EventsView(ApiView):
    @extend_schema(
        operation_id="get_workload_events",
        description=(
            "The cluster's events about a workload, what people did to it, and what took pods from "
            "it; they are kept when the cluster has forgotten them."
        ),
        parameters=[
            *schemas.paging_parameters(),
            *schemas.filter_parameters(EVENT_FIELDS),
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
        rows = _filter_events(workload, query).exclude(kind=Event.Kind.STATUS)
        newest_first = query.choice("sortOrder", ("desc", "asc")) == "desc"
        events, next_offset = query.page(order_by_time(rows, newest_first))
        return Response(
            build_list_body(
                "events",
                _serialize_events(events, workload, self.user),
                next_offset,
            )
        )


class HistoryView(ApiView):
    @extend_schema(
        operation_id="get_workload_history",
        description=(
            "Changes of status and events of a workload in one order of time, the newest first. "
            "Where pods were taken, the event has the cause, what was lost, and how it went on."
        ),
        parameters=[*schemas.paging_parameters(), *schemas.filter_parameters(EVENT_FIELDS)],
        responses={200: schemas.json_response(schemas.list_schema("records", RECORD))}
        | schemas.error_responses(400, 401, 404),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID) -> Response:
        query, workload = ListQuery(request), get_workload(self.user, workload_id)
        events, next_offset = query.page(order_by_time(_filter_events(workload, query), True))
        words = load_event_words(events, workload, self.user)
        return Response(
            build_list_body(
                "records",
                [
                    workload_serializers.serialize_history_record(row, workload, words[row.pk])
                    for row in events
                ],
                next_offset,
            )
        )


def _serialize_events(events: Sequence[Event], workload: Workload, user: User) -> list[Any]:
    words = load_event_words(events, workload, user)
    return [workload_serializers.serialize_event(row, workload, words[row.pk]) for row in events]


def _filter_events(workload: Workload, query: ListQuery) -> QuerySet[Event]:
    """Return the events of a workload that the query asks for. Raises Invalid."""
    rows = Event.objects.filter(workload=workload)
    return filtering.filter_and_search(rows, query, EVENT_FIELDS, ("text", "reason", "subject"))


def order_by_time(rows: QuerySet[Event], newest_first: bool) -> QuerySet[Event]:
    return rows.order_by("-at", "-id") if newest_first else rows.order_by("at", "id")
