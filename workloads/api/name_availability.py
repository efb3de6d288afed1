"""`GET /api/v1/workloads/name-availability`: whether a new workload can have a name."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from projects import access
from projects.api import schemas
from projects.api.base import ApiView, ListQuery
from projects.api.name_availability import NAME, RESPONSES, build_answer, parse_name
from projects.permissions import Entity, Verb
from projects.scopes import project_scope
from workloads import journal
from workloads.api.submissions import get_project
from workloads.specs.value_rules import check_name


class WorkloadNameView(ApiView):
    @extend_schema(
        operation_id="check_workload_name",
        description=(
            "Whether a new workload of a project can have this name. That of a distributed one "
            "with many workers may have to be a little shorter still."
        ),
        parameters=[
            NAME,
            schemas.query_parameter("projectId", schemas.TEXT, "The project that it is to be in."),
        ],
        responses=RESPONSES,
        tags=["workloads"],
    )
    def get(self, request: Request) -> Response:
        access.require_anywhere(self.user, Verb.CREATE, Entity.WORKLOADS)
        query = ListQuery(request)
        name, project = parse_name(query), get_project(query.text("projectId"), self.user)
        access.require(self.user, Verb.CREATE, Entity.WORKLOADS, project_scope(project))
        if problem := check_name(name):
            return build_answer(name, f"name {problem}.")
        free = journal.suggest_free_name(project, name)
        if free == name:
            return build_answer(name, "")
        text = f"The project {project.name} has a workload named {name} already."
        return build_answer(name, text, free)
