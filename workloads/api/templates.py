"""`/api/v1/workload-templates`: templates as Run:ai's clients send them.

A template is made of a spec, and shown as one. The same views are below `distributed` and
`trainings`, each with templates of its architecture alone.
"""

import uuid
from typing import Any, ClassVar

from django.db import models
from django.http import Http404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from console.rest_schemas import describe_body
from environments import actions
from environments.api import bodies, late_changes, preconditions
from environments.api.asset_filters import FIELDS, PARAMETERS, filter_assets
from environments.api.preconditions import ExpectedVersion, build_tagged_response
from environments.kinds import TEMPLATE
from environments.models import Template
from environments.scope_choices import list_scope_choices
from projects import access
from projects.api import filtering, schemas
from projects.api.base import ApiView, ListQuery
from projects.api.idempotency import idempotent
from projects.api.merging import follow_version, repeat_stale
from projects.models import User
from projects.permissions import Entity, Verb
from projects.scopes import Scope
from workloads.api import template_bodies
from workloads.api.workload_schemas import MASTER, SPEC
from workloads.forms import template_locks
from workloads.forms.from_template import build_template_spec, find_left_out_choices
from workloads.specs import Architecture

_LOCKED_SCHEMA = schemas.describe_schema(
    schemas.array_schema(schemas.enum_schema(*template_locks.LOCKS)),
    "What a workload made from it may not have otherwise.",
)
_NULLABLE_TEXT: schemas.Schema = {"type": ["string", "null"]}
_SCOPE_SCHEMAS = {
    "scopeType": schemas.describe_schema(schemas.TEXT, "The same as scope."),
    "scopeId": schemas.describe_schema(schemas.TEXT, "The id of that scope."),
}
_TEMPLATE_SCHEMA = schemas.object_schema(
    ["meta", "architecture", "locked"],
    meta=bodies.build_meta_schema(
        "template",
        workloadType=schemas.enum_schema("Distributed", "Training"),
        **_SCOPE_SCHEMAS,
        description=_NULLABLE_TEXT,
    ),
    architecture=schemas.enum_schema(*Architecture),
    distributedFramework={"type": ["string", "null"]},
    locked=_LOCKED_SCHEMA,
)
_MASTER_SCHEMAS = MASTER | {
    "master": schemas.describe_schema(
        schemas.object_schema(spec=SPEC), "masterSpec, as Run:ai's templates have it."
    )
}
_FULL_TEMPLATE_SCHEMA = _TEMPLATE_SCHEMA | {
    "properties": _TEMPLATE_SCHEMA["properties"] | {"spec": SPEC} | _MASTER_SCHEMAS
}
_REQUEST_SCHEMA = describe_body(template_bodies.TemplateRequest)
_SPEC_SCHEMAS = {"spec": SPEC, "locked": _LOCKED_SCHEMA, **_MASTER_SCHEMAS}
_CHANGED_SCHEMA = _REQUEST_SCHEMA | {
    "properties": {**_REQUEST_SCHEMA["properties"], **_SPEC_SCHEMAS}
}
_PATCH_SCHEMA = describe_body(template_bodies.TemplatePatch)
_PATCH_SCHEMA |= {"properties": {**_PATCH_SCHEMA["properties"], **_SPEC_SCHEMAS}}
_BODY_SCHEMA = _CHANGED_SCHEMA | {"required": ["meta", "spec"]}


class TemplateApiView(ApiView):
    """A view of templates of one architecture, or of all where it is None."""

    architecture: ClassVar[Architecture | None] = None

    def query_templates(self) -> "models.QuerySet[Template]":
        rows = actions.list_visible(Template, self.user)
        return (
            rows if self.architecture is None else rows.filter(architecture=self.architecture.value)
        )

    def get_visible_template(self, key: uuid.UUID) -> Template:
        """Return the template, if the user may see it. Raises Http404."""
        template = self.query_templates().filter(pk=key).first()
        if template is None:
            raise Http404("There is no such template among those that you may see.")
        return template

    def serialize_full_template(self, key: uuid.UUID) -> dict[str, Any]:
        """Return the template with its spec.

        What the user may not see of the assets that it names is left out.
        """
        template = self.get_visible_template(key)
        return _serialize_template(template) | template_bodies.serialize_template_spec(
            build_template_spec(template, self.user)
        )


