"""Whether a name can be given to something new: what the addresses that tell it share.

It is told to whoever may create it there, who would learn it by trying.
"""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from projects import access
from projects.api import schemas
from projects.api.base import ApiView, ListQuery
from projects.models import Department
from projects.permissions import Entity, Verb
from projects.quotas import DepartmentForm

PATH = "name-availability"
MAX_NAME_CHARS = 253
NAME = schemas.query_parameter(
    "name", schemas.TEXT, "The name that is asked about.", is_required=True
)
AVAILABILITY = schemas.object_schema(
    ["name", "available"],
    name=schemas.TEXT,
    available=schemas.BOOLEAN,
    message=schemas.describe_schema(schemas.TEXT, "Why it is not."),
    suggestion=schemas.describe_schema(schemas.TEXT, "A name that is free, where there is one."),
)
RESPONSES = {200: schemas.json_response(AVAILABILITY)} | schemas.error_responses(400, 401, 403, 404)


def parse_name(query: ListQuery) -> str:
    """Return the name of a query. Raises Invalid where there is none, and for a very long one.

    Spaces around it are left out, as forms do: the name that would be made is the one to look for.
    """
    name = query.text("name").strip()
    if not name or len(name) > MAX_NAME_CHARS:
        raise Invalid([("name", f"name must be given, with at most {MAX_NAME_CHARS} characters.")])
    return name


def find_form_problem(form: forms.BaseForm) -> str:
    """Return what is wrong with the name in a form; "" for nothing."""
    return " ".join(str(each) for each in form.errors.get("name", []))


def find_field_problem(field: forms.Field, name: str) -> str:
    """Return what a form's field says of a name; "" for nothing."""
    try:
        field.clean(name)
    except ValidationError as error:
        return " ".join(error.messages)
    return ""


def build_answer(name: str, problem: str, suggestion: str = "") -> Response:
    """Return the answer; `problem` is "" where the name can be given."""
    answer: dict[str, Any] = {"name": name, "available": not problem}
    if problem:
        answer["message"] = problem
    if suggestion:
        answer["suggestion"] = suggestion
    return Response(answer)


class DepartmentNameView(ApiView):
    @extend_schema(
        operation_id="check_department_name",
        description="Whether a new department can have this name.",
        parameters=[NAME],
        responses=RESPONSES,
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        access.require(self.user, Verb.CREATE, Entity.DEPARTMENTS)
        name = parse_name(ListQuery(request))
        problem = find_form_problem(DepartmentForm({"name": name}))
        if not problem and Department.objects.filter(name=name, deleted_at=None).exists():
            problem = f"There is a department {name} already. Choose another name."
        return build_answer(name, problem)
