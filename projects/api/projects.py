"""`GET /api/v1/org-unit/projects`: the projects that the user may see.

The API of clusters creates and changes them.
"""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.moments import format_moment
from console.shell_commands import CreationCalls, build_command, build_curl
from projects.api import filtering, quotas, schemas
from projects.api.base import ApiView, ListQuery
from projects.models import Project

FIELDS = {
    "id": filtering.id_field("pk"),
    "name": filtering.text_field("name"),
    "clusterId": filtering.uuid_field("cluster_id"),
    "departmentId": filtering.id_field("department_id"),
    "departmentName": filtering.text_field("department__name"),
    "clusterName": filtering.text_field("cluster__name"),
    "description": filtering.text_field("description"),
    "namespace": filtering.text_field("namespace"),
    "gpuQuota": filtering.number_field("gpu_quota"),
    "gpuLimit": filtering.number_field("gpu_limit"),
    "overQuotaWeight": filtering.number_field("over_quota_weight"),
    "createdAt": filtering.moment_field("created_at"),
}

SEARCH_COLUMNS = ("name", "department__name")


class ProjectsView(ApiView):
    @extend_schema(
        operation_id="list_projects",
        description="The projects that you may see.",
        parameters=schemas.list_parameters(FIELDS),
        responses={200: schemas.json_response(schemas.list_schema("projects", schemas.PROJECT))}
        | schemas.error_responses(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        query = ListQuery(request)
        projects = (
            Project.objects.visible_to(self.user)
            .select_related("department")
            .prefetch_related("node_pools")
        )
        projects = filtering.filter_and_search(projects, query, FIELDS, SEARCH_COLUMNS)
        return Response(
            filtering.serialize_page(
                projects, query, FIELDS, ("name",), name="projects", serialize=serialize_project
            )
        )


class ProjectsCountView(ApiView):
    @extend_schema(
        operation_id="count_projects",
        description=(
            "How many projects you may see, of what the list's filterBy and search ask for."
        ),
        parameters=schemas.filter_parameters(FIELDS),
        responses={200: schemas.json_response(schemas.COUNT)} | schemas.error_responses(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        projects = Project.objects.visible_to(self.user)
        return Response(
            {
                "count": filtering.filter_and_search(
                    projects, ListQuery(request), FIELDS, SEARCH_COLUMNS
                ).count()
            }
        )


def build_project_calls(project: Project) -> CreationCalls:
    """Return the calls that make a project once more: over REST, and by the `muster` command."""
    body = {name: value for name, value in serialize_settings(project).items() if value}
    if project.is_namespace_adopted:
        body["requestedNamespace"] = project.namespace
    return CreationCalls(
        build_curl('"$MUSTER/api/v1/org-unit/projects"', {"name": project.name} | body),
        build_command([("muster", "project", "create", project.name), ("-f", "-")], body),
    )


def serialize_project(project: Project) -> dict[str, Any]:
    """Return a project as the API answers it; its id is text."""
    settings = serialize_settings(project)
    status: dict[str, Any] = {
        "phase": "Ready" if project.synced_at and not project.sync_error else "NotReady"
    }
    status |= {
        "message": project.sync_error,
        "quotaStatus": {"allocated": quotas.serialize_allocated(project.allocated)},
    }
    limits = {
        "trainingJobTimeLimitSeconds": project.time_limit,
        "trainingJobMaxIdleDurationSeconds": project.idle_limit,
    }
    return {
        "id": str(project.pk),
        "name": project.name,
        "departmentName": project.department.name,
        "parentId": str(project.department_id),
        "namespace": project.namespace,
        "requestedNamespace": project.namespace,
        "createdAt": format_moment(project.created_at),
        "status": status,
        "totalResources": quotas.serialize_total(project.shares),
        "defaultNodePools": settings["nodePools"],
        "effective": {"schedulingRules": limits},
        "version": project.version,
    } | settings


def serialize_settings(project: Project) -> dict[str, Any]:
    """Return what a request gives of a project, beside its name and namespace."""
    return {
        "clusterId": str(project.cluster_id),
        "departmentId": str(project.department_id),
        "description": project.description,
        "nodePools": [pool.name for pool in project.node_pools.all()],
        "defaultPreemptibility": "preemptible"
        if project.default_preemptible
        else "non-preemptible",
        "resources": quotas.serialize_shares(project.shares),
        "schedulingRules": quotas.serialize_rules(project),
    }
