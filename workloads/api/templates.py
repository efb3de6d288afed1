"""`/api/v1/workload-templates`: templates as Run:ai's clients send them. One is made of a spec, and
shown as one.

The same below `distributed` and `trainings`, each with templates of its architecture alone.
"""

import uuid
from typing import Any, ClassVar

from django.db import models
from django.http import Http404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from environments import actions
from environments.api import bodies, late
from environments.api.narrowing import FIELDS, PARAMETERS, asked_for
from environments.choosing import choices
from environments.kinds import TEMPLATE
from environments.models import Template
from projects import access
from projects.api import filtering, schemas
from projects.api.base import ApiView, Asked
from projects.models import User
from projects.permissions import Entity, Verb
from projects.scopes import Scope
from workloads.api import template_bodies
from workloads.api.descriptions import MASTER, SPEC
from workloads.forms import locks
from workloads.forms.from_template import spec_of
from workloads.specs import Architecture

_LOCKED = schemas.said(
    schemas.array(schemas.words(*locks.LOCKS)),
    "What a workload made from it may not have otherwise.",
)
_MAYBE: schemas.Schema = {"type": ["string", "null"]}
_PLACE = {
    "scopeType": schemas.said(schemas.TEXT, "The same as scope."),
    "scopeId": schemas.said(schemas.TEXT, "The id of that scope."),
}
_SHOWN = schemas.obj(
    ["meta", "architecture", "locked"],
    meta=bodies.meta_schema(
        "template",
        workloadType=schemas.words("Distributed", "Training"),
        **_PLACE,
        description=_MAYBE,
    ),
    architecture=schemas.words(*Architecture),
    distributedFramework={"type": ["string", "null"]},
    locked=_LOCKED,
)
_MASTER = MASTER | {
    "master": schemas.said(schemas.obj(spec=SPEC), "masterSpec, as Run:ai's templates have it.")
}
_WHOLE = _SHOWN | {"properties": _SHOWN["properties"] | {"spec": SPEC} | _MASTER}
_CHANGED = schemas.obj(meta=bodies.meta_asked(**_PLACE), spec=SPEC, locked=_LOCKED, **_MASTER)
_ASKED = _CHANGED | {"required": ["meta", "spec"]}


class OfArchitecture(ApiView):
    """Which architecture the templates at this address have; others are not there. None is any."""

    architecture: ClassVar[Architecture | None] = None

    def rows(self) -> "models.QuerySet[Template]":
        rows = actions.seen(Template, self.user)
        return (
            rows if self.architecture is None else rows.filter(architecture=self.architecture.value)
        )

    def found(self, key: uuid.UUID) -> Template:
        """The template, if the one who asks may see it. Raises Http404."""
        template = self.rows().filter(pk=key).first()
        if template is None:
            raise Http404("There is no such template among those that you may see.")
        return template

    def whole(self, key: uuid.UUID) -> dict[str, Any]:
        """With its spec. What the one who asks may not see of the assets that it names is left
        out.
        """
        template = self.found(key)
        return _listed(template) | template_bodies.shown(spec_of(template, self.user))


class TemplatesView(OfArchitecture):
    @extend_schema(
        description="The templates that you may see. GET one for its spec.",
        parameters=[*schemas.list_parameters(FIELDS), *PARAMETERS],
        responses={200: schemas.answer(schemas.items("entries", _SHOWN))}
        | schemas.errors(400, 401),
        tags=["templates"],
    )
    def get(self, request: Request) -> Response:
        asked = Asked(request)
        rows = asked_for(self.rows().defer("form"), asked)
        return Response(
            filtering.paged(rows, asked, FIELDS, ("name", "pk"), name="entries", shown=_listed)
        )

    @extend_schema(
        description=(
            "Make a template of a spec, which is that of POST /api/v1/workloads/distributed, or "
            "of trainings. `locked` names what is to stay as it is."
        ),
        request=schemas.content(_ASKED),
        responses={202: schemas.answer(_WHOLE)} | schemas.errors(400, 401, 403, 409, 413),
        tags=["templates"],
    )
    def post(self, request: Request) -> Response:
        access.anywhere(self.user, Verb.CREATE, Entity.TEMPLATES)
        asked = template_bodies.read(request.data, self.architecture)
        made = actions.create(
            Template, asked.new(), scope=_offered(asked.scope, self.user), by=self.user
        )
        return Response(self.whole(made.pk), status=202)


class TemplatesCountView(OfArchitecture):
    @extend_schema(
        operation_id="count_workload_templates",
        description="How many templates you may see, of what the list's parameters ask for.",
        parameters=[*schemas.filters(FIELDS), *PARAMETERS],
        responses={200: schemas.answer(schemas.COUNT)} | schemas.errors(400, 401),
        tags=["templates"],
    )
    def get(self, request: Request) -> Response:
        return Response({"count": asked_for(self.rows(), Asked(request)).count()})


