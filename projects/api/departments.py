"""`/api/v1/org-unit/departments`: the departments that one may see; making, changing and deleting
them, as on the pages.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from projects import access, choosing, departments
from projects.api import filtering, quotas, schemas
from projects.api.base import ApiView, Asked
from projects.department_sums import with_sums
from projects.models import Department, User
from projects.permissions import Entity, Verb
from projects.quotas import DepartmentForm
from projects.scopes import of_cluster, of_department
from projects.shares import number

FIELDS = {
    "id": filtering.identity("pk"),
    "name": filtering.text("name"),
    "createdAt": filtering.moment("created_at"),
}
_FIXED: Mapping[str, quotas.Fixed] = {
    "defaultNodePools": (([], ["default"]), "node pools are given to projects. Leave it out."),
    "nodeTypes": quotas.NO_NODE_TYPES,
}


class DepartmentsView(ApiView):
    @extend_schema(
        operation_id="list_departments",
        description="The departments that you may see.",
        parameters=schemas.list_parameters(FIELDS),
        responses={200: schemas.answer(schemas.items("departments", quotas.DEPARTMENT))}
        | schemas.errors(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        asked = Asked(request)
        rows = filtering.matching(
            with_sums(Department.objects.visible_to(self.user)), asked, FIELDS
        )
        return Response(
            filtering.paged(rows, asked, FIELDS, ("name",), name="departments", shown=shown)
        )

    @extend_schema(
        operation_id="create_department",
        description="A new department. For administrators.",
        request=schemas.content(quotas.DEPARTMENT_ASKED),
        responses={201: schemas.answer(quotas.DEPARTMENT)} | schemas.errors(400, 401, 403, 409),
        tags=["organisation"],
    )
    def post(self, request: Request) -> Response:
        access.require(self.user, Verb.CREATE, Entity.DEPARTMENTS)
        form = DepartmentForm(_typed(_read(request.data)))
        quotas.valid(form, quotas.PLACES)
        return Response(
            shown(_found(self.user, departments.create(form, self.user).pk)), status=201
        )


class DepartmentsCountView(ApiView):
    @extend_schema(
        operation_id="count_departments",
        description=(
            "How many departments you may see, of what the list's filterBy and search ask for."
        ),
        parameters=schemas.filters(FIELDS),
        responses={200: schemas.answer(schemas.COUNT)} | schemas.errors(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        return Response(
            {
                "count": filtering.matching(
                    Department.objects.visible_to(self.user), Asked(request), FIELDS
                ).count()
            }
        )


class DepartmentView(ApiView):
    @extend_schema(
        operation_id="get_department",
        description="One department.",
        responses={200: schemas.answer(quotas.DEPARTMENT)} | schemas.errors(401, 404),
        tags=["organisation"],
    )
    def get(self, request: Request, pk: int) -> Response:
        return Response(shown(_found(self.user, pk)))

    @extend_schema(
        operation_id="replace_department",
        description=(
            "The department as the body says; what is not given is empty. Its name stays where it "
            "is not given."
        ),
        request=schemas.content(quotas.DEPARTMENT_CHANGED),
        responses={200: schemas.answer(quotas.DEPARTMENT)}
        | schemas.errors(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    def put(self, request: Request, pk: int) -> Response:
        return self._changed(request, pk, whole=True)

    @extend_schema(
        operation_id="change_department",
        description="The department with what the body says; what is not given stays.",
        request=schemas.content(quotas.DEPARTMENT_CHANGED),
        responses={200: schemas.answer(quotas.DEPARTMENT)}
        | schemas.errors(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    def patch(self, request: Request, pk: int) -> Response:
        return self._changed(request, pk, whole=False)

    def _changed(self, request: Request, pk: int, *, whole: bool) -> Response:
        found = _changeable(self.user, pk)
        return _changed(
            self.user,
            found,
            _read(request.data),
            {"name": found.name} if whole else departments.told(found),
        )

    @extend_schema(
        operation_id="delete_department",
        description="Delete a department that has no projects.",
        responses={200: schemas.answer(schemas.DONE)} | schemas.errors(401, 403, 404, 409),
        tags=["organisation"],
    )
    def delete(self, request: Request, pk: int) -> Response:
        found = _found(self.user, pk)
        departments.delete(found, self.user)
        return Response({"code": 200, "message": f"Department {found.name} is deleted."})


class DepartmentResourcesView(ApiView):
    @extend_schema(
        operation_id="change_department_resources",
        description="Another quota, as far as the body says one; the rest stays.",
        request=schemas.content(quotas.CHANGED_RESOURCES),
        responses={200: schemas.answer(quotas.DEPARTMENT)}
        | schemas.errors(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    def patch(self, request: Request, pk: int) -> Response:
        found = _changeable(self.user, pk)
        return _changed(
            self.user, found, quotas.resources_only(request.data), departments.told(found)
        )

    @extend_schema(
        operation_id="replace_department_resources",
        description=(
            "Another quota: what is not given of it is the sum of its projects'. The rest stays."
        ),
        request=schemas.content(quotas.CHANGED_RESOURCES),
        responses={200: schemas.answer(quotas.DEPARTMENT)}
        | schemas.errors(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    def put(self, request: Request, pk: int) -> Response:
        found = _changeable(self.user, pk)
        return _changed(
            self.user,
            found,
            quotas.resources_only(request.data),
            quotas.without_quota(departments.told(found)),
        )


def _read(data: Any) -> Mapping[str, Any]:
    """The body about a department. Raises Invalid."""
    body = quotas.mapping(data, {*quotas.OF_BOTH, "clusterId"}, _FIXED)
    if (cluster := quotas.text(body, "clusterId")) and not _is_cluster(cluster):
        raise Invalid(
            [
                (
                    "clusterId",
                    (
                        f"There is no cluster {cluster[:40]}. Leave it out: a department is of "
                        "all clusters."
                    ),
                )
            ]
        )
    return body


def _is_cluster(text: str) -> bool:
    try:
        return choosing.is_there(of_cluster(UUID(text)))
    except ValueError:
        return False


def _typed(body: Mapping[str, Any]) -> dict[str, Any]:
    """As it would be typed. Raises Invalid for limits that a department does not have."""
    typed = quotas.typed(body)
    if wrong := [name for name in ("cpu_limit", "memory_limit") if typed.pop(name, "")]:
        places = [quotas.PLACES[name] for name in wrong]
        raise Invalid(
            [
                (place, f"{place} must be null or -1: a department has a limit of GPUs only.")
                for place in places
            ]
        )
    return typed


def _changeable(user: User, pk: int) -> Department:
    """The department, for who may change it. Raises Http404 and NotAllowed."""
    found = _found(user, pk)
    access.require(user, Verb.EDIT, Entity.DEPARTMENTS, of_department(pk))
    return found


def _changed(
    user: User, found: Department, body: Mapping[str, Any], kept: Mapping[str, Any]
) -> Response:
    """The answer with the department as it is then: what the body says over what is kept. Raises
    Invalid, Clash and ChangedMeanwhile.
    """
    form = DepartmentForm({**kept, **_typed(body)}, row=found)
    quotas.valid(form, quotas.PLACES)
    departments.change(found, form, user, quotas.version(body))
    return Response(shown(_found(user, found.pk)))


def shown(row: Any) -> dict[str, Any]:
    """A department with its sums as the API has it; its id is text."""
    return {
        "id": str(row.pk),
        "name": row.name,
        "description": row.description,
        "createdAt": row.created_at.isoformat(),
        "version": row.version,
        "projectsCount": row.projects_count or 0,
        "resources": quotas.shares(row.shares),
        "totalResources": quotas.total(row.shares),
        "schedulingRules": quotas.rules(row),
        "status": {
            "allocatedGpus": row.held_gpus or 0,
            "quotaStatus": {"allocated": {"gpu": row.held_gpus or 0}},
            "projectsGpuQuota": None
            if row.projects_unlimited
            else number(row.projects_gpus or Decimal(0)),
        },
    }


def _found(user: User, pk: int) -> Department:
    found: Department | None = with_sums(Department.objects.visible_to(user)).filter(pk=pk).first()
    if found is None:
        raise Http404("There is no such department among those that you may see.")
    return found
