"""A template in a draft: what it fills in, what of that stays as it is, and a template's form made
of what was typed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from console.typed import Typed
from environments.models import Template
from projects.models import Project
from workloads.forms import locks, setup
from workloads.forms.setup import CUSTOM
from workloads.forms.sources import CHOSEN

APPLIED = "template"
"""What of a draft's data tells the template that was filled in."""
MAKING = "making"
"""And the template that the draft is to become, where it is to become one."""
NAMES = "names"
"""In a template's form: what the assets that it chooses were called, by their ids."""
OF_START = ("architecture", "framework", "configuration")
NOUNS = {
    "environment_choice": "environment",
    "compute_choice": "compute resource",
    CHOSEN: "data source",
}


@dataclass(frozen=True)
class Applied:
    """A template as it was when it was filled in: a draft keeps that, whatever becomes of the
    template.
    """

    id: str
    name: str
    version: int
    locked: tuple[str, ...]
    form: Mapping[str, Any]

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Applied | None":
        """That of a draft's data; None where there is none."""
        stored = data.get(APPLIED)
        if stored is None:
            return None
        return cls(
            stored["id"],
            stored["name"],
            stored["version"],
            locks.known(stored["locked"]),
            stored["form"],
        )

    def typed(self, step: str) -> Typed:
        found: Typed = self.form.get(step, {})
        return found

    @property
    def note(self) -> str:
        """What stands beside a locked field."""
        return f"Set by the template {self.name}."


@dataclass(frozen=True)
class Missing:
    """An asset that a template chooses and that cannot be used: where it is chosen, and a
    sentence.
    """

    key: str
    text: str


def filled(data: Mapping[str, Any], template: Template) -> dict[str, Any]:
    """A draft's data with a template filled in: its values take the place of what was typed into
    the steps that it fills.
    """
    form: Mapping[str, Any] = template.form
    start = data.get("start", {}) | {
        name: values for name, values in form.get("start", {}).items() if name in OF_START
    }
    found = {name: value for name, value in data.items() if name not in ("setup", "master")}
    found |= {
        "start": start | {"template": [str(template.pk)]},
        "setup": setup.defaults() | form.get("setup", {}),
    }
    found |= {"master": form["master"]} if form.get("master") else {}
    return found | {APPLIED: stored(template)}


def stored(template: Template) -> dict[str, Any]:
    """A template as a draft keeps it."""
    return {
        "id": str(template.pk),
        "name": template.name,
        "version": template.version,
        "locked": list(template.locked),
        "form": template.form,
    }


def emptied(data: Mapping[str, Any], *, is_there: bool) -> dict[str, Any]:
    """A draft's data without its template. Its values go with it, unless it is not there any more:
    nobody chose to lose them.
    """
    gone = (APPLIED, "setup", "master") if is_there else (APPLIED,)
    return {name: value for name, value in data.items() if name not in gone}


def missing(
    template: Applied,
    available: Mapping[str, set[str]],
    project: Project | None,
    seen: Callable[[str, Sequence[str]], Mapping[str, str]],
) -> Sequence[Missing]:
    """What of the template's choices is not among what is `available` at each place.

    `seen` gives the names, by id, of those of a place's assets that the reader may see: no other is
    named.
    """
    where = f"for use in {project.name}" if project else "for use there"

    def absent() -> Iterator[Missing]:
        for key, there in available.items():
            lost = [
                each
                for each in template.typed("setup").get(key, [])
                if each not in ("", CUSTOM) and each not in there
            ]
            names = seen(key, lost) if lost else {}
            for name in (names[each] for each in lost if each in names):
                yield Missing(
                    key,
                    (
                        f"The template's {NOUNS[key]} {name} is not there any more, or not "
                        f"{where}. Choose another."
                    ),
                )
            hidden = sum(each not in names for each in lost)
            if hidden == 1:
                which = (
                    f"Another {NOUNS[key]} of the template"
                    if names
                    else f"The template's {NOUNS[key]}"
                )
                yield Missing(
                    key, f"{which} is not there any more, or not {where}. Choose another."
                )
            elif hidden:
                which = f"{hidden} {'more ' if names else ''}of the template's {NOUNS[key]}s"
                yield Missing(
                    key, f"{which} are not there any more, or not {where}. Choose others."
                )

    return list(absent())


def usable(template: Template, project: Project) -> bool:
    """Whether a template is for use in a project."""
    pairs = (
        (template.project_id, project.pk),
        (template.department_id, project.department_id),
        (template.cluster_id, project.cluster_id),
    )
    return all(own is None or own == theirs for own, theirs in pairs)


def form_of(
    start: Typed, setup_typed: Typed, master: Typed, names: Mapping[str, str]
) -> dict[str, Any]:
    """A template's form of what was typed into the steps. Where it runs and what it is called are
    not the template's.
    """
    form: dict[str, Any] = {
        "start": {name: start[name] for name in OF_START if name in start},
        "setup": dict(setup_typed),
    }
    return form | ({"master": dict(master)} if master else {}) | {NAMES: dict(names)}
