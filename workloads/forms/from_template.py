"""A template as a Spec: in a project where a workload is made from it, or by itself, as far as
somebody sees what it is made of.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from environments.models import Template
from projects.models import Project, User
from workloads.forms import copying
from workloads.forms.filling import UNNAMED, Filling
from workloads.forms.offered import Offered
from workloads.forms.steps import Step
from workloads.forms.templating import APPLIED, MAKING, NAMES, filled, form_of
from workloads.specs import Spec


def in_project(template: Template, project: Project, user: User, name: str) -> Filling:
    """A draft that nothing was changed in."""
    start = {"cluster": [str(project.cluster_id)], "project": [str(project.pk)], "name": [name]}
    return Filling(filled({"start": start}, template), user)


def spec_of(template: Template, user: User) -> Spec:
    """What it makes, in no project; assets that the user may not see give nothing."""
    return _Alone(template, user).spec()


def form_of_spec(spec: Spec) -> dict[str, Any]:
    """The form of a template that makes this."""
    data = copying.draft_of(spec, project=None, name=UNNAMED)
    return form_of(data["start"], data["setup"], data.get("master", {}), {})


class _Alone(Filling):
    """A draft of a template, with the assets that it names wherever these are."""

    def __init__(self, template: Template, user: User) -> None:
        data = filled({}, template)
        del data[APPLIED]
        super().__init__(data | {MAKING: {}}, user)
        self._named = list(template.form.get(NAMES, {}))

    @cached_property
    def projects(self) -> Sequence[Project]:
        return []

    @cached_property
    def offered(self) -> Offered:
        return _Named(self._named, self.user)


class _Named(Offered):
    """These assets, wherever they are, as far as a user sees them."""

    def __init__(self, keys: Sequence[str], user: User) -> None:
        super().__init__(None, seen_by=user)
        self._keys, self._user = keys, user

    def rows(self, model: Any) -> Any:
        return (
            model.objects.with_scope()
            .visible_to(self._user)
            .filter(pk__in=self._keys)
            .order_by("name", "id")
        )


def unusable(filling: Filling) -> Sequence[str]:
    """What of a template cannot be used where it is to be, beside the assets that are missing."""
    form = filling.form(Step.SETUP)
    form.quiet = False
    chosen = {each.key for each in filling.missing}
    found = [
        str(text) for name, texts in form.wrong.items() if name not in chosen for text in texts
    ]
    for rows in filling.setup.rows.values():
        found += [
            str(text) for row in rows.filled for texts in row.wrong.values() for text in texts
        ]
    return found