class TemplatesView(TemplateApiView):
    @extend_schema(
        description="The templates that you may see. GET one for its spec.",
        parameters=[*schemas.list_parameters(FIELDS), *PARAMETERS],
        responses={200: schemas.json_response(schemas.list_schema("entries", _TEMPLATE_SCHEMA))}
        | schemas.error_responses(400, 401),
        tags=["templates"],
    )
    def get(self, request: Request) -> Response:
        query = ListQuery(request)
        rows = filter_assets(self.query_templates().defer("form"), query, self.user)
        return Response(
            filtering.serialize_page(
                rows, query, FIELDS, ("name", "pk"), name="entries", serialize=_serialize_template
            )
        )

    @extend_schema(
        description=(
            "Make a template of a spec, which is that of POST /api/v1/workloads/distributed, or "
            "of trainings. `locked` names what is to stay as it is."
        ),
        parameters=[preconditions.TAG],
        request=schemas.json_content(_BODY_SCHEMA),
        responses={202: schemas.json_response(_FULL_TEMPLATE_SCHEMA)}
        | schemas.error_responses(400, 401, 403, 409, 413),
        tags=["templates"],
    )
    @idempotent
    def post(self, request: Request) -> Response:
        access.require_anywhere(self.user, Verb.CREATE, Entity.TEMPLATES)
        body = template_bodies.parse_template(request.data, self.architecture)
        template = actions.create(
            Template,
            body.build_new_values(),
            scope=_require_scope(body.scope, self.user),
            user=self.user,
        )
        return build_tagged_response(self.serialize_full_template(template.pk), 202)


class TemplatesCountView(TemplateApiView):
    @extend_schema(
        operation_id="count_workload_templates",
        description="How many templates you may see, of what the list's parameters ask for.",
        parameters=[*schemas.filter_parameters(FIELDS), *PARAMETERS],
        responses={200: schemas.json_response(schemas.COUNT)} | schemas.error_responses(400, 401),
        tags=["templates"],
    )
    def get(self, request: Request) -> Response:
        rows = filter_assets(self.query_templates(), ListQuery(request), self.user)
        return Response({"count": rows.count()})


