"""`/api/v1/org-unit/projects`: making, changing and deleting projects, as on the pages; what they
are in the cluster follows.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from clusters import making
from clusters.forms import ProjectForm, QuotaForm, clusters_for, departments_for
from clusters.models import NodePool
from clusters.tasks import leave
from console.errors import Invalid
from projects import access, leaving
from projects.api import projects, quotas, schemas
from projects.api.base import ApiView
from projects.api.projects import shown
from projects.api.schemas import ID, TEXT, array, obj, said, words
from projects.models import Project, User
from projects.permissions import Entity, Verb
from projects.quotas import exact
from projects.scopes import of_project

PLACES = quotas.PLACES | {
    "department": "departmentId",
    "cluster": "clusterId",
    "namespace": "requestedNamespace",
    "node_pools": "nodePools",
    "default_preemptibility": "defaultPreemptibility",
}
KNOWN = quotas.OF_BOTH | {
    "departmentId",
    "parentId",
    "departmentName",
    "clusterId",
    "requestedNamespace",
    "namespace",
}
KNOWN |= {"nodePools", "defaultNodePools", "defaultPreemptibility"}
ASKED = obj(
    ["name", "clusterId"],
    name=TEXT,
    description=TEXT,
    clusterId=ID,
    departmentId=said(TEXT, "Or parentId: where you may make projects."),
    parentId=TEXT,
    requestedNamespace=said(TEXT, "One that is there and is to be adopted."),
    resources=quotas.RESOURCES,
    schedulingRules=quotas.SCHEDULING_RULES,
    nodePools=said(
        array(TEXT), "Or defaultNodePools. None, and default alone, is all of the cluster's."
    ),
    defaultNodePools=array(TEXT),
    defaultPreemptibility=words("preemptible", "non-preemptible"),
    version=quotas.VERSION,
)
CHANGED = ASKED | {"required": []}
FIXED: Mapping[str, quotas.Fixed] = {
    "nodeTypes": quotas.NO_NODE_TYPES,
    "enforceRunaiScheduler": (
        (True,),
        (
            "a project's pods always go to the scheduler that its cluster has for quotas. Leave "
            "it out."
        ),
    ),
}


class ProjectsView(projects.ProjectsView):
    @extend_schema(
        operation_id="create_project",
        description=(
            "A new project. Without resources it has a quota of no GPUs and runs on what others "
            "leave idle."
        ),
        request=schemas.content(ASKED),
        responses={201: schemas.answer(schemas.PROJECT)} | schemas.errors(400, 401, 403, 409),
        tags=["organisation"],
    )
    def post(self, request: Request) -> Response:
        access.anywhere(self.user, Verb.CREATE, Entity.PROJECTS)
        body = quotas.mapping(request.data, KNOWN, FIXED)
        given = {
            "gpu_quota": "0",
            "cluster": quotas.text(body, "clusterId"),
            "namespace": quotas.text(body, "requestedNamespace"),
        }
        form = ProjectForm(given | _typed(self.user, body, given["cluster"]), user=self.user)
        quotas.valid(form, PLACES)
        return Response(shown(_found(self.user, making.saved(form).pk)), status=201)


class ProjectView(ApiView):
    @extend_schema(
        operation_id="get_project",
        description="One project.",
        responses={200: schemas.answer(schemas.PROJECT)} | schemas.errors(401, 404),
        tags=["organisation"],
    )
    def get(self, request: Request, pk: int) -> Response:
        return Response(shown(_found(self.user, pk)))

    @extend_schema(
        operation_id="replace_project",
        description=(
            "The project as the body says; what is not given is empty. Name, cluster and "
            "namespace stay, and so does a department that is not given."
        ),
        request=schemas.content(CHANGED),
        responses={200: schemas.answer(schemas.PROJECT)} | schemas.errors(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    def put(self, request: Request, pk: int) -> Response:
        return self._changed(request, pk, whole=True)

    @extend_schema(
        operation_id="change_project",
        description="The project with what the body says; what is not given stays.",
        request=schemas.content(CHANGED),
        responses={200: schemas.answer(schemas.PROJECT)} | schemas.errors(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    def patch(self, request: Request, pk: int) -> Response:
        return self._changed(request, pk, whole=False)

    def _changed(self, request: Request, pk: int, *, whole: bool) -> Response:
        found = changeable(self.user, pk)
        body = quotas.mapping(request.data, KNOWN, FIXED)
        _stays(found, body)
        kept: dict[str, Any] = (
            {"department": found.department.name, "gpu_quota": "0"} if whole else _kept(found)
        )
        return changed(
            self.user,
            found,
            kept | _typed(self.user, body, str(found.cluster_id), found),
            quotas.version(body),
        )

    @extend_schema(
        operation_id="delete_project",
        description="Delete a project in which nothing is at work. Its history stays.",
        responses={202: schemas.answer(schemas.DONE)} | schemas.errors(401, 403, 404, 409),
        tags=["organisation"],
    )
    def delete(self, request: Request, pk: int) -> Response:
        found = _found(self.user, pk)
        leaving.leave(found, self.user)
        leave.soon(found.pk, making.LOOKS)
        return Response(
            {
                "code": 202,
                "message": (
                    f"Project {found.name} is deleted; it is being removed from its cluster."
                ),
            },
            status=202,
        )


class ProjectResourcesView(ApiView):
    @extend_schema(
        operation_id="change_project_resources",
        description="Another quota, as far as the body says one; the rest stays.",
        request=schemas.content(quotas.CHANGED_RESOURCES),
        responses={200: schemas.answer(schemas.PROJECT)} | schemas.errors(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    def patch(self, request: Request, pk: int) -> Response:
        found = changeable(self.user, pk)
        return self._changed(request, found, _kept(found))

    @extend_schema(
        operation_id="replace_project_resources",
        description=(
            "Another quota: what is not given of it is without limit, GPUs are none. The rest "
            "stays."
        ),
        request=schemas.content(quotas.CHANGED_RESOURCES),
        responses={200: schemas.answer(schemas.PROJECT)} | schemas.errors(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    def put(self, request: Request, pk: int) -> Response:
        found = changeable(self.user, pk)
        return self._changed(
            request, found, quotas.without_quota(_kept(found)) | {"gpu_quota": "0"}
        )

    def _changed(self, request: Request, found: Project, kept: Mapping[str, Any]) -> Response:
        body = quotas.resources_only(request.data)
        return changed(self.user, found, {**kept, **quotas.typed(body)}, quotas.version(body))


def changeable(user: User, pk: int) -> Project:
    """The project, for who may change it. Raises Http404 and NotAllowed."""
    found = _found(user, pk)
    access.require(user, Verb.EDIT, Entity.PROJECTS, of_project(pk))
    return found


def changed(
    user: User, project: Project, given: Mapping[str, Any], version: int | None
) -> Response:
    """The answer with the project as it is then. Raises Invalid, Clash and ChangedMeanwhile."""
    form = QuotaForm(given, user=user, row=project)
    quotas.valid(form, PLACES)
    making.saved(form, version)
    return Response(shown(_found(user, project.pk)))


def _kept(project: Project) -> dict[str, Any]:
    """What a project has, as it would be typed, to the byte: what a body does not name stays."""
    return QuotaForm.values(project) | exact(project)


def _stays(project: Project, body: Mapping[str, Any]) -> None:
    """Raises Invalid for what cannot be changed of a project."""
    now = {
        "name": project.name,
        "clusterId": str(project.cluster_id),
        "namespace": project.namespace,
    }
    now["requestedNamespace"] = project.namespace
    if wrong := [name for name, value in now.items() if body.get(name) not in (None, value)]:
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


def _typed(
    user: User, body: Mapping[str, Any], cluster: str, row: Project | None = None
) -> dict[str, Any]:
    """What a body says, and nothing else, as it would be typed. Raises Invalid."""
    found = quotas.typed(body)
    for name in ("departmentId", "parentId"):
        if body.get(name) is not None:
            found["department"] = _department(user, quotas.text(body, name), name, row)
    for name in ("defaultNodePools", "nodePools"):
        if body.get(name) is not None:
            # What clients send that know of no pools asks for nothing, as in a workload.
            found["node_pools"] = (
                []
                if body[name] == ["default"]
                else _pools(body[name], name, _cluster(user, cluster, row))
            )
    if body.get("defaultPreemptibility") is not None:
        found["default_preemptibility"] = quotas.text(body, "defaultPreemptibility")
    return found


def _department(user: User, text: str, field: str, row: Project | None) -> str:
    key = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
    name = departments_for(user, row).filter(pk=key).values_list("name", flat=True).first()
    if name is None:
        raise Invalid(
            [(field, f"There is no department {text[:40]} in which you may make projects.")]
        )
    return str(name)


def _cluster(user: User, text: str, row: Project | None) -> UUID:
    """Where the project is, or may be: nothing is told of any other cluster. Raises Invalid."""
    if row is not None:
        return row.cluster_id
    try:
        found = clusters_for(user).filter(pk=UUID(text)).values_list("pk", flat=True).first()
    except ValueError:
        found = None
    if found is None:
        raise Invalid(
            [("clusterId", f"There is no cluster {text[:40]} on which you may make projects.")]
        )
    return found


def _pools(given: Any, field: str, cluster: UUID) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise Invalid([(field, f"{field} must be a list of names.")])
    there = dict(NodePool.objects.filter(cluster=cluster).values_list("name", "pk"))
    if strange := [name for name in given if name not in there]:
        known = f"There are {', '.join(sorted(there)[:20])}." if there else "It has none."
        raise Invalid([(field, f"The cluster has no node pool {strange[0][:40]}. {known}")])
    return [str(there[name]) for name in given]


def _found(user: User, pk: int) -> Project:
    rows = (
        Project.objects.visible_to(user)
        .select_related("department", "cluster")
        .defer("cluster__kubeconfig")
    )
    found: Project | None = rows.prefetch_related("node_pools").filter(pk=pk).first()
    if found is None:
        raise Http404("There is no such project among those that you may see.")
    return found
