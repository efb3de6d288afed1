"""The REST list of the workloads that the user may see: filtered, sorted, and paged by offset."""

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from projects.api import filtering, schemas
from projects.api.base import ApiView, ListQuery, build_list_body
from projects.models import User
from workloads import runtime_limits
from workloads.api import workload_serializers
from workloads.api.details import select_serialized
from workloads.api.progress_answers import serialize_progress
from workloads.api.workload_schemas import WORKLOAD
from workloads.filter_catalogue import REST_FIELDS
from workloads.models import Workload
from workloads.queries import (
    explain_workloads,
    load_gravest_findings,
    load_preparations,
    view_progress,
)

DELETED_PARAMETER = schemas.query_parameter(
    "deleted", schemas.BOOLEAN, "Those that are deleted, instead of those that are there."
)


class WorkloadsView(ApiView):
    @extend_schema(
        operation_id="list_workloads",
        description=(
            "The workloads that you may see, the newest first unless sortBy says otherwise."
        ),
        parameters=[*schemas.list_parameters(REST_FIELDS), DELETED_PARAMETER],
        responses={200: schemas.json_response(schemas.list_schema("workloads", WORKLOAD))}
        | schemas.error_responses(400, 401),
        tags=["workloads"],
    )
    def get(self, request: Request) -> Response:
        query = ListQuery(request)
        rows = select_serialized(_filter_workloads(self.user, query))
        workloads, next_offset = filtering.load_page(
            rows, query, REST_FIELDS, ("-created_at", "-id")
        )
        running_seconds = runtime_limits.load_running_seconds(workloads, timezone.now())
        explanations = explain_workloads(workloads, self.user)
        preparations = load_preparations(workloads)
        findings = load_gravest_findings(workloads)
        return Response(
            build_list_body(
                "workloads",
                [
                    workload_serializers.serialize_workload(
                        each,
                        running_seconds[each.pk],
                        explanations[each.pk],
                        preparations.get(each.pk),
                    )
                    | {
                        "progress": serialize_progress(view_progress(each)),
                        "needsALook": each.pk in findings,
                    }
                    for each in workloads
                ],
                next_offset,
            )
        )


class WorkloadsCountView(ApiView):
    @extend_schema(
        operation_id="count_workloads",
        description=(
            "How many workloads you may see, of what the list's filterBy, search and deleted ask "
            "for."
        ),
        parameters=[*schemas.filter_parameters(REST_FIELDS), DELETED_PARAMETER],
        responses={200: schemas.json_response(schemas.COUNT)} | schemas.error_responses(400, 401),
        tags=["workloads"],
    )
    def get(self, request: Request) -> Response:
        return Response({"count": _filter_workloads(self.user, ListQuery(request)).count()})


def _filter_workloads(user: User, query: ListQuery) -> "QuerySet[Workload]":
    """Return the visible workloads that the query's parameters ask for.

    Raises Invalid.
    """
    rows = Workload.objects.visible_to(user).filter(released_at__isnull=not query.flag("deleted"))
    return filtering.filter_and_search(
        rows, query, REST_FIELDS, ("name", "project__name", "submitted_by__username")
    )
