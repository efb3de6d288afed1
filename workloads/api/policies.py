"""`/api/v2/policy/{distributed,trainings}`: the one policy of a scope and a type of workloads, as
Run:ai's API has it.

It is one of the scope's policies, found by its name; those of other names are at
/api/v1/asset/policies.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec
from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Clash, Invalid
from console.rest_bodies import RestBody, describe_field, parse_body
from environments import actions
from environments.models import Policy
from projects import access, scope_choices
from projects.api import schemas
from projects.api.base import ApiView, ListQuery
from projects.api.merging import follow_version, repeat_stale
from projects.permissions import Entity, Verb
from projects.scopes import TENANT, Level, Scope
from workloads import policing
from workloads.api import policy_bodies
from workloads.api.from_template import merge_values
from workloads.policies import PoliciesInForce, load_for_scope
from workloads.policing import checking
from workloads.specs import Architecture

_ID_FIELDS = {
    Level.CLUSTER: "clusterId",
    Level.DEPARTMENT: "departmentId",
    Level.PROJECT: "projectId",
}
_SCOPE_PARAMETERS = [
    schemas.query_parameter("scope", schemas.enum_schema(*Level), "Of which level the policy is."),
    *(
        schemas.query_parameter(name, schemas.TEXT, f"Of which {level}, where scope is {level}.")
        for level, name in _ID_FIELDS.items()
    ),
]
_RULES_SCHEMA = schemas.object_schema(
    defaults=schemas.describe_schema(
        {"type": "object"},
        "Values by the names that submissions have; of a distributed one below `worker`.",
    ),
    rules=schemas.describe_schema(
        {"type": "object"}, "By the same names: required, min, max, step, options, canEdit."
    ),
)

ScopeId = Annotated[Any, describe_field(type=["integer", "string"])]


class PolicyMeta(RestBody):
    """The scope of a policy."""

    scope: Annotated[Any, describe_field(type="string", enum=list(Level))] = ""
    cluster_id: ScopeId = ""
    department_id: ScopeId = ""
    project_id: ScopeId = ""


class PolicyBody(RestBody):
    """A policy, or changes of one; what it says is parsed by `policy_bodies`."""

    meta: PolicyMeta = msgspec.field(default_factory=PolicyMeta)
    policy: Annotated[Any, describe_field(**_RULES_SCHEMA)] = None


_POLICY_SCHEMA = schemas.object_schema(
    ["meta", "policy"],
    meta=schemas.object_schema(
        scope=schemas.enum_schema(*Level),
        **dict.fromkeys(_ID_FIELDS.values(), schemas.TEXT),
        name=schemas.TEXT,
        createdBy=schemas.TEXT,
        createdAt=schemas.MOMENT,
        updatedAt=schemas.MOMENT,
        version=schemas.INTEGER,
    ),
    policy=_RULES_SCHEMA,
    effective=schemas.describe_schema(_RULES_SCHEMA, "With all policies that hold in the scope."),
    effectiveUpdatedAt=schemas.MOMENT,
)


class PolicyView(ApiView):
    """The policy of a scope for the workloads of an architecture."""

    architecture: ClassVar[Architecture] = Architecture.DISTRIBUTED
    policy_name: ClassVar[str] = "distributed"
    """The name of the policy among those of its scope."""

    @extend_schema(
        description="The policy of a scope, and all that hold there as one.",
        parameters=_SCOPE_PARAMETERS,
        responses={200: schemas.json_response(_POLICY_SCHEMA)}
        | schemas.error_responses(400, 401, 404),
        tags=["policies"],
    )
    def get(self, request: Request) -> Response:
        return Response(self._serialize_policy(self._get_policy(_parse_scope(ListQuery(request)))))

    @extend_schema(
        description=(
            "Make the policy of a scope, or write it anew. With validateOnly nothing is written."
        ),
        parameters=[
            *_SCOPE_PARAMETERS,
            schemas.query_parameter(
                "validateOnly", schemas.BOOLEAN, "Only say what is wrong with it."
            ),
        ],
        request=schemas.body_content(PolicyBody, "policy"),
        responses={200: schemas.json_response(_POLICY_SCHEMA)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=["policies"],
    )
    @repeat_stale
    def put(self, request: Request) -> Response:
        access.require_anywhere(self.user, Verb.CREATE, Entity.POLICIES)
        query = ListQuery(request)
        body = _parse_body(request.data)
        scope = _parse_scope(query, body.meta)
        _require_scope_exists(scope)
        policy = self._query_policies(scope).filter(architecture=self.architecture.value).first()
        access.require(self.user, Verb.EDIT if policy else Verb.CREATE, Entity.POLICIES, scope)
        if policy is None:
            self._require_name_free(scope)
        return self._save_policy(
            scope,
            policy,
            self._parse_rules(_drop_nulls(body.policy)),
            validate_only=bool(query.flag("validateOnly")),
        )

    @extend_schema(
        description=(
            "Change the policy of a scope: what the body says is merged over it, lists are "
            "replaced, null takes a rule away."
        ),
        parameters=[
            *_SCOPE_PARAMETERS,
            schemas.query_parameter(
                "validateOnly", schemas.BOOLEAN, "Only say what is wrong with it."
            ),
        ],
        request=schemas.body_content(PolicyBody, "policy"),
        responses={200: schemas.json_response(_POLICY_SCHEMA)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=["policies"],
    )
    @repeat_stale
    def patch(self, request: Request) -> Response:
        access.require_anywhere(self.user, Verb.EDIT, Entity.POLICIES)
        query = ListQuery(request)
        body = _parse_body(request.data)
        policy = self._get_policy(_parse_scope(query, body.meta))
        access.require(self.user, Verb.EDIT, Entity.POLICIES, policy.scope)
        current_rules = policy_bodies.serialize_rules(
            policing.parse_known_rules(policy.rules), self.architecture
        )
        rules = self._parse_rules(
            merge_values(current_rules, body.policy)
            if isinstance(body.policy, Mapping)
            else body.policy
        )
        return self._save_policy(
            policy.scope, policy, rules, validate_only=bool(query.flag("validateOnly"))
        )

    @extend_schema(
        description="Delete the policy of a scope.",
        parameters=_SCOPE_PARAMETERS,
        responses={202: schemas.json_response(schemas.DONE)}
        | schemas.error_responses(400, 401, 403, 404),
        tags=["policies"],
    )
    def delete(self, request: Request) -> Response:
        access.require_anywhere(self.user, Verb.DELETE, Entity.POLICIES)
        policy = self._get_policy(_parse_scope(ListQuery(request)))
        actions.remove(policy, self.user)
        return Response(
            {"code": 202, "message": f"The policy {policy.name} was deleted."}, status=202
        )

    def _save_policy(
        self,
        scope: Scope,
        policy: Policy | None,
        rules: dict[str, policing.Rule],
        *,
        validate_only: bool,
    ) -> Response:
        """Save the policy of a scope, and answer with it.

        With `validate_only` nothing is saved. Rules for which this API has no word stay: whoever
        cannot read them does not mean to take them away.
        """
        stored_rules: Mapping[str, Any] = policy.rules if policy is not None else {}
        values = {
            "name": self.policy_name,
            "architecture": self.architecture.value,
            "rules": policy_bodies.select_wordless_rules(stored_rules, self.architecture)
            | policing.serialize_rules(rules),
        }
        if validate_only:
            return Response(self._serialize_draft(scope, policy, values))
        if policy is None:
            actions.create(Policy, values | {"description": ""}, scope=scope, user=self.user)
        else:
            with follow_version(policy.version, None) as version:
                actions.change(policy, values, scope=scope, user=self.user, version=version)
        return Response(self._serialize_policy(self._get_policy(scope)))

    def _get_policy(self, scope: Scope) -> Policy:
        rows = self._query_policies(scope).select_related("created_by")
        policy: Policy | None = rows.filter(architecture=self.architecture.value).first()
        if policy is None:
            raise Http404("There is no such policy among those that you may see.")
        return policy

    def _query_policies(self, scope: Scope) -> QuerySet[Policy]:
        """Return the scope's policies of this view's name, for whichever workloads: one at most."""
        rows: QuerySet[Policy] = (
            Policy.objects.visible_to(self.user)
            .at(scope)
            .with_scope()
            .filter(name=self.policy_name)
        )
        return rows

    def _require_name_free(self, scope: Scope) -> None:
        """Check that the scope has no policy of that name for other workloads.

        Writing it anew would take its rules away. Raises Clash.
        """
        other = self._query_policies(scope).first()
        if other is not None:
            whose = (
                f"{other.architecture.lower()} workloads only"
                if other.architecture
                else "all workloads"
            )
            raise Clash(
                f"The policy {self.policy_name} of this scope is for {whose}, and not for "
                f"{self.architecture.lower()} ones. Nothing was changed. "
                f"Rename or delete it first, on its page or at /api/v1/asset/policies/{other.pk}."
            )

    def _parse_rules(self, body: Any) -> dict[str, policing.Rule]:
        """Parse and check the rules of a body. Raises Invalid."""
        rules, problems = policy_bodies.parse_rules(body, self.architecture)
        problems += [
            (policy_bodies.get_body_path(each.field, each.attribute, self.architecture), each.text)
            for each in checking.find_rule_problems(rules)
        ]
        if problems:
            raise Invalid(problems)
        return policing.parse_rules(rules)

    def _serialize_policy(self, policy: Policy) -> dict[str, Any]:
        policies = load_for_scope(policy.scope)
        meta = _serialize_scope(policy.scope) | {
            "name": policy.name,
            "createdBy": policy.created_by.username if policy.created_by else "Muster",
            "createdAt": policy.created_at,
            "updatedAt": policy.updated_at,
            "version": policy.version,
        }
        return self._serialize_rules(meta, policy, policies) | {
            "effectiveUpdatedAt": max(each.updated_at for each in policies.rows)
        }

    def _serialize_draft(
        self, scope: Scope, policy: Policy | None, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the answer to a policy that is not saved, with what would hold if it were."""
        draft = Policy(**values, **scope.columns)
        others = [each for each in load_for_scope(scope).rows if policy is None or each != policy]
        meta = _serialize_scope(scope) | {"name": self.policy_name}
        return self._serialize_rules(meta, draft, PoliciesInForce([*others, draft]))

    def _serialize_rules(
        self, meta: Mapping[str, Any], policy: Policy, policies: PoliciesInForce
    ) -> dict[str, Any]:
        merged = policies.merge(self.architecture)
        return {
            "meta": meta,
            "policy": policy_bodies.serialize_rules(
                policing.parse_known_rules(policy.rules), self.architecture
            ),
            "effective": policy_bodies.serialize_rules(
                policing.build_rules(merged), self.architecture
            ),
        }


