"""`/api/v1/org-unit/departments`: departments that the user may see, and actions on them."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from console.moments import format_moment
from projects import access, departments, scope_choices
from projects.api import filtering, quotas, schemas, unit_bodies
from projects.api.base import ApiView, ListQuery
from projects.api.idempotency import idempotent
from projects.api.merging import follow_version, repeat_stale
from projects.api.unit_bodies import DepartmentBody, ResourcesBody
from projects.department_sums import annotate_sums
from projects.models import Department, User
from projects.permissions import Entity, Verb
from projects.quotas import DepartmentForm
from projects.scopes import cluster_scope, department_scope
from projects.shares import to_json_number

FIELDS = {
    "id": filtering.id_field("pk"),
    "name": filtering.text_field("name"),
    "description": filtering.text_field("description"),
    "gpuQuota": filtering.number_field("gpu_quota"),
    "gpuLimit": filtering.number_field("gpu_limit"),
    "overQuotaWeight": filtering.number_field("over_quota_weight"),
    "createdAt": filtering.moment_field("created_at"),
}


class DepartmentsView(ApiView):
    @extend_schema(
        operation_id="list_departments",
        description="The departments that you may see.",
        parameters=schemas.list_parameters(FIELDS),
        responses={
            200: schemas.json_response(schemas.list_schema("departments", quotas.DEPARTMENT))
        }
        | schemas.error_responses(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        query = ListQuery(request)
        rows = filtering.filter_and_search(
            annotate_sums(Department.objects.visible_to(self.user)), query, FIELDS
        )
        return Response(
            filtering.serialize_page(
                rows, query, FIELDS, ("name",), name="departments", serialize=serialize_department
            )
        )

    @extend_schema(
        operation_id="create_department",
        description="A new department. For administrators.",
        request=schemas.body_content(DepartmentBody, "name"),
        responses={201: schemas.json_response(quotas.DEPARTMENT)}
        | schemas.error_responses(400, 401, 403, 409),
        tags=["organisation"],
    )
    @idempotent
    def post(self, request: Request) -> Response:
        access.require(self.user, Verb.CREATE, Entity.DEPARTMENTS)
        form = DepartmentForm(_build_form_data(_parse_body(request.data)))
        quotas.require_valid(form, quotas.FIELD_PATHS)
        return Response(
            serialize_department(
                _get_department(self.user, departments.create(form, self.user).pk)
            ),
            status=201,
        )


class DepartmentsCountView(ApiView):
    @extend_schema(
        operation_id="count_departments",
        description=(
            "How many departments you may see, of what the list's filterBy and search ask for."
        ),
        parameters=schemas.filter_parameters(FIELDS),
        responses={200: schemas.json_response(schemas.COUNT)} | schemas.error_responses(400, 401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        return Response(
            {
                "count": filtering.filter_and_search(
                    Department.objects.visible_to(self.user), ListQuery(request), FIELDS
                ).count()
            }
        )


class DepartmentView(ApiView):
    @extend_schema(
        operation_id="get_department",
        description="One department.",
        responses={200: schemas.json_response(quotas.DEPARTMENT)}
        | schemas.error_responses(401, 404),
        tags=["organisation"],
    )
    def get(self, request: Request, pk: int) -> Response:
        return Response(serialize_department(_get_department(self.user, pk)))

    @extend_schema(
        operation_id="replace_department",
        description=(
            "The department as the body says; what is not given is empty. Its name stays where it "
            "is not given."
        ),
        request=schemas.body_content(DepartmentBody),
        responses={200: schemas.json_response(quotas.DEPARTMENT)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    @repeat_stale
    def put(self, request: Request, pk: int) -> Response:
        return self._answer_change(request, pk, is_replacement=True)

    @extend_schema(
        operation_id="change_department",
        description="The department with what the body says; what is not given stays.",
        request=schemas.body_content(DepartmentBody),
        responses={200: schemas.json_response(quotas.DEPARTMENT)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    @repeat_stale
    def patch(self, request: Request, pk: int) -> Response:
        return self._answer_change(request, pk, is_replacement=False)

    def _answer_change(self, request: Request, pk: int, *, is_replacement: bool) -> Response:
        department = _get_changeable(self.user, pk)
        return _apply_change(
            self.user,
            department,
            _parse_body(request.data),
            {"name": department.name} if is_replacement else departments.audit_values(department),
        )

    @extend_schema(
        operation_id="delete_department",
        description="Delete a department that has no projects.",
        responses={200: schemas.json_response(schemas.DONE)}
        | schemas.error_responses(401, 403, 404, 409),
        tags=["organisation"],
    )
    def delete(self, request: Request, pk: int) -> Response:
        department = _get_department(self.user, pk)
        departments.delete(department, self.user)
        return Response({"code": 200, "message": f"Department {department.name} is deleted."})


class DepartmentResourcesView(ApiView):
    @extend_schema(
        operation_id="change_department_resources",
        description="Another quota, as far as the body says one; the rest stays.",
        request=unit_bodies.describe_resources_content(),
        responses={200: schemas.json_response(quotas.DEPARTMENT)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    @repeat_stale
    def patch(self, request: Request, pk: int) -> Response:
        department = _get_changeable(self.user, pk)
        return _apply_change(
            self.user,
            department,
            unit_bodies.parse_resources_body(request.data),
            departments.audit_values(department),
        )

    @extend_schema(
        operation_id="replace_department_resources",
        description=(
            "Another quota: what is not given of it is the sum of its projects'. The rest stays."
        ),
        request=unit_bodies.describe_resources_content(),
        responses={200: schemas.json_response(quotas.DEPARTMENT)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    @repeat_stale
    def put(self, request: Request, pk: int) -> Response:
        department = _get_changeable(self.user, pk)
        return _apply_change(
            self.user,
            department,
            unit_bodies.parse_resources_body(request.data),
            quotas.drop_quota(departments.audit_values(department)),
        )


def _parse_body(data: Any) -> DepartmentBody:
    """Parse the body about a department. Raises Invalid."""
    body = unit_bodies.parse_unit_body(DepartmentBody, data)
    if body.cluster_id and not _cluster_exists(body.cluster_id):
        text = (
            f"There is no cluster {body.cluster_id[:40]}. Leave it out: a department is of all "
            "clusters."
        )
        raise Invalid([("clusterId", text)])
    return body


def _cluster_exists(text: str) -> bool:
    try:
        return scope_choices.scope_exists(cluster_scope(UUID(text)))
    except ValueError:
        return False


def _build_form_data(body: ResourcesBody) -> dict[str, Any]:
    """Return a body as the data of a form. Raises Invalid for limits that departments lack."""
    data = unit_bodies.build_form_data(body)
    if lacking := [name for name in ("cpu_limit", "memory_limit") if data.pop(name, "")]:
        places = [quotas.FIELD_PATHS[name] for name in lacking]
        raise Invalid(
            [
                (place, f"{place} must be null or -1: a department has a limit of GPUs only.")
                for place in places
            ]
        )
    return data


def _get_changeable(user: User, pk: int) -> Department:
    """Return the department if the user may change it. Raises Http404 and NotAllowed."""
    department = _get_department(user, pk)
    access.require(user, Verb.EDIT, Entity.DEPARTMENTS, department_scope(pk))
    return department


def _apply_change(
    user: User, department: Department, body: ResourcesBody, kept_values: Mapping[str, Any]
) -> Response:
    """Change a department by the body over the kept values, and answer it.

    Raises Invalid, Clash and ChangedMeanwhile.
    """
    form = DepartmentForm({**kept_values, **_build_form_data(body)}, row=department)
    quotas.require_valid(form, quotas.FIELD_PATHS)
    with follow_version(department.version, body.version) as version:
        departments.change(department, form, user, version)
    return Response(serialize_department(_get_department(user, department.pk)))


def serialize_department(row: Any) -> dict[str, Any]:
    """Return a department with its sums as the API answers it; its id is text."""
    return {
        "id": str(row.pk),
        "name": row.name,
        "description": row.description,
        "createdAt": format_moment(row.created_at),
        "version": row.version,
        "projectsCount": row.projects_count or 0,
        "resources": quotas.serialize_shares(row.shares),
        "totalResources": quotas.serialize_total(row.shares),
        "schedulingRules": quotas.serialize_rules(row),
        "status": {
            "allocatedGpus": row.held_gpus or 0,
            "quotaStatus": {"allocated": {"gpu": row.held_gpus or 0}},
            "projectsGpuQuota": None
            if row.projects_unlimited
            else to_json_number(row.projects_gpus or Decimal(0)),
        },
    }


def _get_department(user: User, pk: int) -> Department:
    department: Department | None = (
        annotate_sums(Department.objects.visible_to(user)).filter(pk=pk).first()
    )
    if department is None:
        raise Http404("There is no such department among those that you may see.")
    return department
