"""`/api/v1/authorization`: access rules, and what the caller may do where.

Roles are in `projects.api.roles`.
"""

from typing import Any

from django.db.models import Case, CharField, F, Q, Value, When
from django.db.models.functions import Cast, Concat
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from console.rest_bodies import parse_body
from console.texts import parse_number
from projects import access, granting, subjects
from projects.api import access_bodies, bodies, filtering, schemas
from projects.api.base import ApiView, ListQuery, Samples, array_response
from projects.api.idempotency import idempotent
from projects.models import AccessRule
from projects.permissions import L1, ROLES, Entity, Permission, Verb
from projects.scopes import Level, Scope

MAX_SUBJECTS = 100
"""Subjects that a list is asked for at once."""
MAX_COUNTED = 10_000
"""Rules that are counted at most: `totalRecords` is this where there are more."""
_ROLE_KEY = "key_of_role"
"""What the database has for `AccessRule.role_key`: an annotation."""


def _parse_role(text: str) -> str:
    """Return the key of a role. Raises ValueError for what cannot be one."""
    kind, _, number = text.partition(":")
    if text not in ROLES and (kind != "custom" or parse_number(number) is None):
        raise ValueError(text)
    return text


RULE_FIELDS = {
    "id": filtering.id_field("pk"),
    "subjectName": filtering.text_field("user__username"),
    "groupName": filtering.text_field("group__name"),
    "roleKey": filtering.exact_field(
        _ROLE_KEY, _parse_role, f"one of {', '.join(ROLES)}, or custom:<number>"
    ),
    "projectId": filtering.id_field("project_id"),
    "departmentId": filtering.id_field("department_id"),
    "clusterId": filtering.uuid_field("cluster_id"),
    "createdBy": filtering.text_field("created_by__username"),
    "createdAt": filtering.moment_field("created_at"),
}
SEARCH_COLUMNS = ("user__username", "group__name")
PARAMETERS = [
    schemas.query_parameter(
        "subjectType", schemas.enum_schema(*subjects.KINDS), "Those of subjects of this type."
    ),
    schemas.query_parameter(
        "subjectIds", schemas.TEXT, "Those of these subjects: names, with commas between them."
    ),
    schemas.query_parameter("roleId", schemas.TEXT, "Those with this role: its id, or its key."),
    schemas.query_parameter(
        "scopeType", schemas.enum_schema(*Level), "Those of scopes of this level."
    ),
    schemas.query_parameter("scopeId", schemas.TEXT, "With scopeType: those of this scope alone."),
    schemas.query_parameter("clusterId", schemas.ID, "Those of this cluster."),
]
RULES = schemas.object_schema(
    ["totalRecords", "displayRecords", "accessRules"],
    next=schemas.INTEGER,
    totalRecords=schemas.INTEGER,
    displayRecords=schemas.INTEGER,
    accessRules=schemas.array_schema(bodies.RULE),
)
_CHANGE_SAMPLES: Samples = {
    "PATCH": {
        "another role": {"roleId": L1},
        "another scope": {"scopeType": "project", "scopeId": "1"},
    }
}
TAGS = ["access"]


