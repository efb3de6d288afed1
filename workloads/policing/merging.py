"""All policies of a project as one: what each field may be, defaults, and idle rules. Pure.

Every rule applies, of whatever level. Where two contradict each other, so that no value could
satisfy both, the wider one applies and the other is set aside and reported: a manager of a project
can neither permit what is forbidden to it nor block it by accident. Of defaults the nearest one
applies, unless a rule forbids it.
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
    """The rules of a policy and where they come from, for merging."""

    source: PolicySource
    rules: Mapping[str, Rule]


@dataclass(frozen=True, slots=True)
class IdleRule:
    """A policy's rule of one field that has no effect, or only in part, and why.

    `text` is a sentence. `is_set_aside`: the rule contradicts wider ones.
    """

    source: PolicySource
    field: str
    text: str
    is_set_aside: bool


@dataclass(frozen=True)
class MergedPolicies:
    """The result of merging. `policies` go from the widest to the nearest."""

    limits: Mapping[str, AnyLimits]
    idle: Sequence[IdleRule] = ()
    policies: Sequence[PolicyRules] = ()

    def find_limits(self, field: str) -> AnyLimits | None:
        return self.limits.get(field)

    @cached_property
    def conflicts(self) -> Mapping[str, Sequence[str]]:
        """Sentences about rules that were set aside, by field."""
        texts: dict[str, list[str]] = {}
        for each in self.idle:
            if each.is_set_aside:
                texts.setdefault(each.field, []).append(each.text)
        return texts


NO_POLICIES = MergedPolicies({})
"""The result without any policy."""


def merge_policies(policies: Iterable[PolicyRules]) -> MergedPolicies:
    """Merge policies, given in any order."""
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
    # Nearest level first, within a level by name: the first default that the limits allow stays
    # (`with_default`), so a forbidden one gives way to the next.
    for source, name, rule in sorted(heeded, key=lambda each: (-each[0].level, each[0])):
        limits[name] = limits[name].with_default(rule.default, source)
    in_order = {name: limits[name] for name in CATALOGUE if name in limits}
    return MergedPolicies(in_order, idle, ordered)


def build_rules(merged: MergedPolicies) -> dict[str, Rule]:
    """Return the merged limits as the rules of one equivalent policy."""
    return {
        name: limits.as_rule
        for name, limits in merged.limits.items()
        if not limits.as_rule.is_blank
    }


def build_limits(rule: Rule, name: str) -> AnyLimits | None:
    """Return the limits of one rule; None where no value could satisfy it."""
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
    """Describe the parts of a rule that wider rules have narrowed already."""
    if isinstance(before, PairLimits):
        return []
    kind, label, texts = before.field.kind, before.field.label, []
    bounds = (("at least", rule.least, before.least, 1), ("at most", rule.most, before.most, -1))
    for words, new_bound, wider_bound, sign in bounds:
        if (
            new_bound is not None
            and wider_bound is not None
            and (kind.comparable(wider_bound.value) - kind.comparable(new_bound)) * sign > 0
        ):
            texts.append(
                f"{words} {kind.describe(new_bound)} has no effect, for "
                f"{describe_sources(wider_bound.sources)} says {words} "
                f"{kind.describe(wider_bound.value)}"
            )
    if rule.options is not None and before.options is not None:
        excluded = [
            each
            for each in rule.options
            if not kind.intersect_options((each,), before.options.value)
        ]
        if excluded:
            texts.append(
                f"{', '.join(map(kind.describe, excluded[:5]))} cannot be chosen, for "
                f"{describe_sources(before.options.sources)} does not allow it"
            )
    return [f"{label}: {each}." for each in texts]
