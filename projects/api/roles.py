"""`/api/v1/authorization/roles`: the roles of the table, and the custom ones."""

from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from projects import access, custom_roles
from projects.api import bodies, schemas
from projects.api.base import MOST, ApiView, Asked, array
from projects.api.bodies import Body
from projects.models import CustomRole, User
from projects.permissions import ROLES, Entity, Permission, Verb, read
from projects.rights import view
from projects.scopes import TENANT

TAGS = ["access"]


class RolesView(ApiView):
    @extend_schema(
        operation_id="list_roles",
        description=(
            "The roles of the table; and the custom ones, for who may see access rules or roles. "
            "The answer is an array."
        ),
        parameters=schemas.paging(),
        responses={200: schemas.answer(schemas.array(bodies.ROLE))} | schemas.errors(400, 401),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        asked = Asked(request)
        custom, following = asked.page(_custom(self.user).order_by("name"), MOST)
        first = (
            []
            if asked.text("offset").strip("0")
            else [bodies.role(role) for role in ROLES.values()]
        )
        return array([*first, *(_told(role) for role in custom)], following)

    @extend_schema(
        operation_id="create_role",
        description="A custom role, of permissions that you have yourself in the whole of Muster.",
        request=schemas.content(bodies.ROLE_REQUEST),
        responses={201: schemas.answer(bodies.ROLE)} | schemas.errors(400, 401, 403, 409),
        tags=TAGS,
    )
    def post(self, request: Request) -> Response:
        access.require(self.user, Verb.CREATE, Entity.ROLES)
        return Response(
            _told(custom_roles.create(**_role(Body(request.data), request.data), by=self.user)),
            status=201,
        )


class RoleView(ApiView):
    @extend_schema(
        operation_id="get_role",
        description="One role, by the id that access rules name.",
        responses={200: schemas.answer(bodies.ROLE)} | schemas.errors(401, 404),
        tags=TAGS,
    )
    def get(self, request: Request, key: str) -> Response:
        found = ROLES.get(bodies.role_key(key))
        return Response(
            bodies.role(found)
            if found
            else _told(get_object_or_404(_custom(self.user), pk=_number(key)))
        )

    @extend_schema(
        operation_id="change_role",
        description=(
            "Replace a custom role, for everybody who has it. With `version` it is refused where "
            "somebody else was first."
        ),
        request=schemas.content(bodies.ROLE_REQUEST),
        responses={200: schemas.answer(bodies.ROLE)} | schemas.errors(400, 401, 403, 404, 409),
        tags=TAGS,
    )
    def put(self, request: Request, key: str) -> Response:
        access.require(self.user, Verb.EDIT, Entity.ROLES)
        body = Body(request.data)
        version = body.whole("version", 1, 2**31 - 1)
        return Response(
            _told(
                custom_roles.edit(
                    _number(key), **_role(body, request.data), by=self.user, version=version
                )
            )
        )

    @extend_schema(
        operation_id="delete_role",
        description="Delete a custom role. Refused while an access rule has it.",
        responses={200: schemas.answer(schemas.DONE)} | schemas.errors(401, 403, 404, 409),
        tags=TAGS,
    )
    def delete(self, request: Request, key: str) -> Response:
        access.require(self.user, Verb.DELETE, Entity.ROLES)
        role = get_object_or_404(CustomRole, pk=_number(key))
        custom_roles.delete(role, self.user)
        return Response({"code": 200, "message": f"Role {role.name} is deleted."})


def _custom(user: User) -> Any:
    sees = user.rights.may(view(Entity.ROLES), TENANT) or user.rights.anywhere(
        Permission(Entity.ACCESS_RULES, Verb.VIEW)
    )
    found = CustomRole.objects.select_related("created_by")
    return found if sees else found.none()


def _told(role: CustomRole) -> dict[str, Any]:
    return bodies.custom_role(role, read(role.permissions))


def _role(body: Body, data: Any) -> dict[str, Any]:
    return {
        "name": body.text("name", most=63),
        "description": body.text("description", otherwise="", most=250),
        "permissions": bodies.permissions_of(data.get("permissions")),
    }


def _number(key: str) -> int:
    """The row's id of a custom role. Raises Http404 for a role of the table, and for none."""
    name, _, number = bodies.role_key(key).partition(":")
    if name != "custom":
        raise Http404(
            "There is no such role that can be changed: those of the table are as they are."
        )
    return int(number)