class TemplateView(TemplateApiView):
    @extend_schema(
        description=(
            "One template, with the spec that it makes. What you may not see of the assets that "
            "it names is left out."
        ),
        parameters=[preconditions.TAG],
        responses={200: schemas.json_response(_FULL_TEMPLATE_SCHEMA)}
        | schemas.error_responses(401, 404),
        tags=["templates"],
    )
    def get(self, request: Request, key: uuid.UUID) -> Response:
        return build_tagged_response(self.serialize_full_template(key))

    @extend_schema(
        description=(
            "The template as the body says, made of its spec and of no assets any more. Name and "
            "scope stay where they are not given; what is not given else is empty."
        ),
        parameters=[preconditions.PARAMETER, preconditions.TAG],
        request=schemas.json_content(_CHANGED_SCHEMA | {"required": ["spec"]}),
        responses={202: schemas.json_response(_FULL_TEMPLATE_SCHEMA)}
        | schemas.error_responses(400, 401, 403, 404, 409, 412, 413),
        tags=["templates"],
    )
    @repeat_stale
    def put(self, request: Request, key: uuid.UUID) -> Response:
        template, expected = self._get_changeable_template(request, key)
        body = template_bodies.parse_template(request.data, self.architecture)
        return self._save_template(
            template, body, {"description": "", "locked": []} | body.build_values(), expected
        )

    @extend_schema(
        description=(
            "The template with what the body says; what is not given stays. A spec is merged over "
            "the template's: lists are replaced, null takes a value away, and so does its path in "
            "fieldsToClear. With a spec it is made of no assets any more: refused where it has one "
            "that you may not see, unless its values are taken away."
        ),
        parameters=[preconditions.PARAMETER, preconditions.TAG],
        request=schemas.json_content(_PATCH_SCHEMA),
        responses={202: schemas.json_response(_FULL_TEMPLATE_SCHEMA)}
        | schemas.error_responses(400, 401, 403, 404, 409, 412, 413),
        tags=["templates"],
    )
    @repeat_stale
    def patch(self, request: Request, key: uuid.UUID) -> Response:
        template, expected = self._get_changeable_template(request, key)
        base = template_bodies.serialize_template_spec(build_template_spec(template, self.user))
        body = template_bodies.parse_template(
            request.data,
            Architecture(template.architecture),
            base,
            find_left_out_choices(template, self.user),
        )
        return self._save_template(template, body, body.build_values(), expected)

    @extend_schema(
        description="Delete a template. Workloads that were made from it stay as they are.",
        parameters=[
            preconditions.PARAMETER,
            schemas.query_parameter(
                "version", schemas.INTEGER, "Refused where it is not the template's any more."
            ),
        ],
        responses={202: schemas.json_response(schemas.DONE)}
        | schemas.error_responses(400, 401, 403, 404, 409, 412),
        tags=["templates"],
    )
    def delete(self, request: Request, key: uuid.UUID) -> Response:
        template = self.get_visible_template(key)
        actions.require_change(template, self.user, Verb.DELETE)
        expected = preconditions.require_match(request, TEMPLATE, template).narrow(
            ListQuery(request).integer("version", 0, 1, 2**31) or None
        )
        with late_changes.explain_late_change(
            TEMPLATE, template, expected.version, expected.status
        ):
            actions.remove(template, self.user, version=expected.version)
        return Response(
            {"code": 202, "message": f"The template {template.name} was deleted."}, status=202
        )

    def _get_changeable_template(
        self, request: Request, key: uuid.UUID
    ) -> tuple[Template, ExpectedVersion]:
        template = self.get_visible_template(key)
        actions.require_change(template, self.user)
        return template, preconditions.require_match(request, TEMPLATE, template)

    def _save_template(
        self,
        template: Template,
        body: template_bodies.TemplateBody,
        values: dict[str, Any],
        expected: ExpectedVersion,
    ) -> Response:
        scope = (
            template.scope
            if body.scope in (None, template.scope)
            else _require_scope(body.scope, self.user)
        )
        expected = expected.narrow(body.version)
        with (
            late_changes.explain_late_change(TEMPLATE, template, expected.version, expected.status),
            follow_version(template.version, expected.version) as edited_version,
        ):
            actions.change(template, values, scope=scope, user=self.user, version=edited_version)
        return build_tagged_response(self.serialize_full_template(template.pk), 202)


def build_views(
    architecture: Architecture | None, name: str
) -> tuple[type[TemplatesView], type[TemplateView]]:
    """Return the list view and the item view of an architecture, or of all.

    `name` is what operation ids call its templates.
    """
    list_view = type("Many", (TemplatesView,), {"architecture": architecture})
    item_view = type("One", (TemplateView,), {"architecture": architecture})
    verbs = {"get": "get", "put": "replace", "patch": "change", "delete": "delete"}
    item_schemas = {
        method: extend_schema(operation_id=f"{verb}_{name}_template")
        for method, verb in verbs.items()
    }
    list_schemas = {
        "get": extend_schema(operation_id=f"list_{name}_templates"),
        "post": extend_schema(operation_id=f"create_{name}_template"),
    }
    return extend_schema_view(**list_schemas)(list_view), extend_schema_view(**item_schemas)(
        item_view
    )


def _require_scope(scope: Scope | None, user: User) -> Scope:
    """Return the scope, if the user may make templates there. Raises Invalid."""
    if scope is None or list_scope_choices(user, TEMPLATE).find(str(scope)) is None:
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


def _serialize_template(template: Template) -> dict[str, Any]:
    scope = template.scope
    scope_fields = {
        "scopeType": scope.level.value,
        "scopeId": "" if scope.id is None else str(scope.id),
    }
    workload_type = (
        "Distributed" if template.architecture == Architecture.DISTRIBUTED.value else "Training"
    )
    return {
        # Null for an empty description: Run:ai's clients refuse an empty text.
        "meta": bodies.serialize_meta(TEMPLATE, template)
        | scope_fields
        | {"workloadType": workload_type, "description": template.description or None},
        "architecture": template.architecture,
        "distributedFramework": template.framework or None,
        "locked": list(template_locks.filter_known_keys(template.locked)),
    }
