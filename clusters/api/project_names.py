"""`GET /api/v1/org-unit/projects/name-availability`: whether a new project can have a name."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from clusters.forms import ProjectForm
from projects import access
from projects.api.base import ApiView, ListQuery
from projects.api.name_availability import (
    NAME,
    RESPONSES,
    build_answer,
    find_form_problem,
    parse_name,
)
from projects.permissions import Entity, Verb


class ProjectNameView(ApiView):
    @extend_schema(
        operation_id="check_project_name",
        description="Whether a new project can have this name.",
        parameters=[NAME],
        responses=RESPONSES,
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        access.require_anywhere(self.user, Verb.CREATE, Entity.PROJECTS)
        name = parse_name(ListQuery(request))
        return build_answer(name, find_form_problem(ProjectForm({"name": name}, user=self.user)))