class TemplateView(OfArchitecture):
    @extend_schema(
        description=(
            "One template, with the spec that it makes. What you may not see of the assets that "
            "it names is left out."
        ),
        responses={200: schemas.answer(_WHOLE)} | schemas.errors(401, 404),
        tags=["templates"],
    )
    def get(self, request: Request, key: uuid.UUID) -> Response:
        return Response(self.whole(key))

    @extend_schema(
        description=(
            "The template as the body says, made of its spec and of no assets any more. Name and "
            "scope stay where they are not given; what is not given else is empty."
        ),
        request=schemas.content(_ASKED),
        responses={202: schemas.answer(_WHOLE)} | schemas.errors(400, 401, 403, 404, 409, 413),
        tags=["templates"],
    )
    def put(self, request: Request, key: uuid.UUID) -> Response:
        template = self._changeable(key)
        asked = template_bodies.read(request.data, self.architecture)
        return self._changed(template, asked, {"description": "", "locked": []} | asked.values())

    @extend_schema(
        description=(
            "The template with what the body says; what is not given stays. A spec is merged over "
            "the template's: lists are replaced, null takes a value away. With a spec it is made "
            "of no assets any more."
        ),
        request=schemas.content(_CHANGED),
        responses={202: schemas.answer(_WHOLE)} | schemas.errors(400, 401, 403, 404, 409, 413),
        tags=["templates"],
    )
    def patch(self, request: Request, key: uuid.UUID) -> Response:
        template = self._changeable(key)
        base = template_bodies.shown(spec_of(template, self.user))
        asked = template_bodies.read(request.data, Architecture(template.architecture), base)
        return self._changed(template, asked, asked.values())

    @extend_schema(
        description="Delete a template. Workloads that were made from it stay as they are.",
        parameters=[
            schemas.parameter(
                "version", schemas.WHOLE, "Refused where it is not the template's any more."
            )
        ],
        responses={202: schemas.answer(schemas.DONE)} | schemas.errors(400, 401, 403, 404, 409),
        tags=["templates"],
    )
    def delete(self, request: Request, key: uuid.UUID) -> Response:
        template = self.found(key)
        version = Asked(request).whole("version", 0, 1, 2**31) or None
        with late.told(TEMPLATE, template, version):
            actions.remove(template, self.user, version=version)
        return Response(
            {"code": 202, "message": f"The template {template.name} was deleted."}, status=202
        )

    def _changeable(self, key: uuid.UUID) -> Template:
        template = self.found(key)
        actions.require_change(template, self.user)
        return template

    def _changed(
        self, template: Template, asked: template_bodies.Asked, values: dict[str, Any]
    ) -> Response:
        scope = (
            template.scope
            if asked.scope in (None, template.scope)
            else _offered(asked.scope, self.user)
        )
        with late.told(TEMPLATE, template, asked.version):
            actions.change(template, values, scope=scope, by=self.user, version=asked.version)
        return Response(self.whole(template.pk), status=202)


def views_of(
    architecture: Architecture | None, name: str
) -> tuple[type[TemplatesView], type[TemplateView]]:
    """The views of an architecture, or of all; `name` is what operations call its templates."""
    many = type("Many", (TemplatesView,), {"architecture": architecture})
    one = type("One", (TemplateView,), {"architecture": architecture})
    verbs = {"get": "get", "put": "replace", "patch": "change", "delete": "delete"}
    told = {
        method: extend_schema(operation_id=f"{verb}_{name}_template")
        for method, verb in verbs.items()
    }
    list_and_make = {
        "get": extend_schema(operation_id=f"list_{name}_templates"),
        "post": extend_schema(operation_id=f"create_{name}_template"),
    }
    return extend_schema_view(**list_and_make)(many), extend_schema_view(**told)(one)


def _offered(scope: Scope | None, user: User) -> Scope:
    """The scope, if the user may make templates there. Raises Invalid."""
    if scope is None or scope not in [each for each, _ in choices(user, TEMPLATE)]:
        raise Invalid(
            [
                (
                    "meta.scope",
                    (
                        "meta.scope must be given, with its id, and be one where you may make "
                        "templates."
                    ),
                )
            ]
        )
    return scope


def _listed(template: Template) -> dict[str, Any]:
    scope = template.scope
    place = {"scopeType": scope.level.value, "scopeId": "" if scope.id is None else str(scope.id)}
    word = "Distributed" if template.architecture == Architecture.DISTRIBUTED.value else "Training"
    return {
        # Run:ai's clients read no empty description.
        "meta": bodies.meta_of(TEMPLATE, template)
        | place
        | {"workloadType": word, "description": template.description or None},
        "architecture": template.architecture,
        "distributedFramework": template.framework or None,
        "locked": list(locks.known(template.locked)),
    }
