"""`/api/v1/authorization`: access rules, and what the caller may do where. Roles have a module of
their own.
"""

from typing import Any

from django.db.models import Q
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from projects import access, granting, subjects
from projects.api import bodies, filtering, schemas
from projects.api.base import ApiView, Asked, array
from projects.api.bodies import Body
from projects.models import AccessRule
from projects.permissions import Entity, Permission, Verb
from projects.scopes import Level, Scope

MOST_COUNTED = 10_000
"""Rules that are counted at most: `totalRecords` is this where there are more."""
RULE_FIELDS = {
    "id": filtering.identity("pk"),
    "subjectName": filtering.text("user__username"),
    "groupName": filtering.text("group__name"),
    "roleKey": filtering.exact("role"),
    "projectId": filtering.identity("project_id"),
    "departmentId": filtering.identity("department_id"),
    "clusterId": filtering.uuid("cluster_id"),
    "createdAt": filtering.moment("created_at"),
}
SEARCHED = ("user__username", "group__name")
PARAMETERS = [
    schemas.parameter(
        "subjectType", schemas.words(*subjects.KINDS), "Those of subjects of this type."
    ),
    schemas.parameter(
        "subjectIds", schemas.TEXT, "Those of these subjects: names, with commas between them."
    ),
    schemas.parameter("roleId", schemas.TEXT, "Those with this role: its id, or its key."),
    schemas.parameter("scopeType", schemas.words(*Level), "Those of scopes of this level."),
    schemas.parameter("scopeId", schemas.TEXT, "With scopeType: those of this scope alone."),
    schemas.parameter("clusterId", schemas.ID, "Those of this cluster."),
]
RULES = schemas.obj(
    ["totalRecords", "displayRecords", "accessRules"],
    next=schemas.WHOLE,
    totalRecords=schemas.WHOLE,
    displayRecords=schemas.WHOLE,
    accessRules=schemas.array(bodies.RULE),
)
TAGS = ["access"]


