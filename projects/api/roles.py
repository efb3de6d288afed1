"""`/api/v1/authorization/roles`: the predefined roles and the custom ones."""

from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.rest_bodies import parse_body
from projects import access, custom_roles
from projects.api import access_bodies, bodies, schemas
from projects.api.base import MAX_ITEMS, ApiView, ListQuery, array_response
from projects.api.idempotency import idempotent
from projects.models import CustomRole, User
from projects.permissions import ROLES, Entity, Permission, Role, Verb, parse_permissions
from projects.rights import view_permission
from projects.scopes import TENANT

TAGS = ["access"]


class RolesView(ApiView):
    @extend_schema(
        operation_id="list_roles",
        description=(
            "The roles of the table; then the custom ones, for who may see access rules or roles. "
            "The answer is an array, with 500 of them where limit is not given."
        ),
        parameters=schemas.paging_parameters(),
        responses={200: schemas.json_response(schemas.array_schema(bodies.ROLE))}
        | schemas.error_responses(400, 401),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        page, next_offset = ListQuery(request).page(
            _list_custom_roles(self.user).order_by("name"), MAX_ITEMS, leading=[*ROLES.values()]
        )
        return array_response([_serialize_role(each) for each in page], next_offset)

    @extend_schema(
        operation_id="create_role",
        description="A custom role, of permissions that you have yourself in the whole of Muster.",
        request=schemas.body_content(access_bodies.RoleBody),
        responses={201: schemas.json_response(bodies.ROLE)}
        | schemas.error_responses(400, 401, 403, 409),
        tags=TAGS,
    )
    @idempotent
    def post(self, request: Request) -> Response:
        access.require(self.user, Verb.CREATE, Entity.ROLES)
        body = parse_body(access_bodies.RoleBody, request.data)
        role = custom_roles.create(
            name=body.name,
            description=body.description,
            permissions=body.parse_permissions(),
            by=self.user,
        )
        return Response(_serialize_custom_role(role), status=201)


class RoleView(ApiView):
    @extend_schema(
        operation_id="get_role",
        description="One role, by the id that access rules name.",
        responses={200: schemas.json_response(bodies.ROLE)} | schemas.error_responses(401, 404),
        tags=TAGS,
    )
    def get(self, request: Request, key: str) -> Response:
        role = ROLES.get(bodies.parse_role_key(key)) or get_object_or_404(
            _list_custom_roles(self.user), pk=_get_custom_id(key)
        )
        return Response(_serialize_role(role))

    @extend_schema(
        operation_id="change_role",
        description=(
            "Replace a custom role, for everybody who has it. With `version` it is refused where "
            "somebody else was first."
        ),
        request=schemas.body_content(access_bodies.RoleChange),
        responses={200: schemas.json_response(bodies.ROLE)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=TAGS,
    )
    def put(self, request: Request, key: str) -> Response:
        access.require(self.user, Verb.EDIT, Entity.ROLES)
        body = parse_body(access_bodies.RoleChange, request.data)
        role = custom_roles.edit(
            _get_custom_id(key),
            name=body.name,
            description=body.description,
            permissions=body.parse_permissions(),
            by=self.user,
            version=body.version,
        )
        return Response(_serialize_custom_role(role))

    @extend_schema(
        operation_id="delete_role",
        description="Delete a custom role. Refused while an access rule has it.",
        responses={200: schemas.json_response(schemas.DONE)}
        | schemas.error_responses(401, 403, 404, 409),
        tags=TAGS,
    )
    def delete(self, request: Request, key: str) -> Response:
        access.require(self.user, Verb.DELETE, Entity.ROLES)
        role = get_object_or_404(CustomRole, pk=_get_custom_id(key))
        custom_roles.delete(role, self.user)
        return Response({"code": 200, "message": f"Role {role.name} is deleted."})


def _list_custom_roles(user: User) -> Any:
    may_see = user.rights.may(view_permission(Entity.ROLES), TENANT) or user.rights.may_anywhere(
        Permission(Entity.ACCESS_RULES, Verb.VIEW)
    )
    roles = CustomRole.objects.select_related("created_by")
    return roles if may_see else roles.none()


def _serialize_role(role: Role | CustomRole) -> dict[str, Any]:
    if isinstance(role, CustomRole):
        return _serialize_custom_role(role)
    return bodies.serialize_role(role)


def _serialize_custom_role(role: CustomRole) -> dict[str, Any]:
    return bodies.serialize_custom_role(role, parse_permissions(role.permissions))


def _get_custom_id(key: str) -> int:
    """Return the row's id of a custom role. Raises Http404 for any other role."""
    name, _, number = bodies.parse_role_key(key).partition(":")
    if name != "custom":
        raise Http404(
            "There is no such role that can be changed: those of the table are as they are."
        )
    return int(number)
