"""A template in a draft: what it fills in, what of that stays as it is, and a template's form made
of what was typed.
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

APPLIED_TEMPLATE = "template"
"""What of a draft's data tells the template that was filled in."""
NEW_TEMPLATE = "making"
"""And the template that the draft is to become, where it is to become one."""
ASSET_NAMES = "names"
"""In a template's form: what the assets that it chooses were called, by their ids."""
TEMPLATE_START_FIELDS = ("architecture", "framework", "configuration")
ASSET_NOUNS = {
    "environment_choice": "environment",
    "compute_choice": "compute resource",
    DATA_SOURCES_FIELD: "data source",
}


@dataclass(frozen=True)
class AppliedTemplate:
    """A template as it was when it was filled in: a draft keeps that, whatever becomes of the
    template.
    """

    id: str
    name: str
    version: int
    locked: tuple[str, ...]
    form: Mapping[str, Any]

    @classmethod
    def from_draft(cls, data: Mapping[str, Any]) -> "AppliedTemplate | None":
        """That of a draft's data; None where there is none."""
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
        found: TypedValues = self.form.get(step, {})
        return found

    @property
    def note(self) -> str:
        """What stands beside a locked field."""
        return f"Set by the template {self.name}."


@dataclass(frozen=True)
class MissingAsset:
    """An asset that a template chooses and that cannot be used: where it is chosen, and a
    sentence.
    """

    key: str
    text: str


def apply_template(data: Mapping[str, Any], template: Template) -> dict[str, Any]:
    """A draft's data with a template filled in: its values take the place of what was typed into
    the steps that it fills.
    """
    form: Mapping[str, Any] = template.form
    start = data.get("start", {}) | {
        name: values
        for name, values in form.get("start", {}).items()
        if name in TEMPLATE_START_FIELDS
    }
    found = {name: value for name, value in data.items() if name not in ("setup", "master")}
    found |= {
        "start": start | {"template": [str(template.pk)]},
        "setup": setup_form.build_setup_defaults() | form.get("setup", {}),
    }
    found |= {"master": form["master"]} if form.get("master") else {}
    return found | {APPLIED_TEMPLATE: serialize_template(template)}


def serialize_template(template: Template) -> dict[str, Any]:
    """A template as a draft keeps it."""
    return {
        "id": str(template.pk),
        "name": template.name,
        "version": template.version,
        "locked": list(template.locked),
        "form": template.form,
    }


def remove_template(data: Mapping[str, Any], *, is_there: bool) -> dict[str, Any]:
    """A draft's data without its template. Its values go with it, unless it is not there any more:
    nobody chose to lose them.
    """
    gone = (APPLIED_TEMPLATE, "setup", "master") if is_there else (APPLIED_TEMPLATE,)
    return {name: value for name, value in data.items() if name not in gone}


def find_missing_assets(
    template: AppliedTemplate,
    available: Mapping[str, set[str]],
    project: Project | None,
    load_names: Callable[[str, Sequence[str]], Mapping[str, str]],
) -> Sequence[MissingAsset]:
    """What of the template's choices is not among what is `available` at each place.

    `seen` gives the names, by id, of those of a place's assets that the reader may see: no other is
    named.
    """
    where = f"for use in {project.name}" if project else "for use there"

    def absent() -> Iterator[MissingAsset]:
        for key, there in available.items():
            lost = [
                each
                for each in template.get_values("setup").get(key, [])
                if each not in ("", CUSTOM) and each not in there
            ]
            names = load_names(key, lost) if lost else {}
            for name in (names[each] for each in lost if each in names):
                yield MissingAsset(
                    key,
                    (
                        f"The template's {ASSET_NOUNS[key]} {name} is not there any more, or not "
                        f"{where}. Choose another."
                    ),
                )
            hidden = sum(each not in names for each in lost)
            if hidden == 1:
                which = (
                    f"Another {ASSET_NOUNS[key]} of the template"
                    if names
                    else f"The template's {ASSET_NOUNS[key]}"
                )
                yield MissingAsset(
                    key, f"{which} is not there any more, or not {where}. Choose another."
                )
            elif hidden:
                which = f"{hidden} {'more ' if names else ''}of the template's {ASSET_NOUNS[key]}s"
                yield MissingAsset(
                    key, f"{which} are not there any more, or not {where}. Choose others."
                )

    return list(absent())


def is_usable_in(template: Template, project: Project) -> bool:
    """Whether a template is for use in a project."""
    pairs = (
        (template.project_id, project.pk),
        (template.department_id, project.department_id),
        (template.cluster_id, project.cluster_id),
    )
    return all(own is None or own == theirs for own, theirs in pairs)


def build_template_form(
    start_values: TypedValues,
    setup_values: TypedValues,
    master_values: TypedValues,
    names: Mapping[str, str],
) -> dict[str, Any]:
    """A template's form of what was typed into the steps. Where it runs and what it is called are
    not the template's.
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
