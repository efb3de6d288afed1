"""The problems of a policy: unreadable or impossible rules, and defaults that break them. Pure."""

from collections.abc import Iterator, Sequence

from workloads.policing.catalogue import CATALOGUE
from workloads.policing.fields import PolicyField
from workloads.policing.judging import complete_spec
from workloads.policing.kinds import (
    DEFAULT,
    LEAST,
    LOCKED,
    MOST,
    OPTIONS,
    STEP,
    CommandLine,
    Pairs,
    PrefixText,
)
from workloads.policing.limits import FieldLimits, PolicySource
from workloads.policing.merging import PolicyRules, build_limits, merge_policies
from workloads.policing.rules import BadRules, Rule, RuleProblem, parse_rules
from workloads.specs import Architecture, Environment, Framework, Setup, Spec, find_problems

_MINIMAL_SPEC = Spec(
    name="x",
    project="x",
    namespace="x",
    queue="x",
    architecture=Architecture.DISTRIBUTED,
    framework=next(iter(Framework)),
    workers=1,
    setup=Setup(environment=Environment(image="")),
)
"""A submission that gives as little as possible."""


def find_rule_problems(json_rules: object) -> Sequence[RuleProblem]:
    """Return everything that is wrong with a policy's rules, given as JSON."""
    try:
        rules = parse_rules(json_rules)
    except BadRules as bad:
        return bad.problems
    return tuple(
        problem for name, rule in rules.items() for problem in _check_rule(CATALOGUE[name], rule)
    )


def _check_rule(field: PolicyField, rule: Rule) -> Iterator[RuleProblem]:
    def problem(attribute: str, text: str) -> RuleProblem:
        return RuleProblem(field.name, attribute, f"{field.label}: {text}.")

    if (
        rule.locked
        and rule.default is None
        and (isinstance(field.kind, Pairs) or field.kind.empty is None)
    ):
        yield problem(DEFAULT, "the default must be given, for that is the value that is locked")
        return
    free = Rule(
        least=rule.least,
        most=rule.most,
        step=rule.step,
        options=rule.options,
        required=rule.required,
        names=rule.names,
    )
    limits = build_limits(free, field.name)
    if limits is None:
        yield problem(*_describe_impossible(field, rule))
        return
    if rule.default is not None and isinstance(limits, FieldLimits):
        breaches = list(limits.find_value_breaches(rule.default))
        yield from (
            problem(DEFAULT, f"the default {breach.text} by this very rule") for breach in breaches
        )
        if breaches:
            return
    if rule.default is not None and isinstance(field.kind, PrefixText | CommandLine | Pairs):
        yield from (
            problem(DEFAULT, f"no workload could have the default: {text}")
            for text in _find_default_problems(field, rule)
        )
    if rule.locked and build_limits(rule, field.name) is None:
        yield problem(LOCKED, "it cannot be required and locked at nothing")


def _find_default_problems(field: PolicyField, rule: Rule) -> list[str]:
    """Return why a submission with this default, a text, would be refused.

    Every submission that leaves the field out would be.
    """
    with_it = complete_spec(
        _MINIMAL_SPEC,
        merge_policies(
            [PolicyRules(PolicySource(0, ""), {field.name: Rule(default=rule.default)})]
        ),
        given_fields=(),
    )
    usual = find_problems(_MINIMAL_SPEC)
    return [
        problem.text.removesuffix(".") for problem in find_problems(with_it) if problem not in usual
    ]


def _describe_impossible(field: PolicyField, rule: Rule) -> tuple[str, str]:
    kind = field.kind
    if (
        rule.least is not None
        and rule.most is not None
        and kind.comparable(rule.least) > kind.comparable(rule.most)
    ):
        return (
            LEAST,
            (
                f"the minimum, {kind.describe(rule.least)}, must not be above the maximum, "
                f"{kind.describe(rule.most)}"
            ),
        )
    if rule.options is not None:
        return OPTIONS, "none of the options is within what else the rule says"
    return (
        (STEP, "no multiple of the step lies within the range")
        if rule.step
        else (MOST, "nothing could be as the rule says")
    )
