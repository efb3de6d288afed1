"""`/api/v1/workload-templates`: templates as Run:ai's clients send them. One is made of a spec, and shown as one."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.db import models
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from environments import actions
from environments.api import bodies
from environments.api.narrowing import FIELDS, PARAMETERS, asked_for
from environments.choosing import choices
from environments.kinds import TEMPLATE
from environments.models import Template
from environments.rest import Rest
from projects import access
from projects.api import filtering, schemas
from projects.api.base import ApiView, Asked, listed
from projects.permissions import Entity, Verb
from projects.scopes import Scope
from workloads.api.descriptions import MASTER, SPEC
from workloads.api.reading import read
from workloads.forms import locks
from workloads.forms.filling import UNNAMED
from workloads.forms.from_template import form_of_spec, spec_of
from workloads.manifests import as_rest
from workloads.specs import Architecture, Spec, problems

_TOP = ("meta", "spec", "masterSpecSameAsWorker", "masterSpec", "noMaster", "locked")
_META = Rest("workload-templates", ())
_NOWHERE = "0"
_LOCKED = schemas.said(schemas.array(schemas.words(*locks.LOCKS)), "What a workload made from it may not have otherwise.")
_SHOWN = schemas.obj(
    ["meta", "architecture", "locked"],
    meta=bodies.meta_schema("template"),
    architecture=schemas.words(*Architecture),
    distributedFramework={"type": ["string", "null"]},
    locked=_LOCKED,
)
_WHOLE = _SHOWN | {"properties": _SHOWN["properties"] | {"spec": SPEC} | MASTER}
_ASKED = schemas.obj(["meta", "spec"], meta=bodies.meta_asked(), spec=SPEC, locked=_LOCKED, **MASTER)


class TemplatesView(ApiView):
    @extend_schema(
        operation_id="list_workload_templates",
        description="The templates that you may see. GET one for its spec.",
        parameters=[*schemas.list_parameters(FIELDS), *PARAMETERS],
        responses={200: schemas.answer(schemas.items("templates", _SHOWN))} | schemas.errors(400, 401),
        tags=["templates"],
    )
    def get(self, request: Request) -> Response:
        asked = Asked(request)
        rows = filtering.narrowed(asked_for(actions.seen(Template, self.user).defer("form"), asked), asked, FIELDS)
        if search := asked.text("search"):
            rows = rows.filter(models.Q(name__icontains=search) | models.Q(description__icontains=search))
        if name := asked.text("name"):
            rows = rows.filter(name=name)
        found, following = asked.page(filtering.ordered(rows, asked, FIELDS, ("name", "pk")))
        return Response(listed("templates", [_listed(each) for each in found], following))

    @extend_schema(
        operation_id="create_workload_template",
        description=(
            "Make a template of a spec, which is that of POST /api/v1/workloads/distributed, or of trainings where it has no "
            "distributedFramework. `locked` names what is to stay as it is."
        ),
        request=schemas.content(_ASKED),
        responses={202: schemas.answer(_WHOLE)} | schemas.errors(400, 401, 403, 409, 413),
        tags=["templates"],
    )
    def post(self, request: Request) -> Response:
        access.anywhere(self.user, Verb.CREATE, Entity.TEMPLATES)
        values, scope = _asked(request.data)
        offered = [each for each, _ in choices(self.user, TEMPLATE)]
        if scope not in offered:
            raise Invalid([("meta.scope", "meta.scope must be one where you may make templates, with its id.")])
        made = actions.create(Template, values, scope=scope, by=self.user)
        return Response(_whole(found(self, made.pk), self), status=202)


class TemplateView(ApiView):
    @extend_schema(
        operation_id="get_workload_template",
        description="One template, with the spec that it makes. What you may not see of the assets that it names is left out.",
        responses={200: schemas.answer(_WHOLE)} | schemas.errors(401, 404),
        tags=["templates"],
    )
    def get(self, request: Request, key: uuid.UUID) -> Response:
        return Response(_whole(found(self, key), self))

    @extend_schema(
        operation_id="delete_workload_template",
        description="Delete a template. Workloads that were made from it stay as they are.",
        responses={202: schemas.answer(schemas.DONE)} | schemas.errors(401, 403, 404),
        tags=["templates"],
    )
    def delete(self, request: Request, key: uuid.UUID) -> Response:
        template = found(self, key)
        actions.remove(template, self.user)
        return Response({"code": 202, "message": f"The template {template.name} was deleted."}, status=202)


def found(view: ApiView, key: uuid.UUID) -> Template:
    """The template, if the one who asks may see it. Raises Http404."""
    template = actions.reach(Template, key, view.user)
    if template is None:
        raise Http404("There is no such template among those that you may see.")
    return template


def _listed(template: Template) -> dict[str, Any]:
    return {
        "meta": bodies.meta_of(TEMPLATE, template),
        "architecture": template.architecture,
        "distributedFramework": template.framework or None,
        "locked": list(locks.known(template.locked)),
    }


def _whole(template: Template, view: ApiView) -> dict[str, Any]:
    body = as_rest(spec_of(template, view.user), project_id=_NOWHERE, cluster_id=_NOWHERE)
    return _listed(template) | {key: value for key, value in body.items() if key not in ("name", "projectId", "clusterId")}


def _asked(body: object) -> tuple[dict[str, Any], Scope]:
    """A new template's values and scope. Raises Invalid with everything that is wrong."""
    if not isinstance(body, Mapping) or not isinstance(body.get("spec"), Mapping):
        raise Invalid([("spec", "spec must be an object: that of a submission.")])
    meta, _ = bodies.read(_META, {"meta": body.get("meta")})
    wrong = [(str(name)[:60], f"{str(name)[:60]} is not a field that this version knows.") for name in body if name not in _TOP]
    name, scope = (meta.get("name") or [""])[0], (meta.get("scope") or [""])[0]
    wrong += [] if 0 < len(name) <= 63 else [("meta.name", "meta.name must be given, and have at most 63 characters.")]
    wrong += [] if scope else [("meta.scope", "meta.scope must be given.")]
    description = (meta.get("description") or [""])[0]
    wrong += [] if len(description) <= 250 else [("meta.description", "meta.description must have at most 250 characters.")]
    locked = body.get("locked") or []
    if not isinstance(locked, list) or not all(isinstance(each, str) and each in locks.LOCKS for each in locked):
        wrong.append(("locked", f"locked must be a list of some of {', '.join(locks.LOCKS)}."))
    if wrong:
        raise Invalid(wrong)
    spec = _spec(body)
    values = {"name": name, "description": description, "form": form_of_spec(spec), "locked": list(locks.known(locked))}
    values |= {"architecture": spec.architecture.value, "framework": spec.framework.value if spec.framework else ""}
    return values, Scope.read(scope)


def _spec(body: Mapping[str, Any]) -> Spec:
    """The workload that the template is to make, judged as one."""
    is_distributed = body["spec"].get("distributedFramework") is not None
    submission = {key: body[key] for key in _TOP if key not in ("meta", "locked") and key in body}
    submission |= {"name": UNNAMED, "projectId": _NOWHERE, "clusterId": _NOWHERE}
    asked = read(submission, Architecture.DISTRIBUTED if is_distributed else Architecture.STANDARD)
    spec = replace(asked.spec, project="none", namespace="none", queue="none")
    if wrong := problems(spec):
        raise asked.in_words_of_the_body(Invalid([(problem.field, problem.text) for problem in wrong]))
    return spec
