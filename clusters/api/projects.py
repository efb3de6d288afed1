"""`/api/v1/org-unit/projects`: to make, change and delete projects, as on the pages; their clusters
follow.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from uuid import UUID

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from clusters import project_saving
from clusters.forms import ProjectChangeForm, ProjectForm
from clusters.models import NodePool
from clusters.project_places import list_clusters_for_new_project, list_departments_for_project
from clusters.tasks import remove_deleted_project
from console.errors import Invalid
from console.rest_bodies import describe_field, mark_unsupported
from console.texts import parse_number
from projects import access, project_removal
from projects.api import projects, quotas, schemas, unit_bodies
from projects.api.base import ApiView
from projects.api.idempotency import idempotent
from projects.api.merging import follow_version, repeat_stale
from projects.api.projects import serialize_project
from projects.api.unit_bodies import NodeTypes, UnitBody
from projects.models import Project, User
from projects.permissions import Entity, Verb
from projects.quotas import exact_values
from projects.scopes import project_scope

PLACES = quotas.FIELD_PATHS | {
    "department": "departmentId",
    "cluster": "clusterId",
    "namespace": "requestedNamespace",
    "node_pools": "nodePools",
    "default_preemptibility": "defaultPreemptibility",
}
_NO_NAMES = "must be a list of names"


class ProjectBody(UnitBody):
    """A project."""

    cluster_id: Annotated[str | None, describe_field(format="uuid")] = None
    department_id: Annotated[
        str | None, describe_field("Or parentId: where you may make projects.")
    ] = None
    parent_id: str | None = None
    department_name: Annotated[Any, describe_field("Of answers; departmentId counts.")] = None
    requested_namespace: Annotated[
        str | None, describe_field("One that is there and is to be adopted.")
    ] = None
    namespace: Annotated[str | None, describe_field("Of answers; it cannot be changed.")] = None
    node_pools: Annotated[
        tuple[str, ...] | None,
        describe_field(
            "Or defaultNodePools. None, and default alone, is all of the cluster's.",
            problem=_NO_NAMES,
        ),
    ] = None
    default_node_pools: Annotated[tuple[str, ...] | None, describe_field(problem=_NO_NAMES)] = None
    default_preemptibility: Annotated[
        str | None, describe_field(enum=["preemptible", "non-preemptible", None])
    ] = None
    node_types: NodeTypes = None
    enforce_runai_scheduler: Annotated[
        Any,
        mark_unsupported(
            True,
            reason=(
                "cannot be that: a project's pods always go to the scheduler that its cluster has "
                "for quotas. Leave it out"
            ),
        ),
    ] = None


class ProjectsView(projects.ProjectsView):
    @extend_schema(
        operation_id="create_project",
        description=(
            "A new project. Without resources it has a quota of no GPUs and runs on what others "
            "leave idle."
        ),
        request=schemas.body_content(ProjectBody, "name", "clusterId"),
        responses={201: schemas.json_response(schemas.PROJECT)}
        | schemas.error_responses(400, 401, 403, 409),
        tags=["organisation"],
    )
    @idempotent
    def post(self, request: Request) -> Response:
        access.require_anywhere(self.user, Verb.CREATE, Entity.PROJECTS)
        body = unit_bodies.parse_unit_body(ProjectBody, request.data)
        base_values = {
            "gpu_quota": "0",
            "cluster": body.cluster_id or "",
            "namespace": body.requested_namespace or "",
        }
        form = ProjectForm(base_values | _build_form_data(self.user, body), user=self.user)
        quotas.require_valid(form, PLACES)
        return Response(
            serialize_project(_get_project(self.user, project_saving.save_project(form).pk)),
            status=201,
        )


class ProjectView(ApiView):
    @extend_schema(
        operation_id="get_project",
        description="One project.",
        responses={200: schemas.json_response(schemas.PROJECT)} | schemas.error_responses(401, 404),
        tags=["organisation"],
    )
    def get(self, request: Request, pk: int) -> Response:
        return Response(serialize_project(_get_project(self.user, pk)))

    @extend_schema(
        operation_id="replace_project",
        description=(
            "The project as the body says; what is not given is empty. Name, cluster and "
            "namespace stay, and so does a department that is not given."
        ),
        request=schemas.body_content(ProjectBody),
        responses={200: schemas.json_response(schemas.PROJECT)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    @repeat_stale
    def put(self, request: Request, pk: int) -> Response:
        return self._apply_change(request, pk, is_replacement=True)

    @extend_schema(
        operation_id="change_project",
        description="The project with what the body says; what is not given stays.",
        request=schemas.body_content(ProjectBody),
        responses={200: schemas.json_response(schemas.PROJECT)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    @repeat_stale
    def patch(self, request: Request, pk: int) -> Response:
        return self._apply_change(request, pk, is_replacement=False)

    def _apply_change(self, request: Request, pk: int, *, is_replacement: bool) -> Response:
        project = get_editable_project(self.user, pk)
        body = unit_bodies.parse_unit_body(ProjectBody, request.data)
        _check_unchanged(project, body)
        current: dict[str, Any] = (
            {"department": project.department.name, "gpu_quota": "0"}
            if is_replacement
            else _serialize_current(project)
        )
        return change_project(
            self.user,
            project,
            current | _build_form_data(self.user, body, project),
            body.version,
        )

    @extend_schema(
        operation_id="delete_project",
        description="Delete a project in which nothing is at work. Its history stays.",
        responses={202: schemas.json_response(schemas.DONE)}
        | schemas.error_responses(401, 403, 404, 409),
        tags=["organisation"],
    )
    def delete(self, request: Request, pk: int) -> Response:
        project = _get_project(self.user, pk)
        project_removal.remove_project(project, self.user)
        remove_deleted_project.enqueue(project.pk, project_saving.MAX_REMOVAL_CHECKS)
        return Response(
            {
                "code": 202,
                "message": (
                    f"Project {project.name} is deleted; it is being removed from its cluster."
                ),
            },
            status=202,
        )


class ProjectResourcesView(ApiView):
    @extend_schema(
        operation_id="change_project_resources",
        description="Another quota, as far as the body says one; the rest stays.",
        request=unit_bodies.describe_resources_content(),
        responses={200: schemas.json_response(schemas.PROJECT)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    @repeat_stale
    def patch(self, request: Request, pk: int) -> Response:
        project = get_editable_project(self.user, pk)
        return self._apply_change(request, project, _serialize_current(project))

    @extend_schema(
        operation_id="replace_project_resources",
        description=(
            "Another quota: what is not given of it is without limit, GPUs are none. The rest "
            "stays."
        ),
        request=unit_bodies.describe_resources_content(),
        responses={200: schemas.json_response(schemas.PROJECT)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    @repeat_stale
    def put(self, request: Request, pk: int) -> Response:
        project = get_editable_project(self.user, pk)
        return self._apply_change(
            request, project, quotas.drop_quota(_serialize_current(project)) | {"gpu_quota": "0"}
        )

    def _apply_change(
        self, request: Request, project: Project, current: Mapping[str, Any]
    ) -> Response:
        body = unit_bodies.parse_resources_body(request.data)
        return change_project(
            self.user, project, {**current, **unit_bodies.build_form_data(body)}, body.version
        )


def get_editable_project(user: User, pk: int) -> Project:
    """Return the project, if the user may change it. Raises Http404 and NotAllowed."""
    project = _get_project(user, pk)
    access.require(user, Verb.EDIT, Entity.PROJECTS, project_scope(pk))
    return project


def change_project(
    user: User, project: Project, form_data: Mapping[str, Any], version: int | None
) -> Response:
    """Change the project and return the answer with its new values. Raises Invalid, Clash and
    ChangedMeanwhile.
    """
    form = ProjectChangeForm(form_data, user=user, row=project)
    quotas.require_valid(form, PLACES)
    with follow_version(project.version, version) as edited_version:
        project_saving.save_project(form, edited_version)
    return Response(serialize_project(_get_project(user, project.pk)))


def _serialize_current(project: Project) -> dict[str, Any]:
    """Return a project's current values as form data, exact to the byte: a field that a body does
    not name stays.
    """
    return ProjectChangeForm.values(project) | exact_values(project)


def _check_unchanged(project: Project, body: ProjectBody) -> None:
    """Raise Invalid for a body that changes a fixed field of a project."""
    pairs = {
        "name": (body.name, project.name),
        "clusterId": (body.cluster_id, str(project.cluster_id)),
        "namespace": (body.namespace, project.namespace),
        "requestedNamespace": (body.requested_namespace, project.namespace),
    }
    if wrong := [name for name, (value, now) in pairs.items() if value not in (None, now)]:
        raise Invalid(
            [
                (
                    name,
                    (
                        f"{name} stays: objects in the cluster are named after it. Make another "
                        "project."
                    ),
                )
                for name in wrong
            ]
        )


def _build_form_data(user: User, body: ProjectBody, row: Project | None = None) -> dict[str, Any]:
    """Return only what a body has as the form's data. Raises Invalid."""
    typed = unit_bodies.build_form_data(body)
    for name, key in (("departmentId", body.department_id), ("parentId", body.parent_id)):
        if key is not None:
            typed["department"] = _get_department_name(user, key, name, row)
    for name, pools in (
        ("defaultNodePools", body.default_node_pools),
        ("nodePools", body.node_pools),
    ):
        if pools is not None:
            # What clients send that know of no pools asks for nothing, as in a workload.
            typed["node_pools"] = (
                []
                if pools == ("default",)
                else _get_pool_keys(pools, name, _get_cluster_id(user, body.cluster_id or "", row))
            )
    if body.default_preemptibility is not None:
        typed["default_preemptibility"] = body.default_preemptibility
    return typed


