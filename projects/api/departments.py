"""`/api/v1/org-unit/departments`: the departments that one may see; making, changing and deleting them, as on the pages."""

from decimal import Decimal
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from projects import access, departments
from projects.api import filtering, quotas, schemas
from projects.api.base import ApiView, Asked, listed
from projects.department_sums import with_sums
from projects.models import Department, User
from projects.permissions import Entity, Verb
from projects.quotas import DepartmentForm
from projects.scopes import of_department
from projects.shares import number

FIELDS = {"id": filtering.identity("pk"), "name": filtering.text("name"), "createdAt": filtering.moment("created_at")}


class DepartmentsView(ApiView):
    @extend_schema(
        operation_id="list_departments",
        description="The departments that you may see.",
        parameters=schemas.list_parameters(FIELDS),
        responses={200: schemas.answer(schemas.items("departments", quotas.DEPARTMENT))} | schemas.errors(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        asked = Asked(request)
        rows = filtering.narrowed(with_sums(Department.objects.visible_to(self.user)), asked, FIELDS)
        if search := asked.text("search"):
            rows = rows.filter(name__icontains=search)
        found, following = asked.page(filtering.ordered(rows, asked, FIELDS, ("name",)))
        return Response(listed("departments", [shown(each) for each in found], following))

    @extend_schema(
        operation_id="create_department",
        description="A new department. For administrators.",
        request=schemas.content(quotas.DEPARTMENT_ASKED),
        responses={201: schemas.answer(quotas.DEPARTMENT)} | schemas.errors(400, 401, 403, 409),
        tags=["organisation"],
    )
    def post(self, request: Request) -> Response:
        access.require(self.user, Verb.CREATE, Entity.DEPARTMENTS)
        form = DepartmentForm(quotas.typed(quotas.mapping(request.data, quotas.OF_BOTH)))
        quotas.valid(form, quotas.PLACES)
        return Response(shown(_found(self.user, departments.create(form, self.user).pk)), status=201)


class DepartmentsCountView(ApiView):
    @extend_schema(
        operation_id="count_departments",
        description="How many departments you may see.",
        responses={200: schemas.answer(quotas.COUNT)} | schemas.errors(401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        return Response({"count": Department.objects.visible_to(self.user).count()})


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
        description="The department as the body says; what is not given is empty. Its name stays where it is not given.",
        request=schemas.content(quotas.DEPARTMENT_CHANGED),
        responses={200: schemas.answer(quotas.DEPARTMENT)} | schemas.errors(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    def put(self, request: Request, pk: int) -> Response:
        return self._changed(request, pk, whole=True)

    @extend_schema(
        operation_id="change_department",
        description="The department with what the body says; what is not given stays.",
        request=schemas.content(quotas.DEPARTMENT_CHANGED),
        responses={200: schemas.answer(quotas.DEPARTMENT)} | schemas.errors(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    def patch(self, request: Request, pk: int) -> Response:
        return self._changed(request, pk, whole=False)

    def _changed(self, request: Request, pk: int, *, whole: bool) -> Response:
        found = _found(self.user, pk)
        access.require(self.user, Verb.EDIT, Entity.DEPARTMENTS, of_department(pk))
        body = quotas.mapping(request.data, quotas.OF_BOTH)
        kept = {"name": found.name} if whole else DepartmentForm.values(found)
        form = DepartmentForm(kept | quotas.typed(body), row=found)
        quotas.valid(form, quotas.PLACES)
        departments.change(found, form, self.user, quotas.version(body))
        return Response(shown(_found(self.user, pk)))

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
        "schedulingRules": quotas.rules(row),
        "status": {
            "allocatedGpus": row.held_gpus or 0,
            "projectsGpuQuota": None if row.projects_unlimited else number(row.projects_gpus or Decimal(0)),
        },
    }


def _found(user: User, pk: int) -> Department:
    found: Department | None = with_sums(Department.objects.visible_to(user)).filter(pk=pk).first()
    if found is None:
        raise Http404("There is no such department among those that you may see.")
    return found
