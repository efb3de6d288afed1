"""REST lists of pods: those of one workload, and those of all that the user may see."""

import uuid
from typing import Any

from django.db.models import F, Prefetch, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from console.texts import parse_number
from projects.api import filtering, schemas
from projects.api.base import ApiView, ListQuery, build_list_body
from projects.querysets import list_visible_project_ids
from workloads.api import workload_serializers
from workloads.api.details import get_workload
from workloads.api.workload_schemas import POD
from workloads.models import Pod, Workload

_OWN_FIELDS = {
    "name": filtering.text_field("name"),
    "nodeName": filtering.text_field("node"),
    "k8sPhase": filtering.choice_field(
        # What the cluster has not told yet is shown as Pending.
        "phase",
        {
            "Pending": ("Pending", ""),
            "Running": "Running",
            "Succeeded": "Succeeded",
            "Failed": "Failed",
            "Unknown": "Unknown",
        },
    ),
    "createdAt": filtering.moment_field("created_at"),
    "completedAt": filtering.moment_field("ended_at"),
    "attempt": filtering.whole_number_field("attempt"),
}
"""What the pods of one workload are filtered by."""
POD_FIELDS = {
    **_OWN_FIELDS,
    "workloadId": filtering.uuid_field("workload_id"),
    "workloadName": filtering.text_field("workload__name"),
    "projectId": filtering.id_field("workload__project_id"),
    "projectName": filtering.text_field("workload__project__name"),
    "clusterId": filtering.uuid_field("workload__cluster_id"),
}
ALL_ATTEMPTS = "all"
_WORKLOADS = Workload.objects.select_related("project").defer(
    "job", "pod_group", "data_job", "spec"
)
"""The workloads of a list of pods, each loaded once however many of its pods are listed."""


class WorkloadPodsView(ApiView):
    @extend_schema(
        operation_id="get_workload_pods",
        description=(
            "The pods of a workload's attempt by rank, also those that the cluster has deleted: "
            "they have `deletedAt`."
        ),
        parameters=[
            *schemas.paging_parameters(),
            schemas.query_parameter(
                "attempt",
                schemas.TEXT,
                "The number of an attempt, or `all`, the newest first; the present one by default.",
            ),
            schemas.query_parameter(
                "deleted",
                schemas.BOOLEAN,
                "Only those that the cluster has deleted, or has not; both by default.",
            ),
            *schemas.filter_parameters(_OWN_FIELDS),
        ],
        responses={200: schemas.json_response(schemas.list_schema("pods", POD))}
        | schemas.error_responses(400, 401, 404),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID) -> Response:
        query, workload = ListQuery(request), get_workload(self.user, workload_id)
        rows = filtering.filter_and_search(_filter_pods(workload, query), query, _OWN_FIELDS)
        # Keys first: to sort whole rows, the database would read the objects of all pods.
        ranked = rows.order_by("-attempt", F("rank").asc(nulls_last=True), "pk")
        keys, next_offset = query.page(ranked.values_list("pk", flat=True))
        pods = Pod.objects.in_bulk(keys)
        return Response(
            build_list_body(
                "pods",
                [
                    workload_serializers.serialize_pod(pods[key], workload, full=True)
                    for key in keys
                    if key in pods
                ],
                next_offset,
            )
        )


def _filter_pods(workload: Workload, query: ListQuery) -> "QuerySet[Pod]":
    """Return the pods of the attempt, and of the kind, that the query asks for.

    Raises Invalid.
    """
    rows = Pod.objects.filter(workload=workload)
    text = query.text("attempt").lower()
    if text != ALL_ATTEMPTS:
        attempt = parse_number(text, 6) if text else workload.attempt
        if attempt is None:
            raise Invalid([("attempt", "attempt must be the number of an attempt, or all.")])
        rows = rows.filter(attempt=attempt)
    deleted = query.flag("deleted")
    return rows if deleted is None else rows.filter(vanished_at__isnull=not deleted)


class PodsView(ApiView):
    @extend_schema(
        operation_id="list_pods",
        description=(
            "The pods of the workloads that you may see, the newest first unless sortBy says "
            "otherwise."
        ),
        parameters=[
            *schemas.list_parameters(POD_FIELDS),
            schemas.query_parameter(
                "deleted",
                schemas.BOOLEAN,
                "Those that are deleted, instead of those that are there.",
            ),
            schemas.query_parameter(
                "completed",
                schemas.enum_schema("true", "false", "all"),
                "Those that have ended, or have not; all by default.",
            ),
            schemas.query_parameter(
                "verbosity",
                schemas.enum_schema("brief", "full"),
                "full adds the names of workload and project.",
            ),
        ],
        responses={200: schemas.json_response(schemas.list_schema("pods", POD))}
        | schemas.error_responses(400, 401),
        tags=["workloads"],
    )
    def get(self, request: Request) -> Response:
        query = ListQuery(request)
        rows = Pod.objects.filter(vanished_at__isnull=not query.flag("deleted"))
        # None is every project: then the subquery would only cost.
        if list_visible_project_ids(self.user) is not None:
            rows = rows.filter(workload__in=Workload.objects.visible_to(self.user))
        rows = _filter_completed(rows, query)
        rows = filtering.filter_and_search(rows, query, POD_FIELDS, ("name", "workload__name"))
        with_names = query.choice("verbosity", ("brief", "full")) == "full"
        pods, next_offset = filtering.load_page(
            rows.prefetch_related(Prefetch("workload", _WORKLOADS)), query, POD_FIELDS, ("-pk",)
        )
        serialized = [
            workload_serializers.serialize_pod(each, each.workload, full=with_names)
            for each in pods
        ]
        return Response(build_list_body("pods", serialized, next_offset))


def _filter_completed(rows: "QuerySet[Pod]", query: ListQuery) -> "QuerySet[Pod]":
    completed = query.choice("completed", ("all", "true", "false"))
    ended: dict[str, Any] = {"phase__in": ("Succeeded", "Failed")}
    if completed == "true":
        return rows.filter(**ended)
    return rows.exclude(**ended) if completed == "false" else rows
