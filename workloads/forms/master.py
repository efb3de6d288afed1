"""The master step: the master is set up as the workers are, except in what is changed here, field
by field.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.forms import BoundField

from console.typed import Rows, Typed
from workloads.forms.credentials import Shared
from workloads.forms.inwords import in_words
from workloads.forms.pods import GPUS, ROWS, SECURITY, PodForm, typed_setup
from workloads.specs import MasterChanges, Setup

DIFFERS = "differs"
_TITLES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "image": ("Image", ("image",)),
    "pull_policy": ("Image pull policy", ("pull_policy",)),
    "pull_secrets": ("Pull secrets", ("pull_secrets",)),
    "command": ("Command", ("command",)),
    "args": ("Arguments", ("args",)),
    "variables": ("Environment variables", ()),
    "working_dir": ("Working directory", ("working_dir",)),
    "gpus": ("GPUs", GPUS),
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
    "security": ("Security", SECURITY),
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
class Group:
    """One thing in which the master can differ: its fields or rows, and the workers' value in
    words.
    """

    key: str
    title: str
    inherited: str
    differs: bool
    fields: list[BoundField]
    rows: Rows[Any] | None
    note: str
    """Why it cannot be changed; "" where it can."""


class MasterForm(PodForm):
    """`differs` names the things that are changed; the fields of the others show the workers'
    values and count for nothing.
    """

    differs = forms.MultipleChoiceField(
        choices=[(key, title) for key, (title, _) in _TITLES.items()], required=False
    )

    def __init__(
        self,
        data: Typed,
        workers: Setup,
        *,
        storage_classes: Sequence[str] = (),
        credentials: Sequence[Shared] = (),
        quiet: bool = True,
    ) -> None:
        self.changed = [key for key in data.get(DIFFERS, []) if key in _TITLES]
        typed = _with_inherited(data, workers, self.changed)
        super().__init__(
            typed, storage_classes=storage_classes, credentials=credentials, quiet=quiet
        )
        self.workers = workers
        self._locked: Collection[str] = ()
        self._note = ""

    def lock(self, keys: Collection[str], note: str) -> None:
        """These cannot be changed, for the reason that the note says."""
        self._locked, self._note = keys, note

    @property
    def changes(self) -> MasterChanges:
        """Only what was changed, and is another value than the workers'."""
        found = {key: self._value(key) for key in self.changed}
        return MasterChanges(
            **{key: value for key, value in found.items() if value != inherited(self.workers, key)}
        )

    def _value(self, key: str) -> Any:
        if key in ROWS:
            return self.listed(key)
        for whole in (self.environment, self.compute):
            if hasattr(whole, key):
                return getattr(whole, key)
        return getattr(self, key) if key in ("security", "topology") else self.read(key, "")

    @property
    def sections(self) -> list[tuple[str, list[Group]]]:
        return [(title, [self._group(key) for key in keys]) for title, keys in SECTIONS.items()]

    def _group(self, key: str) -> Group:
        title, names = _TITLES[key]
        return Group(
            key,
            title,
            in_words(inherited(self.workers, key)),
            key in self.changed,
            [self[name] for name in names],
            self.rows.get(key),
            self._note if key in self._locked else "",
        )


def differences_of(key: str) -> tuple[tuple[str, ...], str]:
    """The fields of one thing in which the master can differ, and how the names of its rows' fields
    begin: "" where it has no rows.
    """
    return _TITLES[key][1], f"{key}-" if key in ROWS else ""


def inherited(workers: Setup, key: str) -> Any:
    """The workers' value of what the master may change."""
    parts = (workers.environment, workers.compute, workers)
    return next(getattr(part, key) for part in parts if hasattr(part, key))


def _with_inherited(data: Typed, workers: Setup, changed: list[str]) -> Typed:
    """What was typed for the changed things, and the workers' values, as they are now, for the
    others.
    """
    own = tuple(f"{key}-" for key in changed if key in ROWS)
    fields = {name for key in changed for name in _TITLES[key][1]}
    mine = {name: values for name, values in data.items() if name in fields or name.startswith(own)}
    theirs = {
        name: values
        for name, values in typed_setup(workers).items()
        if name not in fields and not name.startswith(own)
    }
    return theirs | mine | {DIFFERS: changed}
