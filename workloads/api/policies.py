"""`/api/v2/policy/{distributed,trainings}`: the one policy of a scope and a type of workloads, as
Run:ai's API has it.

It is one of the scope's policies, by its name; those of other names are to be had at
/api/v1/asset/policies.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Clash, Invalid
from environments import actions
from environments.models import Policy
from projects import access, choosing
from projects.api import schemas
from projects.api.base import ApiView, Asked
from projects.permissions import Entity, Verb
from projects.scopes import TENANT, Level, Scope
from workloads import policing
from workloads.api import policy_words
from workloads.api.from_template import merged
from workloads.policies import in_scope
from workloads.policing import checking
from workloads.specs import Architecture

_IDS = {Level.CLUSTER: "clusterId", Level.DEPARTMENT: "departmentId", Level.PROJECT: "projectId"}
_SCOPE = [
    schemas.parameter("scope", schemas.words(*Level), "Of which level the policy is."),
    *(
        schemas.parameter(name, schemas.TEXT, f"Of which {level}, where scope is {level}.")
        for level, name in _IDS.items()
    ),
]
_RULES = schemas.obj(
    defaults=schemas.said(
        {"type": "object"},
        "Values by the names that submissions have; of a distributed one below `worker`.",
    ),
    rules=schemas.said(
        {"type": "object"}, "By the same names: required, min, max, step, options, canEdit."
    ),
)
_BODY = schemas.obj(
    ["policy"],
    meta=schemas.obj(
        scope=schemas.words(*Level),
        clusterId=schemas.TEXT,
        departmentId=schemas.TEXT,
        projectId=schemas.TEXT,
    ),
    policy=_RULES,
)
_TOLD = schemas.obj(
    ["meta", "policy", "effective"],
    meta=schemas.obj(
        scope=schemas.words(*Level),
        name=schemas.TEXT,
        createdBy=schemas.TEXT,
        createdAt=schemas.MOMENT,
        updatedAt=schemas.MOMENT,
        version=schemas.WHOLE,
    ),
    policy=_RULES,
    effective=schemas.said(_RULES, "With all policies that hold in the scope."),
    effectiveUpdatedAt=schemas.MOMENT,
)


class PolicyView(ApiView):
    """The policy of a scope for the workloads of an architecture."""

    architecture: ClassVar[Architecture] = Architecture.DISTRIBUTED
    word: ClassVar[str] = "distributed"
    """The name of the policy."""

    @extend_schema(
        description="The policy of a scope, and all that hold there as one.",
        parameters=_SCOPE,
        responses={200: schemas.answer(_TOLD)} | schemas.errors(400, 401, 404),
        tags=["policies"],
    )
    def get(self, request: Request) -> Response:
        return Response(self._told(self._found(_scope(Asked(request)))))

    @extend_schema(
        description=(
            "Make the policy of a scope, or write it anew. With validateOnly nothing is written."
        ),
        parameters=[
            *_SCOPE,
            schemas.parameter("validateOnly", schemas.FLAG, "Only say what is wrong with it."),
        ],
        request=schemas.content(_BODY),
        responses={200: schemas.answer(_TOLD)} | schemas.errors(400, 401, 403, 404, 409),
        tags=["policies"],
    )
    def put(self, request: Request) -> Response:
        access.anywhere(self.user, Verb.CREATE, Entity.POLICIES)
        asked = Asked(request)
        scope = _scope(asked, request.data)
        _require_there(scope)
        found = self._there(scope).filter(architecture=self.architecture.value).first()
        access.require(self.user, Verb.EDIT if found else Verb.CREATE, Entity.POLICIES, scope)
        if found is None:
            self._require_free(scope)
        return self._written(
            scope,
            found,
            self._rules(_said(_policy(request.data))),
            only_judge=bool(asked.flag("validateOnly")),
        )

    @extend_schema(
        description=(
            "Change the policy of a scope: what the body says is merged over it, lists are "
            "replaced, null takes a rule away."
        ),
        parameters=[
            *_SCOPE,
            schemas.parameter("validateOnly", schemas.FLAG, "Only say what is wrong with it."),
        ],
        request=schemas.content(_BODY),
        responses={200: schemas.answer(_TOLD)} | schemas.errors(400, 401, 403, 404),
        tags=["policies"],
    )
    def patch(self, request: Request) -> Response:
        access.anywhere(self.user, Verb.EDIT, Entity.POLICIES)
        asked = Asked(request)
        found = self._found(_scope(asked, request.data))
        access.require(self.user, Verb.EDIT, Entity.POLICIES, found.scope)
        given = _policy(request.data)
        now = policy_words.told(policing.known(found.rules), self.architecture)
        rules = self._rules(merged(now, given) if isinstance(given, Mapping) else given)
        return self._written(found.scope, found, rules, only_judge=bool(asked.flag("validateOnly")))

    @extend_schema(
        description="Delete the policy of a scope.",
        parameters=_SCOPE,
        responses={202: schemas.answer(schemas.DONE)} | schemas.errors(400, 401, 403, 404),
        tags=["policies"],
    )
    def delete(self, request: Request) -> Response:
        access.anywhere(self.user, Verb.DELETE, Entity.POLICIES)
        found = self._found(_scope(Asked(request)))
        actions.remove(found, self.user)
        return Response(
            {"code": 202, "message": f"The policy {found.name} was deleted."}, status=202
        )

    def _written(
        self,
        scope: Scope,
        found: Policy | None,
        rules: dict[str, policing.Rule],
        *,
        only_judge: bool,
    ) -> Response:
        """The answer with the policy of a scope as it is then; nothing is written where it is only
        judged.
        """
        if only_judge:
            return Response(
                {
                    "meta": {"scope": scope.level.value},
                    "policy": policy_words.told(rules, self.architecture),
                }
            )
        values = {
            "name": self.word,
            "architecture": self.architecture.value,
            "rules": policing.write(rules),
        }
        if found is None:
            actions.create(Policy, values | {"description": ""}, scope=scope, by=self.user)
        else:
            actions.change(found, values, scope=scope, by=self.user)
        return Response(self._told(self._found(scope)))

    def _found(self, scope: Scope) -> Policy:
        rows = self._there(scope).select_related("created_by")
        found: Policy | None = rows.filter(architecture=self.architecture.value).first()
        if found is None:
            raise Http404("There is no such policy among those that you may see.")
        return found

    def _there(self, scope: Scope) -> QuerySet[Policy]:
        """Those of the scope that have the name, of whichever workloads: one at most."""
        rows: QuerySet[Policy] = (
            Policy.objects.visible_to(self.user).at(scope).with_scope().filter(name=self.word)
        )
        return rows

    def _require_free(self, scope: Scope) -> None:
        """Raises Clash where the scope's policy of that name is for other workloads: to write it
        anew would take its rules away.
        """
        other = self._there(scope).first()
        if other is not None:
            whose = (
                f"{other.architecture.lower()} workloads only"
                if other.architecture
                else "all workloads"
            )
            raise Clash(
                f"The policy {self.word} of this scope is for {whose}, and not for "
                f"{self.architecture.lower()} ones. Nothing was changed. "
                f"Rename or delete it first, on its page or at /api/v1/asset/policies/{other.pk}."
            )

    def _rules(self, given: Any) -> dict[str, policing.Rule]:
        """Raises Invalid."""
        rules, problems = policy_words.read(given, self.architecture)
        problems += [
            (policy_words.place_of(each.field, each.attribute, self.architecture), each.text)
            for each in checking.wrong(rules)
        ]
        if problems:
            raise Invalid(problems)
        return policing.read(rules)

    def _told(self, row: Policy) -> dict[str, Any]:
        around = in_scope(row.scope)
        merged = around.merged(self.architecture)
        scope = row.scope
        meta: dict[str, Any] = {
            "scope": scope.level.value,
            "name": row.name,
            "createdBy": row.created_by.username if row.created_by else "Muster",
        }
        meta |= {"createdAt": row.created_at, "updatedAt": row.updated_at, "version": row.version}
        meta |= {_IDS[scope.level]: str(scope.id)} if scope.id is not None else {}
        return {
            "meta": meta,
            "policy": policy_words.told(policing.known(row.rules), self.architecture),
            "effective": policy_words.told(policing.as_rules(merged), self.architecture),
            "effectiveUpdatedAt": max(each.updated_at for each in around.rows),
        }


def _scope(asked: Asked, body: Any = None) -> Scope:
    """From the query, or the body's meta. Raises Invalid."""
    given = body.get("meta") if isinstance(body, dict) else None
    meta: dict[str, Any] = given if isinstance(given, dict) else {}

    def said(name: str) -> str:
        return asked.text(name) or str(meta.get(name) or "")[:64]

    # Some clients send ScopeType.PROJECT where "project" is meant.
    word = said("scope").rpartition(".")[2].lower()
    if word not in set(Level):
        raise Invalid([("scope", f"scope must be one of {', '.join(Level)}.")])
    level = Level(word)
    if level is Level.TENANT:
        return TENANT
    name = _IDS[level]
    try:
        return Scope.read(f"{level}:{said(name)}")
    except ValueError:
        raise Invalid([(name, f"{name} must be the id of a {level}.")]) from None


def _policy(body: Any) -> Any:
    return body.get("policy") if isinstance(body, dict) else None


def _said(value: Any) -> Any:
    """Without what is null, which some clients send for all that nobody said."""
    return (
        {name: _said(inner) for name, inner in value.items() if inner is not None}
        if isinstance(value, dict)
        else value
    )


def _require_there(scope: Scope) -> None:
    """Raises Http404 for a scope that does not exist, as for one that may not be seen."""
    if not choosing.is_there(scope):
        raise Http404("There is nothing here that you may see.")