class RulesView(ApiView):
    @extend_schema(
        operation_id="list_access_rules",
        description=(
            "The access rules of the scopes in which you may see them; counted are at most "
            f"{MOST_COUNTED:,}."
        ),
        parameters=[*schemas.list_parameters(RULE_FIELDS), *PARAMETERS],
        responses={200: schemas.answer(RULES)} | schemas.errors(400, 401, 403),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        access.anywhere(self.user, Verb.VIEW, Entity.ACCESS_RULES)
        return Response(_listed(AccessRule.objects.visible_to(self.user), Asked(request)))

    @extend_schema(
        operation_id="create_access_rule",
        description=(
            "Give a subject a role in a scope: one that permits nothing that you may not do there "
            "yourself."
        ),
        request=schemas.content(bodies.RULE_REQUEST),
        responses={201: schemas.answer(bodies.RULE)} | schemas.errors(400, 401, 403, 404, 409),
        tags=TAGS,
    )
    def post(self, request: Request) -> Response:
        access.anywhere(self.user, Verb.CREATE, Entity.ACCESS_RULES)
        body = Body(request.data)
        kind, scope = body.text("subjectType"), body.scope()
        # What Run:ai called service accounts before.
        kind = subjects.SERVICE_ACCOUNT if kind == "app" else kind
        if kind not in subjects.KINDS:
            raise subjects.no_kind(kind)
        access.require(self.user, Verb.CREATE, Entity.ACCESS_RULES, scope)
        subject = subjects.one(kind, body.text("subjectId", most=subjects.LONGEST), self.user)
        made = granting.give_all(body.role(), to=[subject], scope=scope, by=self.user)[0]
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
        return Response(
            {"code": 200, "message": f"{found.subject} is not {found.role_label} there any more."}
        )

    def _one(self, pk: int) -> AccessRule:
        found: AccessRule = get_object_or_404(
            AccessRule.objects.visible_to(self.user).with_subject(), pk=pk
        )
        return found


class RulesCountView(ApiView):
    @extend_schema(
        operation_id="count_access_rules",
        description=(
            "How many access rules there are of what the list's filterBy and search ask for, at "
            f"most {MOST_COUNTED:,}."
        ),
        parameters=[*schemas.filters(RULE_FIELDS), *PARAMETERS],
        responses={200: schemas.answer(schemas.COUNT)} | schemas.errors(400, 401, 403),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        access.anywhere(self.user, Verb.VIEW, Entity.ACCESS_RULES)
        return Response(
            {"count": _count(_matching(AccessRule.objects.visible_to(self.user), Asked(request)))}
        )


class MyRulesView(ApiView):
    @extend_schema(
        operation_id="list_my_access_rules",
        description="Your own access rules, those of your groups among them.",
        parameters=schemas.list_parameters(RULE_FIELDS),
        responses={200: schemas.answer(RULES)} | schemas.errors(400, 401),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        return Response(_listed(AccessRule.objects.of(self.user), Asked(request)))


class PermissionsView(ApiView):
    @extend_schema(
        operation_id="list_permissions",
        description=(
            "What you may do anywhere; permitted-scopes says where. The answer is an array."
        ),
        responses={200: schemas.answer(bodies.PERMISSIONS)} | schemas.errors(401),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        rights = self.user.rights
        return array(
            bodies.permissions(
                frozenset(each for each in rights.everything if rights.anywhere(each))
            )
        )


SCOPES = schemas.obj(
    ["tenant", "clusters", "departments", "projects"],
    tenant=schemas.FLAG,
    clusters=schemas.array(schemas.TEXT),
    departments=schemas.array(schemas.TEXT),
    projects=schemas.array(schemas.TEXT),
)


class ScopesView(ApiView):
    @extend_schema(
        operation_id="permitted_scopes",
        description=(
            "Where you may do something: everywhere (tenant), or in these and in what is below "
            "them."
        ),
        parameters=[
            schemas.parameter("resourceType", schemas.words(*Entity), "What it is done to."),
            schemas.parameter(
                "action",
                schemas.words(*bodies.ACTIONS.values()),
                "What is done; read where it is not given.",
            ),
        ],
        responses={200: schemas.answer(SCOPES)} | schemas.errors(400, 401),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        asked = Asked(request)
        return self._told(
            bodies.permission_of(asked.text("resourceType"), asked.text("action", "read"))
        )

    @extend_schema(
        operation_id="ask_permitted_scopes",
        description="The same, asked with a body.",
        request=schemas.content(
            schemas.obj(
                ["resourceType"],
                resourceType=schemas.words(*Entity),
                action=schemas.words(*bodies.ACTIONS.values()),
            )
        ),
        responses={200: schemas.answer(SCOPES)} | schemas.errors(400, 401),
        tags=TAGS,
    )
    def post(self, request: Request) -> Response:
        body = Body(request.data)
        return self._told(
            bodies.permission_of(body.text("resourceType"), body.text("action", otherwise="read"))
        )

    def _told(self, permission: Permission) -> Response:
        where = self.user.rights.where(permission)
        return Response(
            {
                "tenant": where.tenant,
                "clusters": sorted(map(str, where.clusters)),
                "departments": [str(pk) for pk in sorted(where.departments)],
                "projects": [str(pk) for pk in sorted(where.projects)],
            }
        )


def _matching(rules: Any, asked: Asked) -> Any:
    """The rules that the parameters of a list ask for. Raises Invalid."""
    rules = filtering.matching(rules, asked, RULE_FIELDS, SEARCHED)
    kind = asked.choice("subjectType", ("", *subjects.KINDS, "app"))
    if kind == subjects.GROUP:
        rules = rules.filter(group__isnull=False)
    elif kind:
        rules = rules.filter(user__is_service=kind != subjects.USER)
    if names := [each.strip() for each in asked.text("subjectIds").split(",") if each.strip()][
        :100
    ]:
        rules = rules.filter(Q(user__username__in=names) | Q(group__name__in=names))
    if role := bodies.role_key(asked.text("roleId")):
        name, _, number = role.partition(":")
        rules = rules.filter(custom_role=number) if name == "custom" else rules.filter(role=role)
    level = asked.choice("scopeType", ("", *Level))
    for name, wanted in (("scopeId", level), ("clusterId", Level.CLUSTER)):
        if (key := asked.text(name)) and wanted and wanted != Level.TENANT:
            try:
                rules = rules.filter(**Scope.read(f"{wanted}:{key}").columns)
            except ValueError:
                raise Invalid([(name, f"{name} must be the id of a {wanted}.")]) from None
    if level == Level.TENANT:
        return rules.filter(project=None, department=None, cluster=None)
    return rules.filter(**{f"{level}__isnull": False}) if level else rules


def _listed(rules: Any, asked: Asked) -> dict[str, Any]:
    rules = _matching(rules, asked)
    told = filtering.paged(
        rules.with_subject(),
        asked,
        RULE_FIELDS,
        ("created_at", "pk"),
        name="accessRules",
        shown=bodies.rule,
    )
    return {"totalRecords": _count(rules), "displayRecords": len(told["accessRules"])} | told


def _count(rules: Any) -> int:
    return int(rules.order_by()[:MOST_COUNTED].count())
