"""A submission from a template.

The body's spec is merged over the template's values, and may not change what the template locks.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from console.errors import Invalid
from environments.models import Template
from projects.models import Project, User
from workloads.asset_references import AssetReference
from workloads.forms import template_locks
from workloads.forms.from_template import build_project_draft, find_unusable_values
from workloads.forms.wizard_draft import WizardDraft
from workloads.rest.reading import Submission, parse_submission
from workloads.rest.writing import build_rest_body
from workloads.specs import Architecture, Spec

TEMPLATE_FIELD = "templateId"
_COUNTS = frozenset(("numWorkers", "totalGpus"))
_MASTER_FIELDS = ("masterSpecSameAsWorker", "masterSpec", "noMaster")
REPLACING_FIELDS = {
    "environment_choice": "image",
    "compute_choice": "compute",
    "data_sources": "storage",
}
"""The field that a body has to give itself where the template's asset is missing."""


def build_submission(
    body: Mapping[str, Any], architecture: Architecture, project: Project, user: User
) -> tuple[Submission, Sequence[AssetReference]]:
    """Return the submission for a body with `templateId`, and the assets that it uses.

    Raises Invalid.
    """
    template = _get_template(body[TEMPLATE_FIELD], architecture, project)
    name = body.get("name")
    draft = build_project_draft(template, project, user, name if isinstance(name, str) else "")
    given_spec = body.get("spec") or {}
    _require_usable(draft, given_spec if isinstance(given_spec, Mapping) else {})
    base = draft.build_spec()
    template_body = build_rest_body(
        base, project_id=str(project.pk), cluster_id=str(project.cluster_id)
    )
    if isinstance(given_spec, Mapping) and not _COUNTS.isdisjoint(given_spec):
        # One of them takes the place of the other.
        for name in _COUNTS:
            template_body["spec"].pop(name, None)
    merged_body = {key: value for key, value in body.items() if key != TEMPLATE_FIELD}
    merged_body |= {
        "spec": merge_values(template_body["spec"], given_spec)
        if isinstance(given_spec, Mapping)
        else given_spec
    }
    submission = parse_submission(merged_body, architecture)
    # The merged body has the template's spec, and no master of the template: where the body gives
    # none, the template's is taken over as it is.
    if not any(body.get(each) is not None for each in _MASTER_FIELDS):
        submission = replace(
            submission,
            spec=replace(submission.spec, configuration=base.configuration, master=base.master),
        )
    _require_locks_kept(submission.build_spec(project), base, draft, template)
    return submission, draft.used_assets


def _get_template(key: object, architecture: Architecture, project: Project) -> Template:
    try:
        template_id = uuid.UUID(str(key))
    except ValueError:
        raise Invalid([(TEMPLATE_FIELD, f"{TEMPLATE_FIELD} must be a template's id.")]) from None
    template: Template | None = Template.objects.within(project).filter(pk=template_id).first()
    if template is None:
        text = (
            f"There is no template {template_id} for use in {project.name}. GET "
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
    """Check that the template can be used, or that the body replaces what is missing.

    Raises Invalid.
    """
    texts = [
        each.text
        for each in draft.missing_assets
        if given_spec.get(REPLACING_FIELDS[each.key]) is None
    ]
    if problems := [*texts, *find_unusable_values(draft)]:
        raise Invalid([(TEMPLATE_FIELD, text) for text in dict.fromkeys(problems)])


def merge_values(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the base with the changes merged over it.

    Objects are merged, lists replaced, and null takes a value away.
    """
    merged = dict(base)
    for key, value in changes.items():
        current = merged.get(key)
        merged[key] = (
            merge_values(current, value)
            if isinstance(current, Mapping) and isinstance(value, Mapping)
            else value
        )
    return {key: value for key, value in merged.items() if value is not None}


def _require_locks_kept(spec: Spec, base: Spec, draft: WizardDraft, template: Template) -> None:
    broken_locks = template_locks.find_broken_locks(
        spec, base, draft.template.locked if draft.template else ()
    )
    if broken_locks:
        text = (
            f"is locked by the template {template.name}: leave it out, or do without the template."
        )
        raise Invalid([(each.rest_path, f"{each.rest_path} {text}") for each in broken_locks])
