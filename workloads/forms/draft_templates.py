"""Templates in drafts.

What a template fills in, how a draft keeps it, and the form of a template that is made of a draft.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from console.typed_forms import TypedValues
from environments.models import Template
from projects.models import Project
from workloads.forms import setup_form, template_locks
from workloads.forms.setup_form import CUSTOM
from workloads.forms.source_fields import DATA_SOURCES_FIELD
from workloads.specs.fields import FIELDS, Place

APPLIED_TEMPLATE = "template"
"""The key of a draft's data with the template that was filled in."""
NEW_TEMPLATE = "making"
"""The key of a draft's data with the template that it is to become."""
TYPED_STEPS = "typed"
"""The key of a draft's data with the steps that were typed before a template took their place."""
ASSET_NAMES = "names"
"""The key of a template's form with the names of the chosen assets, by their ids."""
FILLED_STEPS = ("setup", "master")
"""The steps whose typed values a template's take the place of."""
TEMPLATE_START_FIELDS = tuple(each.name for each in FIELDS.values() if each.place is Place.START)
ASSET_NOUNS = {
    "environment_choice": "environment",
    "compute_choice": "compute resource",
    DATA_SOURCES_FIELD: "data source",
}


@dataclass(frozen=True)
class AppliedTemplate:
    """A template as it was when it was filled in.

    The draft keeps it so, whatever becomes of the template.
    """

    id: str
    name: str
    version: int
    locked: tuple[str, ...]
    form: Mapping[str, Any]

    @classmethod
    def from_draft(cls, data: Mapping[str, Any]) -> "AppliedTemplate | None":
        """Return the template of a draft's data, or None."""
        stored = data.get(APPLIED_TEMPLATE)
        if stored is None:
            return None
        return cls(
            stored["id"],
            stored["name"],
            stored["version"],
            template_locks.filter_known_keys(stored["locked"]),
            stored["form"],
        )

    def get_values(self, step: str) -> TypedValues:
        values: TypedValues = self.form.get(step, {})
        return values

    @property
    def note(self) -> str:
        """Return the note that stands beside a locked field."""
        return f"Set by the template {self.name}."


@dataclass(frozen=True)
class MissingAsset:
    """An asset that a template chooses and that is not available.

    `key` is the field that chooses it, `text` a sentence for the user.
    """

    key: str
    text: str


def apply_template(data: Mapping[str, Any], template: Template) -> dict[str, Any]:
    """Return a draft's data with a template filled in.

    The template's values replace what was typed into the steps that it fills; the draft keeps the
    typed values for `remove_template`.
    """
    form: Mapping[str, Any] = template.form
    start = data.get("start", {}) | {
        name: values
        for name, values in form.get("start", {}).items()
        if name in TEMPLATE_START_FIELDS
    }
    merged = {name: value for name, value in data.items() if name not in FILLED_STEPS}
    typed_steps = {name: data[name] for name in FILLED_STEPS if name in data}
    # While a template is applied its values stand there, and what was typed is kept already.
    if typed_steps and APPLIED_TEMPLATE not in data:
        merged[TYPED_STEPS] = typed_steps
    merged |= {
        "start": start | {"template": [str(template.pk)]},
        "setup": setup_form.build_setup_defaults() | form.get("setup", {}),
    }
    merged |= {"master": form["master"]} if form.get("master") else {}
    return merged | {APPLIED_TEMPLATE: serialize_template(template)}


def serialize_template(template: Template) -> dict[str, Any]:
    """Return a template as a draft keeps it."""
    return {
        "id": str(template.pk),
        "name": template.name,
        "version": template.version,
        "locked": list(template.locked),
        "form": template.form,
    }


def remove_template(data: Mapping[str, Any], *, is_there: bool) -> dict[str, Any]:
    """Return a draft's data without its template.

    Its values give way to those that were typed before it, or to the defaults; unless the template
    does not exist any more: nobody chose to lose its values then.
    """
    kept_values = {
        name: value for name, value in data.items() if name not in (APPLIED_TEMPLATE, TYPED_STEPS)
    }
    if not is_there:
        return kept_values
    typed_steps: Mapping[str, Any] = data.get(TYPED_STEPS, {})
    unfilled = {name: value for name, value in kept_values.items() if name not in FILLED_STEPS}
    return {**unfilled, **typed_steps}


def find_missing_ids(
    setup_values: TypedValues, available: Mapping[str, set[str]]
) -> Mapping[str, Sequence[str]]:
    """Return the chosen ids that are not among the `available` ones of their field, by field.

    A field without any is left out.
    """
    missing_ids = {
        key: [
            each
            for each in setup_values.get(key, [])
            if each not in ("", CUSTOM) and each not in available_ids
        ]
        for key, available_ids in available.items()
    }
    return {key: ids for key, ids in missing_ids.items() if ids}


def find_missing_assets(
    template: AppliedTemplate,
    available: Mapping[str, set[str]],
    project: Project | None,
    load_names: Callable[[str, Sequence[str]], Mapping[str, str]],
) -> Sequence[MissingAsset]:
    """Return the template's choices that are not among the `available` ids of their field.

    `load_names` returns the names, by id, of those of a field's assets that the reader may see: no
    other is named.
    """
    where = f"for use in {project.name}" if project else "for use there"

    def find_missing() -> Iterator[MissingAsset]:
        for key, missing_ids in find_missing_ids(template.get_values("setup"), available).items():
            names = load_names(key, missing_ids)
            for name in (names[each] for each in missing_ids if each in names):
                yield MissingAsset(
                    key,
                    (
                        f"The template's {ASSET_NOUNS[key]} {name} is not there any more, or not "
                        f"{where}. Choose another."
                    ),
                )
            hidden = sum(each not in names for each in missing_ids)
            if hidden == 1:
                subject = (
                    f"Another {ASSET_NOUNS[key]} of the template"
                    if names
                    else f"The template's {ASSET_NOUNS[key]}"
                )
                yield MissingAsset(
                    key, f"{subject} is not there any more, or not {where}. Choose another."
                )
            elif hidden:
                subject = (
                    f"{hidden} {'more ' if names else ''}of the template's {ASSET_NOUNS[key]}s"
                )
                yield MissingAsset(
                    key, f"{subject} are not there any more, or not {where}. Choose others."
                )

    return list(find_missing())


def is_usable_in(template: Template, project: Project) -> bool:
    """Tell whether a template is available in a project."""
    pairs = (
        (template.project_id, project.pk),
        (template.department_id, project.department_id),
        (template.cluster_id, project.cluster_id),
    )
    return all(
        template_part is None or template_part == project_part
        for template_part, project_part in pairs
    )


def build_template_form(
    start_values: TypedValues,
    setup_values: TypedValues,
    master_values: TypedValues,
    names: Mapping[str, str],
) -> dict[str, Any]:
    """Return a template's form from what was typed into the steps.

    Cluster, project and name are not the template's.
    """
    form: dict[str, Any] = {
        "start": {
            name: start_values[name] for name in TEMPLATE_START_FIELDS if name in start_values
        },
        "setup": dict(setup_values),
    }
    return (
        form
        | ({"master": dict(master_values)} if master_values else {})
        | {ASSET_NAMES: dict(names)}
    )
