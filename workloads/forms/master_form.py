"""The master step: the master has the workers' setup, except where it is changed field by field."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.forms import BoundField

from console.typed_forms import FormRows, TypedValues
from workloads.forms.pod_form import POD_FIELDS, PodForm, build_setup_values
from workloads.forms.setup_descriptions import describe_value
from workloads.forms.steps import SECTIONS
from workloads.forms.typed_fields import FormNames, build_blocks, list_form_names
from workloads.specs import MasterChanges, Setup
from workloads.specs.fields import Field

DIFFERS = "differs"
_FIELDS: Mapping[str, Sequence[Field]] = {
    key: [each for each in POD_FIELDS if each.master_key == key]
    for key in dict.fromkeys(each.master_key for each in POD_FIELDS)
}
"""The fields that the master changes together, by what of it they belong to."""


@dataclass(frozen=True)
class MasterFieldGroup:
    """One thing in which the master can differ: its fields in blocks, or its rows.

    `inherited` describes the workers' value.
    """

    key: str
    title: str
    inherited: str
    differs: bool
    blocks: Sequence[tuple[str, Sequence[BoundField]]]
    rows: FormRows[Any] | None
    note: str
    """Why it cannot be changed; "" where it can."""


class MasterForm(PodForm):
    """The master's setup. `differs` names what is changed.

    The fields of everything else show the workers' values and are ignored.
    """

    differs = forms.MultipleChoiceField(choices=[(key, key) for key in _FIELDS], required=False)

    def __init__(self, data: TypedValues, workers: Setup, **more: Any) -> None:
        self.changed_keys = [key for key in data.get(DIFFERS, []) if key in _FIELDS]
        super().__init__(_merge_inherited(data, workers, self.changed_keys), **more)
        self.workers = workers
        self._locked: Collection[str] = ()
        self._note = ""

    def lock_keys(self, keys: Collection[str], note: str) -> None:
        """Lock these, so that they cannot be changed; `note` says why."""
        self._locked, self._note = keys, note

    @property
    def changes(self) -> MasterChanges:
        """Return what was changed to another value than the workers'."""
        differing = MasterChanges.from_setups(self.workers, self.setup).changes
        return MasterChanges(
            **{key: differing[key] for key in self.changed_keys if key in differing}
        )

    @property
    def sections(self) -> list[tuple[str, list[MasterFieldGroup]]]:
        groups = [
            (
                section.master_title or section.title,
                [
                    self._build_group(key, fields)
                    for key, fields in _FIELDS.items()
                    if fields[0].place in section.places
                ],
            )
            for section in SECTIONS
        ]
        return [(title, each) for title, each in groups if each]

    def _build_group(self, key: str, fields: Sequence[Field]) -> MasterFieldGroup:
        return MasterFieldGroup(
            key,
            fields[0].short_label,
            describe_value(_get_inherited_value(self.workers, key)),
            key in self.changed_keys,
            build_blocks(self[name] for name in get_master_names(key).fields),
            self.rows.get(key),
            self._note if key in self._locked else "",
        )


def get_master_names(key: str) -> FormNames:
    """Return the names of the form fields of one thing in which the master can differ."""
    return list_form_names(_FIELDS[key])


def _get_inherited_value(workers: Setup, key: str) -> Any:
    """Return the workers' value of something that the master may change."""
    parts = (workers.environment, workers.compute, workers)
    return next(getattr(part, key) for part in parts if hasattr(part, key))


def _merge_inherited(data: TypedValues, workers: Setup, changed: list[str]) -> TypedValues:
    """Return what was typed for the changed keys, and the workers' values for the rest."""
    names = list_form_names(field for key in changed for field in _FIELDS[key])
    inherited = build_setup_values(workers)
    return (
        {name: values for name, values in inherited.items() if name not in names}
        | {name: values for name, values in data.items() if name in names}
        | {DIFFERS: changed}
    )
