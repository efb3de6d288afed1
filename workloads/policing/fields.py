"""A field of the catalogue as policies rule it: how it is read, set and named. Pure."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workloads.policing.kinds import REQUIRED, CommandLine, Pairs, ValueKind
from workloads.specs import Gpus, Pair, Spec, Variable, Volume
from workloads.specs.fields import Field, PolicyData, PolicySection, get_value
from workloads.specs.fields.types import Choice, Rows

_ROW_NAMES: Mapping[type, str] = {Pair: "key", Variable: "name", Volume: "kind"}
"""The attribute by which policies name a row, by the class of the rows."""


@dataclass(frozen=True, slots=True)
class PolicyField:
    """A field of a Setup or, where `is_of_pods` is not set, of a whole Spec.

    A field of a Setup is judged for the workers and the master alike. A part is the Setup or Spec.
    """

    field: Field
    policy: PolicyData
    kind: ValueKind

    @property
    def name(self) -> str:
        return self.policy.name or self.field.name

    @property
    def label(self) -> str:
        return self.policy.label or self.field.label

    @property
    def section(self) -> PolicySection:
        return self.policy.section

    @property
    def about(self) -> str:
        return self.policy.about

    @property
    def path(self) -> str:
        """Return its place in a part, where problems point."""
        return self.field.pod_path

    @property
    def is_of_pods(self) -> bool:
        return self.field.is_of_pods

    @property
    def is_open(self) -> bool:
        """Tell whether no value means no limit, so that a rule's limit makes one required."""
        return self.policy.is_open

    @property
    def attributes(self) -> frozenset[str]:
        """Return the attributes that a rule of the field can have."""
        attributes = self.policy.attributes or self.kind.attributes
        return attributes - {REQUIRED} if self.policy.is_implied else attributes

    def applies_to(self, spec: Spec) -> bool:
        """Return whether a workload of this spec has the field."""
        return self.field.architecture in (None, spec.architecture)

    def get_given(self, part: Any) -> Any:
        """Return the value that a part gives; None for none."""
        return self._get_value(part, self.path)

    def get_effective(self, part: Any) -> Any:
        """Return the value that results from what a part gives; None for none."""
        value = self._get_value(part, self.policy.value or self.path)
        # An empty command is the image's own, at which a policy can lock it.
        return self.kind.empty if value is None and isinstance(self.kind, CommandLine) else value

    def is_omitted(self, part: Any, prefix: str, given_fields: Container[str] | None) -> bool:
        """Return whether a submission gives no value for the field.

        `given_fields` are the paths that it gave; None where everything with a value was given.
        """
        if self.policy.is_implied:
            return given_fields is not None and not any(
                f"{prefix}{path}" in given_fields for path in self.policy.given or (self.path,)
            )
        return self.get_given(part) is None

    def set_value(self, part: Any, value: Any) -> Any:
        """Return a copy of a part with a value; of pairs, with those whose names are missing."""
        type_ = self.field.type
        if not self.policy.is_preset:
            return part
        if isinstance(self.kind, Pairs) and isinstance(type_, Rows):
            pairs = self.get_given(part) or {}
            missing = [type_.part(name, text) for name, text in value.items() if name not in pairs]
            value = (*get_value(part, self.path), *missing)
        elif isinstance(type_, Choice):
            value = type_.options(value)
        elif self.name in ("gpus.portion", "gpus.memory"):
            # Each of them takes the place of the other.
            gpus = Gpus(part.compute.gpus.device_count or 1)
            part = _replace_value(part, "compute.gpus", gpus)
        return _replace_value(part, self.path, value)

    def find_row(self, part: Any, name: str) -> str:
        """Return where below the path a row with this name is, as ".0.kind"; "" for nowhere."""
        type_ = self.field.type
        if not isinstance(type_, Rows):
            return ""
        rows = get_value(part, self.path)
        names = [getattr(each, _ROW_NAMES[type_.part]) for each in rows]
        if name not in names:
            return ""
        return f".{names.index(name)}.{'value' if isinstance(self.kind, Pairs) else 'kind'}"

    def _get_value(self, part: Any, path: str) -> Any:
        """Return the value at a path as rules have it; None for an empty one."""
        value, type_ = get_value(part, path), self.field.type
        if isinstance(type_, Rows):
            value = _summarize_rows(value, type_.part)
        return None if value in ("", (), {}) else value


def _summarize_rows(rows: Sequence[Any], part: type) -> Any:
    """Return the kinds of volumes, or the values of other rows by their names.

    The value of a variable from a Secret or the like is None.
    """
    names = [getattr(each, _ROW_NAMES[part]) for each in rows]
    if part is Volume:
        return tuple(dict.fromkeys(names))
    return {
        name: each.value if each == part(name, each.value) else None
        for name, each in zip(names, rows, strict=True)
    }


def _replace_value(original: Any, path: str, value: Any) -> Any:
    """Return a copy of a Setup or Spec with a value at a path."""
    first, _, rest = path.partition(".")
    return replace(
        original,
        **{first: _replace_value(getattr(original, first), rest, value) if rest else value},
    )
