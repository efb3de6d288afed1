"""`GET /api/v1/org-unit/projects`: where workloads can be submitted. Making and changing them is
done a floor above.
"""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from projects.api import filtering, quotas, schemas
from projects.api.base import ApiView, Asked
from projects.models import Project

FIELDS = {
    "id": filtering.identity("pk"),
    "name": filtering.text("name"),
    "clusterId": filtering.uuid("cluster_id"),
    "departmentId": filtering.identity("department_id"),
    "departmentName": filtering.text("department__name"),
    "createdAt": filtering.moment("created_at"),
}

SEARCHED = ("name", "department__name")


class ProjectsView(ApiView):
    @extend_schema(
        operation_id="list_projects",
        description="The projects that you may see.",
        parameters=schemas.list_parameters(FIELDS),
        responses={200: schemas.answer(schemas.items("projects", schemas.PROJECT))}
        | schemas.errors(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        asked = Asked(request)
        projects = (
            Project.objects.visible_to(self.user)
            .select_related("department")
            .prefetch_related("node_pools")
        )
        projects = filtering.matching(projects, asked, FIELDS, SEARCHED)
        return Response(
            filtering.paged(projects, asked, FIELDS, ("name",), name="projects", shown=shown)
        )


class ProjectsCountView(ApiView):
    @extend_schema(
        operation_id="count_projects",
        description=(
            "How many projects you may see, of what the list's filterBy and search ask for."
        ),
        parameters=schemas.filters(FIELDS),
        responses={200: schemas.answer(schemas.COUNT)} | schemas.errors(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        projects = Project.objects.visible_to(self.user)
        return Response(
            {"count": filtering.matching(projects, Asked(request), FIELDS, SEARCHED).count()}
        )


def shown(project: Project) -> dict[str, Any]:
    """A project as the API has it; its id is text."""
    pools = [pool.name for pool in project.node_pools.all()]
    status: dict[str, Any] = {
        "phase": "Ready" if project.synced_at and not project.sync_error else "NotReady"
    }
    status |= {
        "message": project.sync_error,
        "quotaStatus": {"allocated": quotas.allocated(project.allocated)},
    }
    limits = {
        "trainingJobTimeLimitSeconds": project.time_limit,
        "trainingJobMaxIdleDurationSeconds": project.idle_limit,
    }
    return {
        "id": str(project.pk),
        "name": project.name,
        "clusterId": str(project.cluster_id),
        "departmentId": str(project.department_id),
        "departmentName": project.department.name,
        "parentId": str(project.department_id),
        "namespace": project.namespace,
        "requestedNamespace": project.namespace,
        "createdAt": project.created_at.isoformat(),
        "status": status,
        "resources": quotas.shares(project.shares),
        "totalResources": quotas.total(project.shares),
        "description": project.description,
        "nodePools": pools,
        "defaultNodePools": pools,
        "defaultPreemptibility": "preemptible"
        if project.default_preemptible
        else "non-preemptible",
        "schedulingRules": quotas.rules(project),
        "effective": {"schedulingRules": limits},
        "version": project.version,
    }
