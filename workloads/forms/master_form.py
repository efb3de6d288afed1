"""The master step: the master has the workers' setup, except where it is changed field by field."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.forms import BoundField

from console.typed_forms import FormRows, TypedValues
from workloads.forms.credential_choices import CredentialChoice
from workloads.forms.pod_form import (
    GPU_FIELDS,
    ROW_FORMS,
    SECURITY_FIELDS,
    PodForm,
    build_setup_values,
)
from workloads.forms.setup_descriptions import describe_value
from workloads.specs import MasterChanges, Setup

DIFFERS = "differs"
_TITLES_AND_FIELDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "image": ("Image", ("image",)),
    "pull_policy": ("Image pull policy", ("pull_policy",)),
    "pull_secrets": ("Pull secrets", ("pull_secrets",)),
    "command": ("Command", ("command",)),
    "args": ("Arguments", ("args",)),
    "variables": ("Environment variables", ()),
    "working_dir": ("Working directory", ("working_dir",)),
    "gpus": ("GPUs", GPU_FIELDS),
    "cpu_request": ("CPU request", ("cpu_request",)),
    "cpu_limit": ("CPU limit", ("cpu_limit",)),
    "memory_request": ("CPU memory request", ("memory_request",)),
    "memory_limit": ("CPU memory limit", ("memory_limit",)),
    "large_shm": ("Increase shared memory", ("large_shm",)),
    "extended": ("Extended resources", ()),
    "volumes": ("Data & storage", ()),
    "tolerations": ("Tolerations", ()),
    "node_type": ("Node type", ("node_type",)),
    "node_pools": ("Node pools", ("node_pools",)),
    "topology": ("Topology", ("topology_key", "topology_required")),
    "annotations": ("Annotations", ()),
    "labels": ("Labels", ()),
    "security": ("Security", SECURITY_FIELDS),
}
SECTIONS = {
    "Environment": (
        "image",
        "command",
        "args",
        "variables",
        "working_dir",
        "pull_policy",
        "pull_secrets",
        "security",
    ),
    "Compute resource": (
        "gpus",
        "cpu_request",
        "cpu_limit",
        "memory_request",
        "memory_limit",
        "large_shm",
        "extended",
    ),
    "Data & storage": ("volumes",),
    "General": ("node_type", "node_pools", "topology", "tolerations", "annotations", "labels"),
}


@dataclass(frozen=True)
class MasterFieldGroup:
    """One thing in which the master can differ: its fields or rows.

    `inherited` describes the workers' value.
    """

    key: str
    title: str
    inherited: str
    differs: bool
    fields: list[BoundField]
    rows: FormRows[Any] | None
    note: str
    """Why it cannot be changed; "" where it can."""


class MasterForm(PodForm):
    """The master's setup. `differs` names what is changed.

    The fields of everything else show the workers' values and are ignored.
    """

    differs = forms.MultipleChoiceField(
        choices=[(key, title) for key, (title, _) in _TITLES_AND_FIELDS.items()], required=False
    )

    def __init__(
        self,
        data: TypedValues,
        workers: Setup,
        *,
        storage_classes: Sequence[str] = (),
        credentials: Sequence[CredentialChoice] = (),
        quiet: bool = True,
    ) -> None:
        self.changed_keys = [key for key in data.get(DIFFERS, []) if key in _TITLES_AND_FIELDS]
        typed = _merge_inherited(data, workers, self.changed_keys)
        super().__init__(
            typed, storage_classes=storage_classes, credentials=credentials, quiet=quiet
        )
        self.workers = workers
        self._locked: Collection[str] = ()
        self._note = ""

    def lock_keys(self, keys: Collection[str], note: str) -> None:
        """Lock these, so that they cannot be changed; `note` says why."""
        self._locked, self._note = keys, note

    @property
    def changes(self) -> MasterChanges:
        """Return what was changed to another value than the workers'."""
        values = {key: self._get_value(key) for key in self.changed_keys}
        return MasterChanges(
            **{
                key: value
                for key, value in values.items()
                if value != get_inherited_value(self.workers, key)
            }
        )

    def _get_value(self, key: str) -> Any:
        if key in ROW_FORMS:
            return self.build_row_parts(key)
        for part in (self.environment, self.compute):
            if hasattr(part, key):
                return getattr(part, key)
        return getattr(self, key) if key in ("security", "topology") else self.read(key, "")

    @property
    def sections(self) -> list[tuple[str, list[MasterFieldGroup]]]:
        return [
            (title, [self._build_group(key) for key in keys]) for title, keys in SECTIONS.items()
        ]

    def _build_group(self, key: str) -> MasterFieldGroup:
        title, names = _TITLES_AND_FIELDS[key]
        return MasterFieldGroup(
            key,
            title,
            describe_value(get_inherited_value(self.workers, key)),
            key in self.changed_keys,
            [self[name] for name in names],
            self.rows.get(key),
            self._note if key in self._locked else "",
        )


def get_master_fields(key: str) -> tuple[tuple[str, ...], str]:
    """Return the fields of one thing in which the master can differ, and its rows' prefix.

    The prefix is how the names of its rows' fields begin; "" where it has no rows.
    """
    return _TITLES_AND_FIELDS[key][1], f"{key}-" if key in ROW_FORMS else ""


def get_inherited_value(workers: Setup, key: str) -> Any:
    """Return the workers' value of something that the master may change."""
    parts = (workers.environment, workers.compute, workers)
    return next(getattr(part, key) for part in parts if hasattr(part, key))


def _merge_inherited(data: TypedValues, workers: Setup, changed: list[str]) -> TypedValues:
    """Return what was typed for the changed keys, and the workers' values for the rest."""
    changed_prefixes = tuple(f"{key}-" for key in changed if key in ROW_FORMS)
    fields = {name for key in changed for name in _TITLES_AND_FIELDS[key][1]}
    changed_values = {
        name: values
        for name, values in data.items()
        if name in fields or name.startswith(changed_prefixes)
    }
    inherited_values = {
        name: values
        for name, values in build_setup_values(workers).items()
        if name not in fields and not name.startswith(changed_prefixes)
    }
    return inherited_values | changed_values | {DIFFERS: changed}
