"""What is wrong with a policy itself: rules that cannot be read, that nothing could keep, or whose
own default breaks them. Pure.
"""

from collections.abc import Iterator, Sequence

from workloads.policing.catalogue import CATALOGUE
from workloads.policing.fields import Field
from workloads.policing.judging import completed
from workloads.policing.kinds import DEFAULT, LEAST, LOCKED, MOST, OPTIONS, STEP, Line, Pairs, Text
from workloads.policing.limits import Limits, Source
from workloads.policing.merging import Policy, alone, merge
from workloads.policing.rules import BadRules, Rule, Wrong, read
from workloads.specs import Architecture, Environment, Framework, Setup, Spec, problems

_EXAMPLE = Spec(
    name="x",
    project="x",
    namespace="x",
    queue="x",
    architecture=Architecture.DISTRIBUTED,
    framework=Framework.PYTORCH,
    workers=1,
    setup=Setup(environment=Environment(image="")),
)
"""A submission that says as little as one can."""


def wrong(given: object) -> Sequence[Wrong]:
    """Everything that is wrong with the rules of a policy as JSON has them."""
    try:
        rules = read(given)
    except BadRules as bad:
        return bad.wrong
    return tuple(
        problem for name, rule in rules.items() for problem in _of_rule(CATALOGUE[name], rule)
    )


def _of_rule(field: Field, rule: Rule) -> Iterator[Wrong]:
    def problem(attribute: str, text: str) -> Wrong:
        return Wrong(field.name, attribute, f"{field.label}: {text}.")

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
    limits = alone(free, field.name)
    if limits is None:
        yield problem(*_impossible(field, rule))
        return
    if rule.default is not None and isinstance(limits, Limits):
        breaches = list(limits.wrong(rule.default))
        yield from (
            problem(DEFAULT, f"the default {breach.text} by this very rule") for breach in breaches
        )
        if breaches:
            return
    if rule.default is not None and isinstance(field.kind, Text | Line | Pairs):
        yield from (
            problem(DEFAULT, f"no workload could have the default: {text}")
            for text in _refused(field, rule)
        )
    if rule.locked and alone(rule, field.name) is None:
        yield problem(LOCKED, "it cannot be required and locked at nothing")


def _refused(field: Field, rule: Rule) -> list[str]:
    """Why a submission with this default, which is a text, would be refused: everybody's who says
    nothing of the field.
    """
    with_it = completed(
        _EXAMPLE, merge([Policy(Source(0, ""), {field.name: Rule(default=rule.default)})]), said=()
    )
    usual = problems(_EXAMPLE)
    return [problem.text.removesuffix(".") for problem in problems(with_it) if problem not in usual]


def _impossible(field: Field, rule: Rule) -> tuple[str, str]:
    kind = field.kind
    if (
        rule.least is not None
        and rule.most is not None
        and kind.amount(rule.least) > kind.amount(rule.most)
    ):
        return (
            LEAST,
            (
                f"the minimum, {kind.words(rule.least)}, must not be above the maximum, "
                f"{kind.words(rule.most)}"
            ),
        )
    if rule.options is not None:
        return OPTIONS, "none of the options is within what else the rule says"
    return (
        (STEP, "no multiple of the step lies within the range")
        if rule.step
        else (MOST, "nothing could be as the rule says")
    )
