"""What one field may be, by all policies that speak of it: each limit with the policies that set
it. Pure.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from workloads.policing.fields import Field
from workloads.policing.kinds import LEAST, LOCKED, MOST, OPTIONS, REQUIRED, STEP, Members, listed
from workloads.policing.rules import Rule


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """A policy: how wide its scope is (0 is everybody's), its name and id, and its scope as in a
    sentence.
    """

    level: int
    name: str
    key: str = ""
    where: str = ""

    @property
    def words(self) -> str:
        return f"policy {self.name} of {self.where}" if self.where else f"policy {self.name}"


Sources = tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """Something with the policies that say it."""

    value: Any
    by: Sources


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that a value breaks: which attribute, a text that follows the field's name in a
    sentence, and whose rule it is.
    """

    attribute: str
    text: str
    by: Sources
    at: str = ""
    """Where below the field it is, as ".0.kind"."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a field that is not pairs."""

    field: Field
    required: Sources = ()
    least: Said | None = None
    most: Said | None = None
    steps: tuple[Said, ...] = ()
    options: Said | None = None
    locked: Said | None = None
    default: Said | None = None

    def narrowed(self, rule: Rule, by: Source) -> Self | None:
        """With one more policy's rule; None where nothing could be both. A default is not looked
        at.
        """
        found = replace(
            self,
            required=(*self.required, by) if rule.required else self.required,
            least=self._stricter(self.least, rule.least, by, 1),
            most=self._stricter(self.most, rule.most, by, -1),
            steps=self.steps if rule.step is None else (*self.steps, Said(rule.step, (by,))),
            options=self._options(rule, by),
        )
        if rule.locked:
            value = self.field.kind.empty if rule.default is None else rule.default
            if self.locked is not None and self._amount(self.locked.value) != self._amount(value):
                return None
            found = replace(
                found, locked=Said(value, (*(self.locked.by if self.locked else ()), by))
            )
        return found if found._possible else None

    def with_default(self, value: Any, by: Source) -> Self:
        """With a default, if it may be; one that is there stays."""
        if (
            self.default is not None
            or self.locked is not None
            or value is None
            or any(self.wrong(value))
        ):
            return self
        return replace(self, default=Said(value, (by,)))

    @property
    def given(self) -> Said | None:
        """What stands where nothing is said."""
        return self.locked or self.default

    def judge(self, value: Any, *, silent: bool) -> Iterator[Breach]:
        """What is wrong with a value; `silent`, nothing was said, and the value is what comes of
        that.
        """
        if self.locked is not None:
            if self._amount(self.field.kind.empty if value is None else value) != self._amount(
                self.locked.value
            ):
                yield Breach(
                    LOCKED,
                    f"must be {self._words(self.locked.value)}, which is locked",
                    self.locked.by,
                )
            return
        if silent and self.required:
            yield Breach(REQUIRED, "must be given", self.required)
        elif value is None:
            if self.field.is_open and (limit := self._first_limit) is not None:
                yield Breach(REQUIRED, f"must be given: {self.range_words}", limit.by)
        else:
            yield from self.wrong(value)

    def wrong(self, value: Any) -> Iterator[Breach]:
        """What is wrong with a value that was said."""
        amount = self._amount(value)
        if self.least is not None and amount < self._amount(self.least.value):
            yield Breach(LEAST, f"must be at least {self._words(self.least.value)}", self.least.by)
        if self.most is not None and amount > self._amount(self.most.value):
            yield Breach(MOST, f"must be at most {self._words(self.most.value)}", self.most.by)
        for step in self.steps:
            if amount % step.value:
                yield Breach(STEP, f"must be a multiple of {step.value:,}", step.by)
        if self.options is not None:
            yield from self._not_among(value, self.options)

    @property
    def range_words(self) -> str:
        """ "2 to 8", "at most 4", "one of a or b", "multiples of 2": what is limited, without who
        says so.
        """
        parts = []
        if self.least is not None and self.most is not None:
            parts.append(f"{self._words(self.least.value)} to {self._words(self.most.value)}")
        elif self.least is not None or self.most is not None:
            bound = self.least or self.most
            assert bound is not None
            parts.append(f"{'at least' if self.least else 'at most'} {self._words(bound.value)}")
        parts += [f"multiples of {step.value:,}" for step in self.steps]
        if self.options is not None:
            words = (
                "only"
                if isinstance(self.field.kind, Members)
                else "one of"
                if len(self.options.value) > 1
                else "only"
            )
            options = listed([self._words(each) for each in self.options.value])
            parts.append(f"{words} {options or self.field.kind.words(())}")
        return ", ".join(parts)

    @property
    def as_rule(self) -> Rule:
        """As one rule. Of several steps it has the first that is a multiple of all."""
        given = self.given
        return Rule(
            default=None if given is None else given.value,
            required=bool(self.required),
            least=self.least.value if self.least else None,
            most=self.most.value if self.most else None,
            step=math.lcm(*(each.value for each in self.steps)) if self.steps else None,
            options=self.options.value if self.options else None,
            locked=self.locked is not None,
        )

    @property
    def sources(self) -> Sources:
        """All policies whose limits these are."""
        said = [self.least, self.most, *self.steps, self.options, self.locked]
        return tuple(
            dict.fromkeys(
                [*self.required, *(by for each in said if each is not None for by in each.by)]
            )
        )

    def _not_among(self, value: Any, options: Said) -> Iterator[Breach]:
        kind, words = self.field.kind, listed([self._words(each) for each in options.value])
        if isinstance(kind, Members):
            for each in value:
                if each not in options.value:
                    only = f"can be {words} only" if options.value else "can be none"
                    yield Breach(OPTIONS, f"{only}, and not {self._words(each)}", options.by, each)
        elif not any(kind.fits(value, option) for option in options.value):
            yield Breach(
                OPTIONS, f"must be {'one of ' if len(options.value) > 1 else ''}{words}", options.by
            )

    @property
    def _first_limit(self) -> Said | None:
        return next(
            (
                each
                for each in (self.least, self.most, *self.steps, self.options)
                if each is not None
            ),
            None,
        )

    @property
    def _possible(self) -> bool:
        """Whether any value could be."""
        if self.locked is not None:
            unset = self.locked.value == self.field.kind.empty
            return not (self.required and unset) and not any(
                replace(self, locked=None).judge(self.locked.value, silent=False)
            )
        if (
            self.least
            and self.most
            and self._amount(self.least.value) > self._amount(self.most.value)
        ):
            return False
        if self.options is None:
            return self._steps_fit
        if isinstance(self.field.kind, Members):
            return bool(self.options.value) or not (self.required or self.field.is_open)
        # An option with a star is no value: that there are any is enough.
        bounded = self.least is not None or self.most is not None or self.steps
        free = replace(self, options=None)
        return any(not bounded or not any(free.wrong(option)) for option in self.options.value)

    @property
    def _steps_fit(self) -> bool:
        if not self.steps or self.most is None:
            return True
        step, least = (
            math.lcm(*(each.value for each in self.steps)),
            self.least.value if self.least else 0,
        )
        return bool(-(-least // step) * step <= self.most.value)

    def _stricter(self, mine: Said | None, theirs: Any, by: Source, sign: int) -> Said | None:
        if theirs is None:
            return mine
        if mine is None or (self._amount(theirs) - self._amount(mine.value)) * sign > 0:
            return Said(theirs, (by,))
        return mine

    def _options(self, rule: Rule, by: Source) -> Said | None:
        if rule.options is None or self.options is None:
            return self.options if rule.options is None else Said(rule.options, (by,))
        return Said(
            self.field.kind.shared(self.options.value, rule.options), (*self.options.by, by)
        )

    def _amount(self, value: Any) -> Any:
        return None if value is None else self.field.kind.amount(value)

    def _words(self, value: Any) -> str:
        return self.field.kind.words(value)


def by_words(sources: Sequence[Source], *, short: bool = False) -> str:
    """ "policy a of department research and policy b of everybody"."""
    return listed([f"policy {each.name}" if short else each.words for each in sources], "and")