def _serialize_scope(scope: Scope) -> dict[str, Any]:
    ids = {} if scope.id is None else {_ID_FIELDS[scope.level]: str(scope.id)}
    return {"scope": scope.level.value} | ids


def _parse_body(data: Any) -> PolicyBody:
    """Parse a body; one that is no object says nothing. Raises Invalid."""
    return parse_body(PolicyBody, data if isinstance(data, dict) else {})


def _parse_scope(query: ListQuery, meta: PolicyMeta | None = None) -> Scope:
    """Parse the scope from the query, or from the body's meta. Raises Invalid."""
    meta_fields = {} if meta is None else msgspec.to_builtins(meta)

    def read_field(name: str) -> str:
        return query.text(name) or str(meta_fields.get(name) or "")[:64]

    # Some clients send ScopeType.PROJECT where "project" is meant.
    word = read_field("scope").rpartition(".")[2].lower()
    if word not in set(Level):
        raise Invalid([("scope", f"scope must be one of {', '.join(Level)}.")])
    level = Level(word)
    if level is Level.TENANT:
        return TENANT
    name = _ID_FIELDS[level]
    try:
        return Scope.parse(f"{level}:{read_field(name)}")
    except ValueError:
        raise Invalid([(name, f"{name} must be the id of a {level}.")]) from None


def _drop_nulls(value: Any) -> Any:
    """Return a value without nulls, which some clients send for everything that is not given."""
    return (
        {name: _drop_nulls(inner) for name, inner in value.items() if inner is not None}
        if isinstance(value, dict)
        else value
    )


def _require_scope_exists(scope: Scope) -> None:
    """Check that a scope exists.

    Raises Http404, as for a scope that may not be seen.
    """
    if not scope_choices.scope_exists(scope):
        raise Http404("There is nothing here that you may see.")
