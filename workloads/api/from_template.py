"""A submission from a template: the body's spec is merged over the template's values, and may not
change what the template locks.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from console.errors import Invalid
from environments.models import Template
from projects.models import Project, User
from workloads.api.reading import Submission, read
from workloads.asset_uses import Used
from workloads.forms import locks
from workloads.forms.filling import Filling
from workloads.forms.from_template import in_project, unusable
from workloads.manifests import as_rest
from workloads.specs import Architecture, Spec

FIELD = "templateId"
_MASTER = ("masterSpecSameAsWorker", "masterSpec", "noMaster")
_GIVES = {"environment_choice": "image", "compute_choice": "compute", "data_sources": "storage"}
"""What a body has to give itself where the template's asset is missing."""


def asked(
    body: Mapping[str, Any], architecture: Architecture, project: Project, user: User
) -> tuple[Submission, Sequence[Used]]:
    """The submission that a body with `templateId` asks for in a project, and what it is made from.
    Raises Invalid.
    """
    template = _template(body[FIELD], architecture, project)
    name = body.get("name")
    filling = in_project(template, project, user, name if isinstance(name, str) else "")
    own = body.get("spec") or {}
    _require(filling, own if isinstance(own, Mapping) else {})
    base = filling.spec()
    wanted = as_rest(base, project_id=str(project.pk), cluster_id=str(project.cluster_id))
    whole = {key: value for key, value in body.items() if key != FIELD}
    whole |= {"spec": merged(wanted["spec"], own) if isinstance(own, Mapping) else own}
    found = read(whole, architecture)
    if not any(body.get(each) is not None for each in _MASTER):
        found = replace(
            found, spec=replace(found.spec, configuration=base.configuration, master=base.master)
        )
    _keeps(found.for_project(project), base, filling, template)
    return found, filling.used


def _template(key: object, architecture: Architecture, project: Project) -> Template:
    try:
        wanted = uuid.UUID(str(key))
    except ValueError:
        raise Invalid([(FIELD, f"{FIELD} must be a template's id.")]) from None
    template: Template | None = Template.objects.within(project).filter(pk=wanted).first()
    if template is None:
        text = (
            f"There is no template {wanted} for use in {project.name}. GET "
            "/api/v1/workload-templates lists those that there are."
        )
        raise Invalid([(FIELD, text)])
    if template.architecture != architecture.value:
        raise Invalid(
            [
                (
                    FIELD,
                    (
                        f"The template {template.name} is for {template.architecture} workloads, "
                        "which have another address."
                    ),
                )
            ]
        )
    return template


def _require(filling: Filling, own: Mapping[str, Any]) -> None:
    """Raises Invalid where the template cannot be used as it is, and the body does not say what
    instead.
    """
    texts = [each.text for each in filling.missing if own.get(_GIVES[each.key]) is None]
    if found := [*texts, *unusable(filling)]:
        raise Invalid([(FIELD, text) for text in dict.fromkeys(found)])


def merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The base with what is given in place of its own; objects are merged, lists replaced, and null
    takes a value away.
    """
    found = dict(base)
    for key, value in own.items():
        known = found.get(key)
        found[key] = (
            merged(known, value)
            if isinstance(known, Mapping) and isinstance(value, Mapping)
            else value
        )
    return {key: value for key, value in found.items() if value is not None}


def _keeps(spec: Spec, base: Spec, filling: Filling, template: Template) -> None:
    broken = locks.broken(spec, base, filling.template.locked if filling.template else ())
    if broken:
        text = (
            f"is locked by the template {template.name}: leave it out, or do without the template."
        )
        raise Invalid([(each.rest, f"{each.rest} {text}") for each in broken])
