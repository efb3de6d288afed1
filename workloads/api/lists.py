"""Lists of the REST API: workloads and pods that one may see, filtered, sorted and by offset."""

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from projects.api import filtering, schemas
from projects.api.base import ApiView, Asked, listed
from projects.models import User
from projects.querysets import visible_projects
from workloads import limits
from workloads.api import showing
from workloads.api.descriptions import POD, WORKLOAD
from workloads.models import Pod, Workload
from workloads.specs import Architecture

_TYPES = {"Distributed": Architecture.DISTRIBUTED.value, "Training": Architecture.STANDARD.value}

WORKLOADS = {
    "name": filtering.text("name"),
    "type": filtering.exact(
        "architecture", lambda value: _TYPES.get(value, ""), "Distributed or Training"
    ),
    "clusterId": filtering.uuid("cluster_id"),
    "projectId": filtering.identity("project_id"),
    "projectName": filtering.text("project__name"),
    "departmentId": filtering.identity("project__department_id"),
    "departmentName": filtering.text("project__department__name"),
    "createdAt": filtering.moment("created_at"),
    "deletedAt": filtering.moment("deleted_at"),
    "completedAt": filtering.moment("ended_at"),
    "phaseUpdatedAt": filtering.moment("status_at"),
    "submittedBy": filtering.text("submitted_by__username"),
    "phase": filtering.exact("status"),
    "distributedFramework": filtering.exact("framework"),
    "allocatedGPU": filtering.number("gpus_allocated"),
    "preemptible": filtering.flag("preemptible"),
    "priorityClassName": filtering.exact("priority"),
}
PODS = {
    "name": filtering.text("name"),
    "workloadId": filtering.uuid("workload_id"),
    "workloadName": filtering.text("workload__name"),
    "projectId": filtering.identity("workload__project_id"),
    "projectName": filtering.text("workload__project__name"),
    "clusterId": filtering.uuid("workload__cluster_id"),
    "nodeName": filtering.text("node"),
    "k8sPhase": filtering.exact("phase"),
    "createdAt": filtering.moment("created_at"),
    "completedAt": filtering.moment("ended_at"),
}
_DELETED = schemas.parameter(
    "deleted", schemas.FLAG, "Those that are deleted, instead of those that are there."
)


class WorkloadsView(ApiView):
    @extend_schema(
        operation_id="list_workloads",
        description=(
            "The workloads that you may see, the newest first unless sortBy says otherwise."
        ),
        parameters=[*schemas.list_parameters(WORKLOADS), _DELETED],
        responses={200: schemas.answer(schemas.items("workloads", WORKLOAD))}
        | schemas.errors(400, 401),
        tags=["workloads"],
    )
    def get(self, request: Request) -> Response:
        asked = Asked(request)
        rows = (
            _workloads(self.user, asked)
            .select_related("project__department", "submitted_by")
            .defer("pod_group")
        )
        found, following = asked.page(
            filtering.ordered(rows, asked, WORKLOADS, ("-created_at", "-id")), 50
        )
        ran = limits.ran(found, timezone.now())
        return Response(
            listed("workloads", [showing.item(each, ran[each.pk]) for each in found], following)
        )


class WorkloadsCountView(ApiView):
    @extend_schema(
        operation_id="count_workloads",
        description=(
            "How many workloads you may see, of what the list's filterBy, search and deleted ask "
            "for."
        ),
        parameters=[*schemas.filters(WORKLOADS), _DELETED],
        responses={200: schemas.answer(schemas.COUNT)} | schemas.errors(400, 401),
        tags=["workloads"],
    )
    def get(self, request: Request) -> Response:
        return Response({"count": _workloads(self.user, Asked(request)).count()})


def _workloads(user: User, asked: Asked) -> "QuerySet[Workload]":
    """Those that one sees and that are asked for. Raises Invalid."""
    rows = Workload.objects.visible_to(user).filter(released_at__isnull=not asked.flag("deleted"))
    return filtering.matching(
        rows, asked, WORKLOADS, ("name", "project__name", "submitted_by__username")
    )


class PodsView(ApiView):
    @extend_schema(
        operation_id="list_pods",
        description=(
            "The pods of the workloads that you may see, the newest first unless sortBy says "
            "otherwise."
        ),
        parameters=[
            *schemas.list_parameters(PODS),
            _DELETED,
            schemas.parameter(
                "completed",
                schemas.words("true", "false", "all"),
                "Those that have ended, or have not; all by default.",
            ),
            schemas.parameter(
                "verbosity",
                schemas.words("brief", "full"),
                "full adds the names of workload and project.",
            ),
        ],
        responses={200: schemas.answer(schemas.items("pods", POD))} | schemas.errors(400, 401),
        tags=["workloads"],
    )
    def get(self, request: Request) -> Response:
        asked = Asked(request)
        workloads = Workload.objects.visible_to(self.user)
        rows = Pod.objects.filter(vanished_at__isnull=not asked.flag("deleted"))
        if visible_projects(self.user) is not None:
            rows = rows.filter(workload__in=workloads)
        completed = asked.choice("completed", ("all", "true", "false"))
        if completed != "all":
            rows = (
                rows.filter(phase__in=("Succeeded", "Failed"))
                if completed == "true"
                else rows.exclude(phase__in=("Succeeded", "Failed"))
            )
        rows = filtering.matching(rows, asked, PODS, ("name", "workload__name"))
        rows = rows.select_related("workload__project").defer(
            "workload__job", "workload__pod_group", "workload__spec"
        )
        full = asked.choice("verbosity", ("brief", "full")) == "full"
        return Response(
            filtering.paged(
                rows,
                asked,
                PODS,
                ("-pk",),
                name="pods",
                shown=lambda row: showing.pod(row, full=full),
            )
        )
