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
from workloads.api.submission_bodies import Submission, parse_submission
from workloads.asset_uses import AssetReference
from workloads.forms import template_locks
from workloads.forms.from_template import build_project_draft, find_unusable_values
from workloads.forms.wizard_draft import WizardDraft
from workloads.manifests import build_rest_body
from workloads.specs import Architecture, Spec

TEMPLATE_FIELD = "templateId"
_MASTER_FIELDS = ("masterSpecSameAsWorker", "masterSpec", "noMaster")
_REPLACING_FIELDS = {
    "environment_choice": "image",
    "compute_choice": "compute",
    "data_sources": "storage",
}
"""What a body has to give itself where the template's asset is missing."""


def build_submission(
    body: Mapping[str, Any], architecture: Architecture, project: Project, user: User
) -> tuple[Submission, Sequence[AssetReference]]:
    """The submission that a body with `templateId` asks for in a project, and what it is made from.
    Raises Invalid.
    """
    template = _get_template(body[TEMPLATE_FIELD], architecture, project)
    name = body.get("name")
    filling = build_project_draft(template, project, user, name if isinstance(name, str) else "")
    own = body.get("spec") or {}
    _require_usable(filling, own if isinstance(own, Mapping) else {})
    base = filling.build_spec()
    wanted = build_rest_body(base, project_id=str(project.pk), cluster_id=str(project.cluster_id))
    whole = {key: value for key, value in body.items() if key != TEMPLATE_FIELD}
    whole |= {"spec": merge_values(wanted["spec"], own) if isinstance(own, Mapping) else own}
    found = parse_submission(whole, architecture)
    if not any(body.get(each) is not None for each in _MASTER_FIELDS):
        found = replace(
            found, spec=replace(found.spec, configuration=base.configuration, master=base.master)
        )
    _require_locks_kept(found.build_spec(project), base, filling, template)
    return found, filling.used_assets


def _get_template(key: object, architecture: Architecture, project: Project) -> Template:
    try:
        wanted = uuid.UUID(str(key))
    except ValueError:
        raise Invalid([(TEMPLATE_FIELD, f"{TEMPLATE_FIELD} must be a template's id.")]) from None
    template: Template | None = Template.objects.within(project).filter(pk=wanted).first()
    if template is None:
        text = (
            f"There is no template {wanted} for use in {project.name}. GET "
            "/api/v1/workload-templates lists those that there are."
        )
        raise Invalid([(TEMPLATE_FIELD, text)])
    if template.architecture != architecture.value:
        raise Invalid(
            [
                (
                    TEMPLATE_FIELD,
                    (
                        f"The template {template.name} is for {template.architecture} workloads, "
                        "which have another address."
                    ),
                )
            ]
        )
    return template


def _require_usable(draft: WizardDraft, given_spec: Mapping[str, Any]) -> None:
    """Raises Invalid where the template cannot be used as it is, and the body does not say what
    instead.
    """
    texts = [
        each.text
        for each in draft.missing_assets
        if given_spec.get(_REPLACING_FIELDS[each.key]) is None
    ]
    if found := [*texts, *find_unusable_values(draft)]:
        raise Invalid([(TEMPLATE_FIELD, text) for text in dict.fromkeys(found)])


def merge_values(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The base with what is given in place of its own; objects are merged, lists replaced, and null
    takes a value away.
    """
    found = dict(base)
    for key, value in changes.items():
        known = found.get(key)
        found[key] = (
            merge_values(known, value)
            if isinstance(known, Mapping) and isinstance(value, Mapping)
            else value
        )
    return {key: value for key, value in found.items() if value is not None}


def _require_locks_kept(spec: Spec, base: Spec, draft: WizardDraft, template: Template) -> None:
    broken = template_locks.find_broken_locks(
        spec, base, draft.template.locked if draft.template else ()
    )
    if broken:
        text = (
            f"is locked by the template {template.name}: leave it out, or do without the template."
        )
        raise Invalid([(each.rest_path, f"{each.rest_path} {text}") for each in broken])
