"""What one field may be by all policies, each limit with the policies that set it. Pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from workloads.policing.fields import PolicyField
from workloads.policing.kinds import (
    LEAST,
    LOCKED,
    MOST,
    OPTIONS,
    REQUIRED,
    STEP,
    TextList,
    join_listing,
)
from workloads.policing.rules import Rule


@dataclass(frozen=True, slots=True, order=True)
class PolicySource:
    """A policy: the width of its scope (0 is everybody's), its name, id, and its scope in words."""

    level: int
    name: str
    key: str = ""
    where: str = ""

    @property
    def description(self) -> str:
        return f"policy {self.name} of {self.where}" if self.where else f"policy {self.name}"


PolicySources = tuple[PolicySource, ...]


@dataclass(frozen=True, slots=True)
class SourcedValue:
    """A value with the policies that set it."""

    value: Any
    sources: PolicySources


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that a value breaks.

    `attribute` is the rule's attribute, `text` follows the field's name in a sentence, and
    `sources` are the policies with the rule.
    """

    attribute: str
    text: str
    sources: PolicySources
    position: str = ""
    """Which entry of the field it concerns, as a kind of volume or a name; "" for the whole field.
    """


@dataclass(frozen=True, slots=True)
class FieldLimits:
    """Limits of a field that is not pairs."""

    field: PolicyField
    required: PolicySources = ()
    least: SourcedValue | None = None
    most: SourcedValue | None = None
    steps: tuple[SourcedValue, ...] = ()
    options: SourcedValue | None = None
    locked: SourcedValue | None = None
    default: SourcedValue | None = None

    def narrow(self, rule: Rule, source: PolicySource) -> Self | None:
        """Return the limits with one more policy's rule; None where no value could satisfy both.

        A default is not considered.
        """
        narrowed = replace(
            self,
            required=(*self.required, source) if rule.required else self.required,
            least=self._choose_stricter(self.least, rule.least, source, 1),
            most=self._choose_stricter(self.most, rule.most, source, -1),
            steps=self.steps
            if rule.step is None
            else (*self.steps, SourcedValue(rule.step, (source,))),
            options=self._narrow_options(rule, source),
        )
        if rule.locked:
            value = self.field.kind.empty if rule.default is None else rule.default
            if self.locked is not None and self._comparable(self.locked.value) != self._comparable(
                value
            ):
                return None
            narrowed = replace(
                narrowed,
                locked=SourcedValue(value, (*(self.locked.sources if self.locked else ()), source)),
            )
        return narrowed if narrowed._is_possible else None

    def with_default(self, value: Any, source: PolicySource) -> Self:
        """Return the limits with a default, if it is allowed; an earlier default stays."""
        if (
            self.default is not None
            or self.locked is not None
            or value is None
            or any(self.find_value_breaches(value))
        ):
            return self
        return replace(self, default=SourcedValue(value, (source,)))

    @property
    def fallback(self) -> SourcedValue | None:
        """The value that applies where none is given."""
        return self.locked or self.default

    def find_breaches(self, value: Any, *, is_omitted: bool) -> Iterator[Breach]:
        """Yield the rules that a value breaks.

        Where `is_omitted`, none was given, and the value is what results from that.
        """
        if self.locked is not None:
            if self._comparable(
                self.field.kind.empty if value is None else value
            ) != self._comparable(self.locked.value):
                yield Breach(
                    LOCKED,
                    f"must be {self._describe(self.locked.value)}, which is locked",
                    self.locked.sources,
                )
            return
        if is_omitted and self.required:
            yield Breach(REQUIRED, "must be given", self.required)
        elif value is None:
            if self.field.is_open and (limit := self._first_limit) is not None:
                yield Breach(REQUIRED, f"must be given: {self.range_words}", limit.sources)
        else:
            yield from self.find_value_breaches(value)

    def find_value_breaches(self, value: Any) -> Iterator[Breach]:
        """Yield the rules that a given value breaks."""
        amount = self._comparable(value)
        if self.least is not None and amount < self._comparable(self.least.value):
            yield Breach(
                LEAST, f"must be at least {self._describe(self.least.value)}", self.least.sources
            )
        if self.most is not None and amount > self._comparable(self.most.value):
            yield Breach(
                MOST, f"must be at most {self._describe(self.most.value)}", self.most.sources
            )
        for step in self.steps:
            if amount % step.value:
                yield Breach(STEP, f"must be a multiple of {step.value:,}", step.sources)
        if self.options is not None:
            yield from self._find_option_breaches(value, self.options)

    @property
    def range_words(self) -> str:
        """The limits without their sources: "2 to 8", "at most 4", "one of a or b", "multiples of
        2".
        """
        parts = []
        if self.least is not None and self.most is not None:
            parts.append(f"{self._describe(self.least.value)} to {self._describe(self.most.value)}")
        elif self.least is not None or self.most is not None:
            bound = self.least or self.most
            assert bound is not None
            parts.append(f"{'at least' if self.least else 'at most'} {self._describe(bound.value)}")
        parts += [f"multiples of {step.value:,}" for step in self.steps]
        if self.options is not None:
            is_choice = len(self.options.value) > 1 and not isinstance(self.field.kind, TextList)
            words = "one of" if is_choice else "only"
            options = join_listing([self._describe(each) for each in self.options.value])
            parts.append(f"{words} {options or self.field.kind.describe(())}")
        return ", ".join(parts)

    @property
    def as_rule(self) -> Rule:
        """The limits as one rule; of several steps their least common multiple."""
        fallback = self.fallback
        return Rule(
            default=None if fallback is None else fallback.value,
            required=bool(self.required),
            least=self.least.value if self.least else None,
            most=self.most.value if self.most else None,
            step=math.lcm(*(each.value for each in self.steps)) if self.steps else None,
            options=self.options.value if self.options else None,
            locked=self.locked is not None,
        )

    @property
    def sources(self) -> PolicySources:
        """All policies with these limits."""
        values = [self.least, self.most, *self.steps, self.options, self.locked]
        return tuple(
            dict.fromkeys(
                [
                    *self.required,
                    *(by for each in values if each is not None for by in each.sources),
                ]
            )
        )

    def _find_option_breaches(self, value: Any, options: SourcedValue) -> Iterator[Breach]:
        kind, words = (
            self.field.kind,
            join_listing([self._describe(each) for each in options.value]),
        )
        if isinstance(kind, TextList):
            for each in value:
                if each not in options.value:
                    only = f"can be {words} only" if options.value else "can be none"
                    yield Breach(
                        OPTIONS, f"{only}, and not {self._describe(each)}", options.sources, each
                    )
        elif not any(kind.matches_option(value, option) for option in options.value):
            yield Breach(
                OPTIONS,
                f"must be {'one of ' if len(options.value) > 1 else ''}{words}",
                options.sources,
            )

    @property
    def _first_limit(self) -> SourcedValue | None:
        return next(
            (
                each
                for each in (self.least, self.most, *self.steps, self.options)
                if each is not None
            ),
            None,
        )

    @property
    def _is_possible(self) -> bool:
        """Whether any value satisfies the limits."""
        if self.locked is not None:
            unset = self.locked.value == self.field.kind.empty
            return not (self.required and unset) and not any(
                replace(self, locked=None).find_breaches(self.locked.value, is_omitted=False)
            )
        if (
            self.least
            and self.most
            and self._comparable(self.least.value) > self._comparable(self.most.value)
        ):
            return False
        if self.options is None:
            return self._has_fitting_step
        if isinstance(self.field.kind, TextList):
            return bool(self.options.value) or not (self.required or self.field.is_open)
        # An option with a star is no value that could be tested: its presence is enough.
        bounded = self.least is not None or self.most is not None or self.steps
        free = replace(self, options=None)
        return any(
            not bounded or not any(free.find_value_breaches(option))
            for option in self.options.value
        )

    @property
    def _has_fitting_step(self) -> bool:
        if not self.steps or self.most is None:
            return True
        step, lower_bound = (
            math.lcm(*(each.value for each in self.steps)),
            self.least.value if self.least else 0,
        )
        return bool(-(-lower_bound // step) * step <= self.most.value)

    def _choose_stricter(
        self, current: SourcedValue | None, new_value: Any, source: PolicySource, sign: int
    ) -> SourcedValue | None:
        if new_value is None:
            return current
        if (
            current is None
            or (self._comparable(new_value) - self._comparable(current.value)) * sign > 0
        ):
            return SourcedValue(new_value, (source,))
        return current

    def _narrow_options(self, rule: Rule, source: PolicySource) -> SourcedValue | None:
        if rule.options is None or self.options is None:
            return self.options if rule.options is None else SourcedValue(rule.options, (source,))
        return SourcedValue(
            self.field.kind.intersect_options(self.options.value, rule.options),
            (*self.options.sources, source),
        )

    def _comparable(self, value: Any) -> Any:
        return None if value is None else self.field.kind.comparable(value)

    def _describe(self, value: Any) -> str:
        return self.field.kind.describe(value)


def describe_sources(sources: Sequence[PolicySource], *, short: bool = False) -> str:
    """Describe policies: "policy a of department research and policy b of everybody"."""
    return join_listing(
        [f"policy {each.name}" if short else each.description for each in sources], "and"
    )
