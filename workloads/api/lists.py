"""REST lists of the workloads and pods that the user may see: filtered, sorted, and paged by
offset.
"""

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from projects.api import filtering, schemas
from projects.api.base import ApiView, ListQuery, build_list_body
from projects.models import User
from projects.querysets import list_visible_project_ids
from workloads import runtime_limits
from workloads.api import workload_serializers
from workloads.api.workload_schemas import POD, WORKLOAD
from workloads.models import Pod, Workload
from workloads.workload_table import TABLE

WORKLOAD_FIELDS = {
    **{name: field for column in TABLE.columns for name, field in column.rest.items()},
    "clusterId": filtering.uuid_field("cluster_id"),
    "departmentId": filtering.id_field("project__department_id"),
    "departmentName": filtering.text_field("project__department__name"),
    "deletedAt": filtering.moment_field("deleted_at"),
    "priorityClassName": filtering.exact_field("priority"),
}
"""What the table shows, and what else there is of a workload."""
POD_FIELDS = {
    "name": filtering.text_field("name"),
    "workloadId": filtering.uuid_field("workload_id"),
    "workloadName": filtering.text_field("workload__name"),
    "projectId": filtering.id_field("workload__project_id"),
    "projectName": filtering.text_field("workload__project__name"),
    "clusterId": filtering.uuid_field("workload__cluster_id"),
    "nodeName": filtering.text_field("node"),
    "k8sPhase": filtering.exact_field("phase"),
    "createdAt": filtering.moment_field("created_at"),
    "completedAt": filtering.moment_field("ended_at"),
}
_DELETED_PARAMETER = schemas.query_parameter(
    "deleted", schemas.BOOLEAN, "Those that are deleted, instead of those that are there."
)


class WorkloadsView(ApiView):
    @extend_schema(
        operation_id="list_workloads",
        description=(
            "The workloads that you may see, the newest first unless sortBy says otherwise."
        ),
        parameters=[*schemas.list_parameters(WORKLOAD_FIELDS), _DELETED_PARAMETER],
        responses={200: schemas.json_response(schemas.list_schema("workloads", WORKLOAD))}
        | schemas.error_responses(400, 401),
        tags=["workloads"],
    )
    def get(self, request: Request) -> Response:
        query = ListQuery(request)
        rows = (
            _filter_workloads(self.user, query)
            .select_related("project__department", "submitted_by")
            .defer("pod_group")
        )
        workloads, next_offset = query.page(
            filtering.order_rows(rows, query, WORKLOAD_FIELDS, ("-created_at", "-id")), 50
        )
        running_seconds = runtime_limits.load_running_seconds(workloads, timezone.now())
        return Response(
            build_list_body(
                "workloads",
                [
                    workload_serializers.serialize_workload(each, running_seconds[each.pk])
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
        parameters=[*schemas.filter_parameters(WORKLOAD_FIELDS), _DELETED_PARAMETER],
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
        rows, query, WORKLOAD_FIELDS, ("name", "project__name", "submitted_by__username")
    )


class PodsView(ApiView):
    @extend_schema(
        operation_id="list_pods",
        description=(
            "The pods of the workloads that you may see, the newest first unless sortBy says "
            "otherwise."
        ),
        parameters=[
            *schemas.list_parameters(POD_FIELDS),
            _DELETED_PARAMETER,
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
        workloads = Workload.objects.visible_to(self.user)
        rows = Pod.objects.filter(vanished_at__isnull=not query.flag("deleted"))
        # None is every project: then the subquery would only cost.
        if list_visible_project_ids(self.user) is not None:
            rows = rows.filter(workload__in=workloads)
        completed = query.choice("completed", ("all", "true", "false"))
        if completed != "all":
            rows = (
                rows.filter(phase__in=("Succeeded", "Failed"))
                if completed == "true"
                else rows.exclude(phase__in=("Succeeded", "Failed"))
            )
        rows = filtering.filter_and_search(rows, query, POD_FIELDS, ("name", "workload__name"))
        rows = rows.select_related("workload__project").defer(
            "workload__job", "workload__pod_group", "workload__spec"
        )
        with_names = query.choice("verbosity", ("brief", "full")) == "full"
        return Response(
            filtering.serialize_page(
                rows,
                query,
                POD_FIELDS,
                ("-pk",),
                name="pods",
                serialize=lambda row: workload_serializers.serialize_pod(row, full=with_names),
            )
        )
