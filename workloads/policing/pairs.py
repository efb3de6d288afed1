"""What names with values may be by all policies: required names, and locked values. Pure."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from workloads.policing.fields import PolicyField
from workloads.policing.kinds import LOCKED, REQUIRED
from workloads.policing.limits import Breach, PolicySource, PolicySources, SourcedValue
from workloads.policing.rules import Rule


@dataclass(frozen=True, slots=True)
class PairLimits:
    """Limits of a field whose values are names with values."""

    field: PolicyField
    required: Mapping[str, PolicySources] = dataclasses.field(default_factory=dict)
    locked: Mapping[str, SourcedValue] = dataclasses.field(default_factory=dict)
    default: Mapping[str, SourcedValue] = dataclasses.field(default_factory=dict)

    def narrow(self, rule: Rule, source: PolicySource) -> Self | None:
        """Return the limits with one more policy's rule.

        None where it locks a name at another value.
        """
        locked = dict(self.locked)
        for name, value in (rule.default or {}).items() if rule.locked else ():
            earlier = locked.get(name)
            if earlier is not None and earlier.value != value:
                return None
            locked[name] = SourcedValue(value, (*(earlier.sources if earlier else ()), source))
        required = {
            **self.required,
            **{name: (*self.required.get(name, ()), source) for name in rule.names},
        }
        return replace(self, required=required, locked=locked)

    def with_default(self, value: Any, source: PolicySource) -> Self:
        """Return the limits with defaults for the names that have none."""
        added = {
            name: SourcedValue(text, (source,))
            for name, text in (value or {}).items()
            if name not in self.default and name not in self.locked
        }
        return replace(self, default={**self.default, **added})

    @property
    def fallback(self) -> SourcedValue | None:
        """The values that apply to names for which none is given."""
        values = {**self.default, **self.locked}
        if not values:
            return None
        return SourcedValue(
            {name: each.value for name, each in values.items()},
            tuple(dict.fromkeys(by for each in values.values() for by in each.sources)),
        )

    def find_breaches(
        self, value: Mapping[str, str | None] | None, *, is_omitted: bool
    ) -> Iterator[Breach]:
        """Yield the rules that these names and values break."""
        pairs = value or {}
        for name, by in self.required.items():
            if name not in pairs:
                yield Breach(REQUIRED, f"must have {name}", by)
        for name, each in self.locked.items():
            if pairs.get(name) != each.value or name not in pairs:
                yield Breach(
                    LOCKED, f"must have {name}={each.value}, which is locked", each.sources, name
                )

    @property
    def range_words(self) -> str:
        """The limits without their sources."""
        parts = [f"{name} must be there" for name in self.required if name not in self.locked]
        return ", ".join(
            [*parts, *(f"{name}={each.value} is locked" for name, each in self.locked.items())]
        )

    @property
    def as_rule(self) -> Rule:
        """The limits as one rule, which is locked where all of its names are."""
        fallback = self.fallback
        return Rule(
            default=None if fallback is None else fallback.value,
            names=tuple(self.required),
            locked=bool(self.locked) and not self.default,
        )

    @property
    def sources(self) -> PolicySources:
        """All policies with these limits."""
        sources = [*self.required.values(), *(each.sources for each in self.locked.values())]
        return tuple(dict.fromkeys(by for each in sources for by in each))
