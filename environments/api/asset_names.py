"""Whether a new asset or template can have a name in a scope."""

from typing import ClassVar

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from environments.api import bodies
from environments.forms import AssetForm
from environments.kinds import AssetKind
from projects import access, scope_choices
from projects.api import schemas
from projects.api.base import ApiView, ListQuery
from projects.api.name_availability import (
    NAME,
    RESPONSES,
    build_answer,
    find_field_problem,
    parse_name,
)
from projects.permissions import Verb
from projects.scopes import TENANT, Level, Scope

_ID_NAMES = {
    Level.PROJECT: "projectId",
    Level.DEPARTMENT: "departmentId",
    Level.CLUSTER: "clusterId",
}


class AssetNameView(ApiView):
    """Tells whether a name is free among the assets of a kind in one scope."""

    kind: ClassVar[AssetKind]

    def get(self, request: Request) -> Response:
        access.require_anywhere(self.user, Verb.CREATE, self.kind.model.entity)
        query = ListQuery(request)
        name, scope = parse_name(query), _parse_scope(query)
        access.require(self.user, Verb.CREATE, self.kind.model.entity, scope)
        if not scope_choices.scope_exists(scope):
            raise Http404("There is no such scope among those that you may see.")
        problem = find_field_problem(AssetForm.base_fields["name"], name)
        if not problem and self.kind.model.objects.at(scope).filter(name=name).exists():
            problem = f"There is one called {name} already in this scope. Choose another name."
        return build_answer(name, problem)


def build_name_view(kind: AssetKind, name: str, tag: str = "assets") -> type[AssetNameView]:
    """Build the view of one kind, with its OpenAPI description; `name` is for its id."""

    class Name(AssetNameView):
        @extend_schema(
            operation_id=f"check_{name}_name",
            description=f"Whether a new {kind.noun} can have this name in a scope.",
            parameters=[
                NAME,
                schemas.query_parameter("scope", schemas.enum_schema(*Level), "Its scope."),
                *(
                    schemas.query_parameter(each, schemas.TEXT, f"Of the scope {level}.")
                    for level, each in _ID_NAMES.items()
                ),
            ],
            responses=RESPONSES,
            tags=[tag],
        )
        def get(self, request: Request) -> Response:
            return super().get(request)

    Name.kind = kind
    return Name


def _parse_scope(query: ListQuery) -> Scope:
    """Return the scope of a query. Raises Invalid."""
    levels = [level for level, name in _ID_NAMES.items() if query.text(name)]
    level = query.choice("scope", ("", *Level)) or next(iter(levels), "")
    if level == Level.TENANT:
        return TENANT
    if not level:
        raise Invalid([("scope", f"scope must be one of {', '.join(Level)}.")])
    name = _ID_NAMES[Level(level)]
    try:
        return bodies.parse_scope(level, query.text(name))
    except ValueError:
        raise Invalid([(name, f"{name} must be the id of a {level}.")]) from None
