"""What a template can lock.

Each lock names the wizard's fields that it covers, what it locks of the master, and the values of a
Spec that may not differ.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from console.typed_forms import TypedForm, TypedValues
from workloads.forms import steps
from workloads.forms.master_form import DIFFERS, get_master_names
from workloads.forms.source_fields import DATA_SOURCES_FIELD, PATH_PREFIX
from workloads.forms.steps import Section, Step
from workloads.forms.typed_fields import FormNames, list_form_names
from workloads.specs import Spec
from workloads.specs.fields import FIELDS, Field, get_value
from workloads.specs.fields.types import Rows


@dataclass(frozen=True)
class Lock:
    """Something that a template can lock.

    `names` are those of the form fields of a step that it covers. `paths` are those of the values
    of a Spec that may not differ; none where only the page knows them. `rest_path` is where a body
    of the REST API gives it, and `master_keys` are the master's names for it.
    """

    key: str
    title: str
    names: FormNames
    rest_path: str = ""
    paths: tuple[str, ...] = ()
    master_keys: tuple[str, ...] = ()
    is_in_start: bool = False

    def get_values(self, spec: Spec) -> Sequence[Any]:
        """Return the values of a spec that may not differ."""
        values = [get_value(spec, path) for path in self.paths]
        if self.master_keys:
            master = replace(spec, setup=spec.master_setup) if spec.has_master else None
            values += [get_value(master, path) for path in self.paths]
        return values


_ASSET_CHOICES = {"compute_choice": "Compute resource"}
"""The titles of locks that hold, beside fields of the catalogue, the choice of an asset."""
_COMPARED_PATHS = {"lifecycle.preemptibility": "is_preemptible"}
"""The paths of what is compared, where that is not the value: the priority may decide, too."""
_FURTHER_LOCKS: Mapping[str, Lock] = {
    "environment": Lock("environment_choice", "Environment", FormNames(("environment_choice",))),
    "numbers": Lock(
        "configuration",
        "Configuration",
        FormNames(("configuration",)),
        "noMaster",
        ("configuration",),
        is_in_start=True,
    ),
    "data": Lock(
        "data_sources",
        "Data sources",
        FormNames((DATA_SOURCES_FIELD,), (PATH_PREFIX,)),
        "spec.storage",
        ("setup.volumes",),
        ("volumes",),
    ),
}
"""Locks that hold no field of the setup step's catalogue; each is the first of its section."""
_MASTER_KEY = "master"
_MASTER_LOCK = Lock(
    _MASTER_KEY, "In what the master differs", FormNames(), "masterSpec", ("master",)
)


def _build_lock(key: str, fields: Sequence[Field]) -> Lock:
    """Build the lock that holds these fields."""
    first, names = fields[0], list_form_names(fields)
    # Rows stand under their label on the page.
    title = first.label if isinstance(first.type, Rows) else first.short_label
    if key in _ASSET_CHOICES:
        title, names = _ASSET_CHOICES[key], replace(names, fields=(key, *names.fields))
    # Several fields of one object of a body are locked as that object.
    objects = {each.rest.partition(".")[0] for each in fields}
    rest = objects.pop() if len(objects) == 1 < len(fields) else first.rest
    return Lock(
        key,
        title,
        names,
        f"spec.{rest}",
        tuple(_COMPARED_PATHS.get(each.path, each.path) for each in fields),
        tuple(dict.fromkeys(each.master_key for each in fields if each.is_of_pods)),
    )


def _list_locks(section: Section) -> tuple[Lock, ...]:
    further = _FURTHER_LOCKS.get(section.key)
    fields = [each for each in FIELDS.values() if each.place in section.places]
    return (
        *([further] if further else []),
        *(
            _build_lock(key, [each for each in fields if each.lock_key == key])
            for key in dict.fromkeys(each.lock_key for each in fields)
        ),
    )


SECTIONS: Mapping[str, tuple[str, tuple[Lock, ...]]] = {
    each.key: (each.title, _list_locks(each)) for each in steps.SECTIONS
} | {_MASTER_KEY: ("Master", (_MASTER_LOCK,))}
"""The locks by section, each with the section's title."""
LOCKS: Mapping[str, Lock] = {lock.key: lock for _, locks in SECTIONS.values() for lock in locks}


def filter_known_keys(keys: Iterable[str]) -> tuple[str, ...]:
    """Return the keys that exist, each once, in the order of the page.

    "section:data" stands for all keys of a section.
    """
    wanted = set(keys)
    for name, (_, locks) in SECTIONS.items():
        if f"section:{name}" in wanted:
            wanted.update(lock.key for lock in locks)
    return tuple(key for key in LOCKS if key in wanted)


def lock_values(
    step: Step, values: TypedValues, template_values: TypedValues, keys: Collection[str]
) -> TypedValues:
    """Return the values of a step, with the template's values of what is locked."""
    if step is Step.MASTER:
        return _lock_master_values(values, template_values, keys)
    locks = [LOCKS[key] for key in keys if LOCKS[key].is_in_start == (step is Step.START)]
    return _replace_values(
        values, template_values, lambda name: any(name in lock.names for lock in locks)
    )


def _lock_master_values(
    values: TypedValues, template_values: TypedValues, keys: Collection[str]
) -> TypedValues:
    """Return the values of the master's step, with the template's of what is locked.

    There the master differs as the template's master does, or not at all.
    """
    if _MASTER_KEY in keys:
        return dict(template_values)
    for key in dict.fromkeys(name for each in keys for name in LOCKS[each].master_keys):
        is_changed = key in template_values.get(DIFFERS, [])
        differs = [each for each in values.get(DIFFERS, []) if each != key]
        values = _replace_values(
            values, template_values if is_changed else {}, get_master_names(key).__contains__
        ) | {DIFFERS: [*differs, key] if is_changed else differs}
    return values


def _replace_values(
    values: TypedValues, others: TypedValues, is_replaced: Callable[[str], bool]
) -> TypedValues:
    """Return values of which the replaced ones are those among the others, or missing as there."""
    return {name: each for name, each in values.items() if not is_replaced(name)} | {
        name: each for name, each in others.items() if is_replaced(name)
    }


def mark_locked_fields(form: TypedForm, keys: Collection[str], note: str) -> None:
    """Disable the locked fields of a form, and add `note` to them."""
    rows = getattr(form, "rows", {})
    for key in keys:
        for name, field in form.fields.items():
            if name in LOCKS[key].names:
                field.widget.attrs["disabled"] = True
                field.template_note = note  # type: ignore[attr-defined]
        if key in rows:
            rows[key].note = note


def list_locked_master_keys(keys: Collection[str]) -> Collection[str]:
    """Return in what the master may not differ from the template.

    That is everything where the master itself is locked.
    """
    if _MASTER_KEY in keys:
        return frozenset(name for lock in LOCKS.values() for name in lock.master_keys)
    return frozenset(name for key in keys for name in LOCKS[key].master_keys)


def find_broken_locks(spec: Spec, template: Spec, keys: Collection[str]) -> Sequence[Lock]:
    """Return the locks that a workload breaks."""
    return [
        LOCKS[key] for key in keys if LOCKS[key].get_values(spec) != LOCKS[key].get_values(template)
    ]
