"""Specs that templates make.

Either in a project where a workload is made from the template, or without a project, as far as a
user may see the assets that it names.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from environments.models import Template
from projects.models import Project, User
from workloads.forms import workload_copies
from workloads.forms.draft_content import TEMPLATE_WORKLOAD_NAME
from workloads.forms.draft_templates import (
    APPLIED_TEMPLATE,
    ASSET_NAMES,
    NEW_TEMPLATE,
    apply_template,
    build_template_form,
)
from workloads.forms.project_assets import ProjectAssets
from workloads.forms.steps import Step
from workloads.forms.wizard_draft import WizardDraft
from workloads.specs import Spec


def build_project_draft(template: Template, project: Project, user: User, name: str) -> WizardDraft:
    """Return a draft of a template in a project, with nothing changed."""
    start = {"cluster": [str(project.cluster_id)], "project": [str(project.pk)], "name": [name]}
    return WizardDraft(apply_template({"start": start}, template), user)


def build_template_spec(template: Template, user: User) -> Spec:
    """Return the Spec that a template makes, without a project.

    Assets that the user may not see give nothing.
    """
    return _ScopelessDraft(template, user).build_spec()


def build_form_from_spec(spec: Spec) -> dict[str, Any]:
    """Return the form of a template that makes this spec."""
    data = workload_copies.build_draft_data(spec, project=None, name=TEMPLATE_WORKLOAD_NAME)
    return build_template_form(data["start"], data["setup"], data.get("master", {}), {})


class _ScopelessDraft(WizardDraft):
    """A draft of a template with the assets that it names, whatever their scope."""

    def __init__(self, template: Template, user: User) -> None:
        data = apply_template({}, template)
        del data[APPLIED_TEMPLATE]
        super().__init__(data | {NEW_TEMPLATE: {}}, user)
        self._asset_ids = list(template.form.get(ASSET_NAMES, {}))

    @cached_property
    def projects(self) -> Sequence[Project]:
        return []

    @cached_property
    def project_assets(self) -> ProjectAssets:
        return _NamedAssets(self._asset_ids, self.user)


class _NamedAssets(ProjectAssets):
    """The named assets, whatever their scope, as far as a user may see them."""

    def __init__(self, asset_ids: Sequence[str], user: User) -> None:
        super().__init__(None, visible_to=user)
        self._asset_ids, self._user = asset_ids, user

    def query_assets(self, model: Any) -> Any:
        return (
            model.objects.with_scope()
            .visible_to(self._user)
            .filter(pk__in=self._asset_ids)
            .order_by("name", "id")
        )


def find_unusable_values(draft: WizardDraft) -> Sequence[str]:
    """Return what of a template cannot be used in the draft's project.

    Missing assets are not among it: `WizardDraft.missing_assets` has those.
    """
    form = draft.get_form(Step.SETUP)
    form.quiet = False
    missing_fields = {each.key for each in draft.missing_assets}
    problems = [
        str(text)
        for name, texts in form.all_errors.items()
        if name not in missing_fields
        for text in texts
    ]
    for rows in draft.setup.rows.values():
        problems += [
            str(text)
            for row in rows.filled_rows
            for texts in row.all_errors.values()
            for text in texts
        ]
    return problems
