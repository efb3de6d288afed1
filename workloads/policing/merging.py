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
from workloads.policing.limits import FieldLimits, PolicySource, describe_sources
from workloads.policing.pairs import PairLimits
from workloads.policing.rules import Rule

AnyLimits = FieldLimits | PairLimits


@dataclass(frozen=True, slots=True)
class PolicyRules:
    """A policy as far as merging goes."""

    source: PolicySource
    rules: Mapping[str, Rule]


@dataclass(frozen=True, slots=True)
class IdleRule:
    """A policy's rule of one field that has no effect, or only in part, and why, as a sentence.
    `set_aside`: it contradicts wider ones.
    """

    source: PolicySource
    field: str
    text: str
    is_set_aside: bool


@dataclass(frozen=True)
class MergedPolicies:
    """What holds. `policies` go from the widest to the nearest."""

    limits: Mapping[str, AnyLimits]
    idle: Sequence[IdleRule] = ()
    policies: Sequence[PolicyRules] = ()

    def find_limits(self, field: str) -> AnyLimits | None:
        return self.limits.get(field)

    @cached_property
    def conflicts(self) -> Mapping[str, Sequence[str]]:
        """What to say beside a field of rules that were set aside."""
        found: dict[str, list[str]] = {}
        for each in self.idle:
            if each.is_set_aside:
                found.setdefault(each.field, []).append(each.text)
        return found


NO_POLICIES = MergedPolicies({})
"""Without any policy."""


def merge_policies(policies: Iterable[PolicyRules]) -> MergedPolicies:
    """The policies as one, in whatever order they come."""
    ordered = sorted(policies, key=lambda each: each.source)
    limits: dict[str, AnyLimits] = {}
    idle: list[IdleRule] = []
    heeded: list[tuple[PolicySource, str, Rule]] = []
    for policy in ordered:
        for name, rule in policy.rules.items():
            before = limits.get(name) or _build_blank_limits(name)
            after = before.narrow(rule, policy.source)
            if after is None:
                idle.append(
                    IdleRule(
                        policy.source,
                        name,
                        _describe_conflict(name, rule, before, policy.source),
                        True,
                    )
                )
                continue
            limits[name] = after
            heeded.append((policy.source, name, rule))
            idle += [
                IdleRule(policy.source, name, text, False)
                for text in _describe_ineffective(rule, before)
            ]
    # The nearest last of all levels, and of one level the first by name: so that one default can
    # follow another that is forbidden.
    for source, name, rule in sorted(heeded, key=lambda each: (-each[0].level, each[0])):
        limits[name] = limits[name].with_default(rule.default, source)
    shown = {name: limits[name] for name in CATALOGUE if name in limits}
    return MergedPolicies(shown, idle, ordered)


def build_rules(merged: MergedPolicies) -> dict[str, Rule]:
    """What holds as the rules of one policy that says the same."""
    return {
        name: limits.as_rule
        for name, limits in merged.limits.items()
        if not limits.as_rule.is_blank
    }


def build_limits(rule: Rule, name: str) -> AnyLimits | None:
    """The limits of one rule; None where nothing could be as it says."""
    return _build_blank_limits(name).narrow(rule, PolicySource(0, ""))


def _build_blank_limits(name: str) -> AnyLimits:
    field = CATALOGUE[name]
    return PairLimits(field) if isinstance(field.kind, Pairs) else FieldLimits(field)


def _describe_conflict(name: str, rule: Rule, before: AnyLimits, source: PolicySource) -> str:
    wider = describe_sources(before.sources)
    label = CATALOGUE[name].label
    return (
        f"{label}: the rule of {source.description} does not hold, for it contradicts {wider}. "
        "Change one of them."
    )


def _describe_ineffective(rule: Rule, before: AnyLimits) -> list[str]:
    """What of a rule the wider ones have made narrower already."""
    if isinstance(before, PairLimits):
        return []
    kind, label, found = before.field.kind, before.field.label, []
    bounds = (("at least", rule.least, before.least, 1), ("at most", rule.most, before.most, -1))
    for words, mine, theirs, sign in bounds:
        if (
            mine is not None
            and theirs is not None
            and (kind.comparable(theirs.value) - kind.comparable(mine)) * sign > 0
        ):
            found.append(
                f"{words} {kind.describe(mine)} has no effect, for "
                f"{describe_sources(theirs.sources)} says {words} {kind.describe(theirs.value)}"
            )
    if rule.options is not None and before.options is not None:
        lost = [
            each
            for each in rule.options
            if not kind.intersect_options((each,), before.options.value)
        ]
        if lost:
            found.append(
                f"{', '.join(map(kind.describe, lost[:5]))} cannot be chosen, for "
                f"{describe_sources(before.options.sources)} does not allow it"
            )
    return [f"{label}: {each}." for each in found]
