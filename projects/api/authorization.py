"""`/api/v1/authorization`: roles, access rules, and what the caller may do where."""

from typing import Any

from django.db.models import Q
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from projects import access, custom_roles, granting, subjects
from projects.api import bodies, filtering, schemas
from projects.api.base import ApiView, Asked, listed
from projects.api.bodies import Body
from projects.models import AccessRule, CustomRole, User
from projects.permissions import ROLES, Entity, Permission, Verb, read
from projects.rights import view
from projects.scopes import TENANT

MOST_COUNTED = 10_000
"""Rules that are counted at most: `totalRecords` is this where there are more."""
RULE_FIELDS = {
    "id": filtering.identity("pk"),
    "subjectName": filtering.text("user__username"),
    "groupName": filtering.text("group__name"),
    "roleId": filtering.exact("role"),
    "projectId": filtering.identity("project_id"),
    "departmentId": filtering.identity("department_id"),
    "clusterId": filtering.uuid("cluster_id"),
    "createdAt": filtering.moment("created_at"),
}
TAGS = ["access"]


class RolesView(ApiView):
    @extend_schema(
        operation_id="list_roles",
        description="The roles of the table; and the custom ones, for who may see access rules or roles.",
        parameters=schemas.paging(),
        responses={200: schemas.answer(schemas.items("roles", bodies.ROLE))} | schemas.errors(400, 401),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        custom, following = Asked(request).page(_custom(self.user).order_by("name"))
        first = [bodies.role(role) for role in ROLES.values()] if not Asked(request).text("offset").strip("0") else []
        return Response(listed("roles", [*first, *(_told(role) for role in custom)], following))

    @extend_schema(
        operation_id="create_role",
        description="A custom role, of permissions that you have yourself in the whole of Muster.",
        request=schemas.content(bodies.ROLE_REQUEST),
        responses={201: schemas.answer(bodies.ROLE)} | schemas.errors(400, 401, 403, 409),
        tags=TAGS,
    )
    def post(self, request: Request) -> Response:
        access.require(self.user, Verb.CREATE, Entity.ROLES)
        return Response(_told(custom_roles.create(**_role(Body(request.data), request.data), by=self.user)), status=201)


class RoleView(ApiView):
    @extend_schema(
        operation_id="get_role",
        description="One role, by the id that access rules name.",
        responses={200: schemas.answer(bodies.ROLE)} | schemas.errors(401, 404),
        tags=TAGS,
    )
    def get(self, request: Request, key: str) -> Response:
        return Response(bodies.role(ROLES[key]) if key in ROLES else _told(get_object_or_404(_custom(self.user), pk=_number(key))))

    @extend_schema(
        operation_id="change_role",
        description="Replace a custom role, for everybody who has it. With `version` it is refused where somebody else was first.",
        request=schemas.content(bodies.ROLE_REQUEST),
        responses={200: schemas.answer(bodies.ROLE)} | schemas.errors(400, 401, 403, 404, 409),
        tags=TAGS,
    )
    def put(self, request: Request, key: str) -> Response:
        access.require(self.user, Verb.EDIT, Entity.ROLES)
        body = Body(request.data)
        version = body.whole("version", 1, 2**31 - 1)
        return Response(_told(custom_roles.edit(_number(key), **_role(body, request.data), by=self.user, version=version)))

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


class RulesView(ApiView):
    @extend_schema(
        operation_id="list_access_rules",
        description=f"The access rules of the scopes in which you may see them; counted are at most {MOST_COUNTED:,}.",
        parameters=schemas.list_parameters(RULE_FIELDS),
        responses={
            200: schemas.answer(
                schemas.obj(
                    ["totalRecords", "displayRecords", "accessRules"],
                    next=schemas.WHOLE,
                    totalRecords=schemas.WHOLE,
                    displayRecords=schemas.WHOLE,
                    accessRules=schemas.array(bodies.RULE),
                )
            )
        }
        | schemas.errors(400, 401, 403),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        access.anywhere(self.user, Verb.VIEW, Entity.ACCESS_RULES)
        asked = Asked(request)
        rules = filtering.narrowed(AccessRule.objects.visible_to(self.user), asked, RULE_FIELDS)
        if search := asked.text("search"):
            rules = rules.filter(Q(user__username__icontains=search) | Q(group__name__icontains=search))
        total = rules.order_by()[:MOST_COUNTED].count()
        found, following = asked.page(filtering.ordered(rules.with_subject(), asked, RULE_FIELDS, ("created_at", "pk")))
        counts = {"totalRecords": total, "displayRecords": len(found)}
        return Response(counts | listed("accessRules", [bodies.rule(each) for each in found], following))

    @extend_schema(
        operation_id="create_access_rule",
        description="Give a subject a role in a scope: one that permits nothing that you may not do there yourself.",
        request=schemas.content(bodies.RULE_REQUEST),
        responses={201: schemas.answer(bodies.RULE)} | schemas.errors(400, 401, 403, 404, 409),
        tags=TAGS,
    )
    def post(self, request: Request) -> Response:
        access.anywhere(self.user, Verb.CREATE, Entity.ACCESS_RULES)
        body = Body(request.data)
        kind, scope = body.text("subjectType"), body.scope()
        if kind not in subjects.KINDS:
            raise subjects.no_kind(kind)
        access.require(self.user, Verb.CREATE, Entity.ACCESS_RULES, scope)
        subject = subjects.one(kind, body.text("subjectId", most=subjects.LONGEST), self.user)
        made = granting.give_all(body.text("roleId"), to=[subject], scope=scope, by=self.user)[0]
        return Response(bodies.rule(AccessRule.objects.with_subject().get(pk=made.pk)), status=201)


class RuleView(ApiView):
    @extend_schema(
        operation_id="get_access_rule",
        description="One access rule.",
        responses={200: schemas.answer(bodies.RULE)} | schemas.errors(401, 404),
        tags=TAGS,
    )
    def get(self, request: Request, pk: int) -> Response:
        return Response(bodies.rule(self._one(pk)))

    @extend_schema(
        operation_id="delete_access_rule",
        description="Take a role away. A rule is not changed: it is deleted, and another one made.",
        responses={200: schemas.answer(schemas.DONE)} | schemas.errors(401, 403, 404),
        tags=TAGS,
    )
    def delete(self, request: Request, pk: int) -> Response:
        found = self._one(pk)
        granting.take(found, self.user)
        return Response({"code": 200, "message": f"{found.subject} is not {found.role_label} there any more."})

    def _one(self, pk: int) -> AccessRule:
        found: AccessRule = get_object_or_404(AccessRule.objects.visible_to(self.user).with_subject(), pk=pk)
        return found


class PermissionsView(ApiView):
    @extend_schema(
        operation_id="list_permissions",
        description="What you may do anywhere; permitted-scopes says where.",
        responses={200: schemas.answer(schemas.obj(["permissions"], permissions=bodies.PERMISSIONS))} | schemas.errors(401),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        rights = self.user.rights
        return Response({"permissions": bodies.permissions(frozenset(each for each in rights.everything if rights.anywhere(each)))})


class ScopesView(ApiView):
    @extend_schema(
        operation_id="permitted_scopes",
        description="Where you may do something: everywhere (tenant), or in these and in what is below them.",
        parameters=[
            schemas.parameter("resourceType", schemas.words(*Entity), "What it is done to."),
            schemas.parameter("action", schemas.words(*bodies.ACTIONS.values()), "What is done; read where it is not given."),
        ],
        responses={
            200: schemas.answer(
                schemas.obj(
                    ["tenant", "clusters", "departments", "projects"],
                    tenant=schemas.FLAG,
                    clusters=schemas.array(schemas.TEXT),
                    departments=schemas.array(schemas.TEXT),
                    projects=schemas.array(schemas.TEXT),
                )
            )
        }
        | schemas.errors(400, 401),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        asked = Asked(request)
        where = self.user.rights.where(bodies.permission_of(asked.text("resourceType"), asked.text("action", "read")))
        return Response(
            {
                "tenant": where.tenant,
                "clusters": sorted(map(str, where.clusters)),
                "departments": [str(pk) for pk in sorted(where.departments)],
                "projects": [str(pk) for pk in sorted(where.projects)],
            }
        )


def _custom(user: User) -> Any:
    sees = user.rights.may(view(Entity.ROLES), TENANT) or user.rights.anywhere(Permission(Entity.ACCESS_RULES, Verb.VIEW))
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
    """The id of "custom:3"."""
    name, _, number = key.partition(":")
    if name != "custom" or not (number.isascii() and number.isdigit() and len(number) < 19):
        raise Http404("There is no such role that can be changed: those of the table are as they are.")
    return int(number)
