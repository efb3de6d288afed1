"""Specs that templates make.

Either in a project where a workload is made from the template, or without a project, as far as a
user may see the assets that it names.
"""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from environments.models import Template
from projects.models import Project, User
from workloads.asset_uses import is_secret_name
from workloads.forms import workload_copies
from workloads.forms.credential_choices import CredentialChoice
from workloads.forms.draft_content import TEMPLATE_WORKLOAD_NAME
from workloads.forms.draft_templates import (
    APPLIED_TEMPLATE,
    ASSET_NAMES,
    FILLED_STEPS,
    NEW_TEMPLATE,
    apply_template,
    build_template_form,
    find_missing_ids,
)
from workloads.forms.project_assets import ProjectAssets
from workloads.forms.steps import Step
from workloads.forms.wizard_draft import WizardDraft
from workloads.specs import Spec

_VARIABLE_CREDENTIAL = re.compile(r"variables-[0-9]+-credential")
"""The field of a template's form with the Secret that a variable takes its value from."""


def build_project_draft(template: Template, project: Project, user: User, name: str) -> WizardDraft:
    """Return a draft of a template in a project, with nothing changed."""
    start = {"cluster": [str(project.cluster_id)], "project": [str(project.pk)], "name": [name]}
    return WizardDraft(apply_template({"start": start}, template), user)


def build_template_spec(template: Template, user: User) -> Spec:
    """Return the Spec that a template makes, without a project.

    Assets that the user may not see give nothing.
    """
    return _ScopelessDraft(template, user).build_spec()


def find_left_out_choices(template: Template, user: User) -> Sequence[str]:
    """Return the fields of a template whose assets give nothing to `build_template_spec`.

    The user may not see one of them, or it is not there any more.
    """
    draft = _ScopelessDraft(template, user)
    return list(find_missing_ids(draft.get_values(Step.SETUP), draft.available_ids))


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
        self._secrets = _list_variable_secrets(template)

    @cached_property
    def projects(self) -> Sequence[Project]:
        return []

    @cached_property
    def project_assets(self) -> ProjectAssets:
        return _NamedAssets(self._asset_ids, self._secrets, self.user)


def _list_variable_secrets(template: Template) -> Sequence[str]:
    """Return the credentials' Secrets that variables of a template take their values from."""
    typed = (template.form.get(step, {}) for step in FILLED_STEPS)
    names = [
        name
        for values in typed
        for key, texts in values.items()
        if _VARIABLE_CREDENTIAL.fullmatch(key)
        for name in texts
    ]
    return list(filter(is_secret_name, dict.fromkeys(names)))


class _NamedAssets(ProjectAssets):
    """The named assets, whatever their scope, as far as a user may see them."""

    def __init__(self, asset_ids: Sequence[str], secrets: Sequence[str], user: User) -> None:
        super().__init__(None, visible_to=user)
        self._asset_ids, self._secrets, self._user = asset_ids, secrets, user

    @cached_property
    def credentials(self) -> Sequence[CredentialChoice]:
        """Return the credentials that variables name by their Secrets, whoever may see them.

        The name of a Secret tells nothing, and without it a change would lose the variable.
        """
        return [CredentialChoice(each, each, ()) for each in self._secrets]

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