def _get_department_name(user: User, text: str, field: str, row: Project | None) -> str:
    name = (
        list_departments_for_project(user, row)
        .filter(pk=parse_number(text) or 0)
        .values_list("name", flat=True)
        .first()
    )
    if name is None:
        raise Invalid(
            [(field, f"There is no department {text[:40]} in which you may make projects.")]
        )
    return str(name)


def _get_cluster_id(user: User, text: str, row: Project | None) -> UUID:
    """Return the project's cluster, or the named one if the user may use it. Raises Invalid, which
    tells nothing of other clusters.
    """
    if row is not None:
        return row.cluster_id
    try:
        cluster_id = (
            list_clusters_for_new_project(user)
            .filter(pk=UUID(text))
            .values_list("pk", flat=True)
            .first()
        )
    except ValueError:
        cluster_id = None
    if cluster_id is None:
        raise Invalid(
            [("clusterId", f"There is no cluster {text[:40]} on which you may make projects.")]
        )
    return cluster_id


def _get_pool_keys(names: Sequence[str], field: str, cluster: UUID) -> list[str]:
    existing = dict(NodePool.objects.filter(cluster=cluster).values_list("name", "pk"))
    if unknown := [name for name in names if name not in existing]:
        hint = f"There are {', '.join(sorted(existing)[:20])}." if existing else "It has none."
        raise Invalid([(field, f"The cluster has no node pool {unknown[0][:40]}. {hint}")])
    return [str(existing[name]) for name in names]


def _get_project(user: User, pk: int) -> Project:
    rows = (
        Project.objects.visible_to(user)
        .select_related("department", "cluster")
        .defer("cluster__kubeconfig")
    )
    project: Project | None = rows.prefetch_related("node_pools").filter(pk=pk).first()
    if project is None:
        raise Http404("There is no such project among those that you may see.")
    return project
