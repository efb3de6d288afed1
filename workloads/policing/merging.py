"""All policies that hold for a project as one: what each field may be, what stands where nothing is
said, and what has no effect. Pure.

Every rule holds, of whatever level. Where two contradict each other, so that nothing could be both,
the wider one holds and the other is set aside, and told of: who manages a project can neither
permit what is forbidden to it nor shut it by accident. Of defaults the nearest one stands, unless a
rule forbids it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from workloads.policing.catalogue import CATALOGUE
from workloads.policing.kinds import Pairs
from workloads.policing.limits import Limits, Source, by_words
from workloads.policing.pairs import PairLimits
from workloads.policing.rules import Rule

AnyLimits = Limits | PairLimits


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy as far as merging goes."""

    source: Source
    rules: Mapping[str, Rule]


@dataclass(frozen=True, slots=True)
class Idle:
    """A policy's rule of one field that has no effect, or only in part, and why, as a sentence.
    `set_aside`: it contradicts wider ones.
    """

    source: Source
    field: str
    text: str
    set_aside: bool


@dataclass(frozen=True)
class Merged:
    """What holds. `policies` go from the widest to the nearest."""

    limits: Mapping[str, AnyLimits]
    idle: Sequence[Idle] = ()
    policies: Sequence[Policy] = ()

    def of(self, field: str) -> AnyLimits | None:
        return self.limits.get(field)

    @cached_property
    def conflicts(self) -> Mapping[str, Sequence[str]]:
        """What to say beside a field of rules that were set aside."""
        found: dict[str, list[str]] = {}
        for each in self.idle:
            if each.set_aside:
                found.setdefault(each.field, []).append(each.text)
        return found


NOTHING = Merged({})
"""Without any policy."""


def merge(policies: Iterable[Policy]) -> Merged:
    """The policies as one, in whatever order they come."""
    ordered = sorted(policies, key=lambda each: each.source)
    limits: dict[str, AnyLimits] = {}
    idle: list[Idle] = []
    heeded: list[tuple[Source, str, Rule]] = []
    for policy in ordered:
        for name, rule in policy.rules.items():
            before = limits.get(name) or _blank(name)
            after = before.narrowed(rule, policy.source)
            if after is None:
                idle.append(
                    Idle(policy.source, name, _set_aside(name, rule, before, policy.source), True)
                )
                continue
            limits[name] = after
            heeded.append((policy.source, name, rule))
            idle += [
                Idle(policy.source, name, text, False) for text in _without_effect(rule, before)
            ]
    # The nearest last of all levels, and of one level the first by name: so that one default can
    # follow another that is forbidden.
    for source, name, rule in sorted(heeded, key=lambda each: (-each[0].level, each[0])):
        limits[name] = limits[name].with_default(rule.default, source)
    shown = {name: limits[name] for name in CATALOGUE if name in limits}
    return Merged(shown, idle, ordered)


def as_rules(merged: Merged) -> dict[str, Rule]:
    """What holds as the rules of one policy that says the same."""
    return {
        name: limits.as_rule
        for name, limits in merged.limits.items()
        if not limits.as_rule.is_blank
    }


def alone(rule: Rule, name: str) -> AnyLimits | None:
    """The limits of one rule; None where nothing could be as it says."""
    return _blank(name).narrowed(rule, Source(0, ""))


def _blank(name: str) -> AnyLimits:
    field = CATALOGUE[name]
    return PairLimits(field) if isinstance(field.kind, Pairs) else Limits(field)


def _set_aside(name: str, rule: Rule, before: AnyLimits, source: Source) -> str:
    wider = by_words(before.sources)
    label = CATALOGUE[name].label
    return (
        f"{label}: the rule of {source.words} does not hold, for it contradicts {wider}. Change "
        "one of them."
    )


def _without_effect(rule: Rule, before: AnyLimits) -> list[str]:
    """What of a rule the wider ones have made narrower already."""
    if isinstance(before, PairLimits):
        return []
    kind, label, found = before.field.kind, before.field.label, []
    bounds = (("at least", rule.least, before.least, 1), ("at most", rule.most, before.most, -1))
    for words, mine, theirs, sign in bounds:
        if (
            mine is not None
            and theirs is not None
            and (kind.amount(theirs.value) - kind.amount(mine)) * sign > 0
        ):
            found.append(
                f"{words} {kind.words(mine)} has no effect, for {by_words(theirs.by)} says "
                f"{words} {kind.words(theirs.value)}"
            )
    if rule.options is not None and before.options is not None:
        lost = [each for each in rule.options if not kind.shared((each,), before.options.value)]
        if lost:
            found.append(
                f"{', '.join(map(kind.words, lost[:5]))} cannot be chosen, for "
                f"{by_words(before.options.by)} does not allow it"
            )
    return [f"{label}: {each}." for each in found]