class RulesView(ApiView):
    @extend_schema(
        operation_id="list_access_rules",
        description=(
            "The access rules of the scopes in which you may see them; counted are at most "
            f"{MAX_COUNTED:,}."
        ),
        parameters=[*schemas.list_parameters(RULE_FIELDS), *PARAMETERS],
        responses={200: schemas.json_response(RULES)} | schemas.error_responses(400, 401, 403),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        access.require_anywhere(self.user, Verb.VIEW, Entity.ACCESS_RULES)
        return Response(
            _serialize_rules(AccessRule.objects.visible_to(self.user), ListQuery(request))
        )

    @extend_schema(
        operation_id="create_access_rule",
        description=(
            "Give a subject a role in a scope: one that permits nothing that you may not do there "
            "yourself."
        ),
        request=schemas.body_content(access_bodies.RuleBody),
        responses={201: schemas.json_response(bodies.RULE)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=TAGS,
    )
    @idempotent
    def post(self, request: Request) -> Response:
        access.require_anywhere(self.user, Verb.CREATE, Entity.ACCESS_RULES)
        body = parse_body(access_bodies.RuleBody, request.data)
        scope = access_bodies.parse_scope(body.scope_type, body.scope_id)
        # What Run:ai called service accounts before.
        kind = subjects.SERVICE_ACCOUNT if body.subject_type == "app" else body.subject_type
        if kind not in subjects.KINDS:
            raise subjects.unknown_kind_error(kind)
        access.require(self.user, Verb.CREATE, Entity.ACCESS_RULES, scope)
        subject = subjects.get_subject(kind, body.subject_id, self.user)
        role = bodies.parse_role_key(str(body.role_id))
        created = granting.grant_role_to_all(role, to=[subject], scope=scope, by=self.user)[0]
        return Response(
            bodies.serialize_rule(AccessRule.objects.with_subject().get(pk=created.pk)), status=201
        )


class RuleView(ApiView):
    samples = _CHANGE_SAMPLES

    @extend_schema(
        operation_id="get_access_rule",
        description="One access rule.",
        responses={200: schemas.json_response(bodies.RULE)} | schemas.error_responses(401, 404),
        tags=TAGS,
    )
    def get(self, request: Request, pk: int) -> Response:
        return Response(bodies.serialize_rule(self._get_rule(pk)))

    @extend_schema(
        operation_id="change_access_rule",
        description=(
            "Give the subject another role, or the same in another scope: what may be taken away "
            "there, and given here. The rule keeps its id; createdAt and createdBy are of the "
            "change. To scopeType, other than tenant, belongs a scopeId."
        ),
        request=schemas.body_content(access_bodies.RuleChange),
        responses={200: schemas.json_response(bodies.RULE)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=TAGS,
    )
    def patch(self, request: Request, pk: int) -> Response:
        rule = self._get_rule(pk)
        access.require(self.user, Verb.DELETE, Entity.ACCESS_RULES, rule.scope)
        body = parse_body(access_bodies.RuleChange, request.data)
        _require_same_subject(rule, body)
        role = rule.role_key if body.role_id is None else bodies.parse_role_key(str(body.role_id))
        changed = granting.change_rule(rule, role, _parse_new_scope(rule, body), self.user)
        # Not loaded again: somebody else may have changed it once more by now.
        return Response(bodies.serialize_rule(changed))

    @extend_schema(
        operation_id="delete_access_rule",
        description="Take a role away.",
        responses={200: schemas.json_response(schemas.DONE)}
        | schemas.error_responses(401, 403, 404, 409),
        tags=TAGS,
    )
    def delete(self, request: Request, pk: int) -> Response:
        rule = self._get_rule(pk)
        granting.revoke_rule(rule, self.user)
        return Response(
            {"code": 200, "message": f"{rule.subject} is not {rule.role_label} there any more."}
        )

    def _get_rule(self, pk: int) -> AccessRule:
        rule: AccessRule = get_object_or_404(
            AccessRule.objects.visible_to(self.user).with_subject(), pk=pk
        )
        return rule


class RulesCountView(ApiView):
    @extend_schema(
        operation_id="count_access_rules",
        description=(
            "How many access rules there are of what the list's filterBy and search ask for, at "
            f"most {MAX_COUNTED:,}."
        ),
        parameters=[*schemas.filter_parameters(RULE_FIELDS), *PARAMETERS],
        responses={200: schemas.json_response(schemas.COUNT)}
        | schemas.error_responses(400, 401, 403),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        access.require_anywhere(self.user, Verb.VIEW, Entity.ACCESS_RULES)
        return Response(
            {
                "count": _count_rules(
                    _filter_rules(AccessRule.objects.visible_to(self.user), ListQuery(request))
                )
            }
        )


class MyRulesView(ApiView):
    @extend_schema(
        operation_id="list_my_access_rules",
        description="Your own access rules, those of your groups among them.",
        parameters=schemas.list_parameters(RULE_FIELDS),
        responses={200: schemas.json_response(RULES)} | schemas.error_responses(400, 401),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        return Response(_serialize_rules(AccessRule.objects.of(self.user), ListQuery(request)))


class PermissionsView(ApiView):
    @extend_schema(
        operation_id="list_permissions",
        description=(
            "What you may do anywhere; permitted-scopes says where. The answer is an array."
        ),
        responses={200: schemas.json_response(bodies.PERMISSIONS)} | schemas.error_responses(401),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        rights = self.user.rights
        return array_response(
            bodies.serialize_permissions(
                frozenset(each for each in rights.everything if rights.may_anywhere(each))
            )
        )


SCOPES = schemas.object_schema(
    ["tenant", "clusters", "departments", "projects"],
    tenant=schemas.BOOLEAN,
    clusters=schemas.array_schema(schemas.TEXT),
    departments=schemas.array_schema(schemas.TEXT),
    projects=schemas.array_schema(schemas.TEXT),
)


class ScopesView(ApiView):
    @extend_schema(
        operation_id="permitted_scopes",
        description=(
            "Where you may do something: everywhere (tenant), or in these and in what is below "
            "them."
        ),
        parameters=[
            schemas.query_parameter(
                "resourceType", schemas.enum_schema(*Entity), "What it is done to."
            ),
            schemas.query_parameter(
                "action",
                schemas.enum_schema(*bodies.ACTIONS.values()),
                "What is done; read where it is not given.",
            ),
        ],
        responses={200: schemas.json_response(SCOPES)} | schemas.error_responses(400, 401),
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        query = ListQuery(request)
        return self._answer_scopes(
            bodies.parse_permission(query.text("resourceType"), query.text("action", "read"))
        )

    @extend_schema(
        operation_id="ask_permitted_scopes",
        description="The same, asked with a body.",
        request=schemas.body_content(access_bodies.PermissionQuestion),
        responses={200: schemas.json_response(SCOPES)} | schemas.error_responses(400, 401),
        tags=TAGS,
    )
    def post(self, request: Request) -> Response:
        body = parse_body(access_bodies.PermissionQuestion, request.data)
        return self._answer_scopes(bodies.parse_permission(body.resource_type, body.action))

    def _answer_scopes(self, permission: Permission) -> Response:
        where = self.user.rights.permitted_scopes(permission)
        return Response(
            {
                "tenant": where.tenant,
                "clusters": sorted(map(str, where.clusters)),
                "departments": [str(pk) for pk in sorted(where.departments)],
                "projects": [str(pk) for pk in sorted(where.projects)],
            }
        )


def _require_same_subject(rule: AccessRule, body: access_bodies.RuleChange) -> None:
    """Check that a change is of the rule's own subject. Raises Invalid."""
    kind = subjects.SERVICE_ACCOUNT if body.subject_type == "app" else body.subject_type
    subject_fields = {"subjectType": kind, "subjectId": body.subject_id}
    rule_body = bodies.serialize_rule(rule)
    if problems := [
        (name, f"{name} cannot be changed: delete the rule, and make one for somebody else.")
        for name, value in subject_fields.items()
        if value is not None and value != rule_body[name]
    ]:
        raise Invalid(problems)


def _parse_new_scope(rule: AccessRule, body: access_bodies.RuleChange) -> Scope:
    """Return the scope of a change; the rule's where none is given. Raises Invalid."""
    if body.scope_type is None and body.scope_id is None:
        return rule.scope
    level = body.scope_type or rule.scope.level
    if level is Level.TENANT and body.scope_id:
        raise Invalid(
            [
                (
                    "scopeId",
                    "scopeId is for a cluster, department or project. Give the scopeType as well, "
                    "or leave scopeId out: a rule of the tenant is for all of it.",
                )
            ]
        )
    same = "" if level != rule.scope.level or rule.scope.id is None else str(rule.scope.id)
    return access_bodies.parse_scope(level, same if body.scope_id is None else body.scope_id)


def _filter_rules(rules: Any, query: ListQuery) -> Any:
    """Return the rules that the parameters of a list select. Raises Invalid."""
    number = Cast("custom_role_id", CharField())
    custom = When(role="", then=Concat(Value("custom:"), number))
    rules = rules.annotate(**{_ROLE_KEY: Case(custom, default=F("role"))})
    rules = filtering.filter_and_search(rules, query, RULE_FIELDS, SEARCH_COLUMNS)
    kind = query.choice("subjectType", ("", *subjects.KINDS, "app"))
    if kind == subjects.GROUP:
        rules = rules.filter(group__isnull=False)
    elif kind:
        rules = rules.filter(user__is_service=kind != subjects.USER)
    if names := query.texts("subjectIds", MAX_SUBJECTS):
        rules = rules.filter(Q(user__username__in=names) | Q(group__name__in=names))
    if role := query.text("roleId"):
        # Of a role that is not there, there are no rules.
        rules = rules.filter(**{_ROLE_KEY: bodies.parse_role_key(role)})
    level = query.choice("scopeType", ("", *Level))
    if query.text("scopeId") and not level:
        raise Invalid(
            [("scopeType", f"scopeType must be given with scopeId: one of {', '.join(Level)}.")]
        )
    for name, wanted in (("scopeId", level), ("clusterId", Level.CLUSTER)):
        if (key := query.text(name)) and wanted and wanted != Level.TENANT:
            try:
                rules = rules.filter(**Scope.parse(f"{wanted}:{key}").columns)
            except ValueError:
                raise Invalid([(name, f"{name} must be the id of a {wanted}.")]) from None
    if level == Level.TENANT:
        return rules.filter(project=None, department=None, cluster=None)
    return rules.filter(**{f"{level}__isnull": False}) if level else rules


def _serialize_rules(rules: Any, query: ListQuery) -> dict[str, Any]:
    rules = _filter_rules(rules, query)
    page = filtering.serialize_page(
        rules.with_subject(),
        query,
        RULE_FIELDS,
        ("created_at", "pk"),
        name="accessRules",
        serialize=bodies.serialize_rule,
    )
    return {"totalRecords": _count_rules(rules), "displayRecords": len(page["accessRules"])} | page


def _count_rules(rules: Any) -> int:
    return int(rules.order_by()[:MAX_COUNTED].count())
