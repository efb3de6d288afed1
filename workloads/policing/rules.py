"""The rules of one policy: parsed from JSON, and serialized. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workloads.policing.catalogue import CATALOGUE
from workloads.policing.fields import PolicyField
from workloads.policing.kinds import (
    DEFAULT,
    LEAST,
    LOCKED,
    MOST,
    MOST_OPTIONS,
    OPTIONS,
    REQUIRED,
    STEP,
    Pairs,
)

MOST_RULES = 100
ATTRIBUTE_WORDS = {
    DEFAULT: "the default",
    REQUIRED: "whether it must be given",
    LEAST: "the minimum",
    MOST: "the maximum",
    STEP: "the step",
    OPTIONS: "the options",
    LOCKED: "whether it is locked",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """What a policy rules about one field; None and False mean nothing.

    `names` are the required names of pairs.
    """

    default: Any = None
    required: bool = False
    names: tuple[str, ...] = ()
    least: Any = None
    most: Any = None
    step: int | None = None
    options: tuple[Any, ...] | None = None
    locked: bool = False

    @property
    def is_blank(self) -> bool:
        return self == Rule()


@dataclass(frozen=True, slots=True)
class RuleProblem:
    """A problem with a policy's rules.

    `field` is the field's name, `attribute` is "" for the whole rule, and `text` a sentence.
    """

    field: str
    attribute: str
    text: str


class BadRules(ValueError):
    """The rules cannot be parsed."""

    def __init__(self, problems: Sequence[RuleProblem]) -> None:
        super().__init__(" ".join(each.text for each in problems))
        self.problems = tuple(problems)


def parse_rules(json_rules: object) -> dict[str, Rule]:
    """Return the rules of a policy by field, in the catalogue's order.

    Raises BadRules with everything that cannot be parsed.
    """
    if not isinstance(json_rules, Mapping):
        raise BadRules(
            [RuleProblem("", "", "The rules must be an object with a rule for each field.")]
        )
    if len(json_rules) > MOST_RULES:
        raise BadRules(
            [
                RuleProblem(
                    "",
                    "",
                    (
                        f"A policy can have at most {MOST_RULES} rules; these are "
                        f"{len(json_rules)}. Make two policies of it."
                    ),
                )
            ]
        )
    problems: list[RuleProblem] = []
    for name in json_rules:
        if name not in CATALOGUE:
            problems.append(
                RuleProblem("", "", f"{str(name)[:60]} is not a field that a policy can speak of.")
            )
    rules = {
        field.name: _parse_rule(field, json_rules[field.name], problems)
        for field in CATALOGUE.values()
        if field.name in json_rules
    }
    if problems:
        raise BadRules(problems)
    return {name: rule for name, rule in rules.items() if not rule.is_blank}


def parse_known_rules(stored_rules: object) -> dict[str, Rule]:
    """Return the rules of a stored policy, without what this version does not know."""
    rules = {}
    for name, rule in stored_rules.items() if isinstance(stored_rules, Mapping) else ():
        ignored: list[RuleProblem] = []
        if name in CATALOGUE:
            rules[name] = _parse_rule(CATALOGUE[name], rule, ignored)
    return {name: rules[name] for name in CATALOGUE if name in rules and not rules[name].is_blank}


def serialize_rules(rules: Mapping[str, Rule]) -> dict[str, Any]:
    """Return the rules as JSON has them; `parse_rules` makes equal ones."""
    return {
        name: _serialize_rule(CATALOGUE[name], rule)
        for name, rule in rules.items()
        if not rule.is_blank
    }


def _serialize_rule(field: PolicyField, rule: Rule) -> dict[str, Any]:
    kind = field.kind
    attributes: dict[str, Any] = {}
    if rule.default is not None:
        attributes[DEFAULT] = kind.to_json(rule.default)
    if rule.required or rule.names:
        attributes[REQUIRED] = list(rule.names) or True
    for attribute, value in ((LEAST, rule.least), (MOST, rule.most)):
        if value is not None:
            attributes[attribute] = kind.to_json(value)
    if rule.step is not None:
        attributes[STEP] = rule.step
    if rule.options is not None:
        attributes[OPTIONS] = [
            kind.to_json(each) if not isinstance(each, str) else each for each in rule.options
        ]
    return attributes | ({LOCKED: True} if rule.locked else {})


def _parse_rule(field: PolicyField, json_rule: object, problems: list[RuleProblem]) -> Rule:
    if not isinstance(json_rule, Mapping):
        problems.append(RuleProblem(field.name, "", f"{field.label}: the rule must be an object."))
        return Rule()
    reader = _RuleParser(field, json_rule, problems)
    for attribute in json_rule:
        if attribute not in ATTRIBUTE_WORDS:
            reader.add_problem("", f"{str(attribute)[:40]} is not something that a rule can say")
        elif attribute not in field.attributes and not (
            json_rule[attribute] is None or json_rule[attribute] is False  # `in` takes 0 for False.
        ):
            reader.add_problem(attribute, f"{ATTRIBUTE_WORDS[attribute]} makes no sense for it")
    kind = field.kind
    pairs = isinstance(kind, Pairs)
    return Rule(
        default=reader.parse_attribute(DEFAULT, kind.parse),
        required=False if pairs else bool(reader.parse_attribute(REQUIRED, _parse_flag)),
        names=(reader.parse_attribute(REQUIRED, kind.parse_names) or ())
        if isinstance(kind, Pairs)
        else (),
        least=reader.parse_attribute(LEAST, kind.parse),
        most=reader.parse_attribute(MOST, kind.parse),
        step=reader.parse_attribute(STEP, _parse_step),
        options=reader.parse_attribute(OPTIONS, reader.parse_options),
        locked=bool(reader.parse_attribute(LOCKED, _parse_flag)),
    )


class _RuleParser:
    def __init__(
        self, field: PolicyField, json_rule: Mapping[Any, Any], problems: list[RuleProblem]
    ) -> None:
        self._field = field
        self._given = json_rule
        self._found = problems

    def add_problem(self, attribute: str, text: str) -> None:
        self._found.append(
            RuleProblem(self._field.name, attribute, f"{self._field.label}: {text}.")
        )

    def parse_attribute(self, attribute: str, parse: Callable[[object], Any]) -> Any:
        """Return the parsed value of an attribute.

        None where none is given, or where the field does not have the attribute.
        """
        json_value = self._given.get(attribute)
        if json_value is None or attribute not in self._field.attributes:
            return None
        try:
            return parse(json_value)
        except ValueError as error:
            self.add_problem(attribute, f"{ATTRIBUTE_WORDS[attribute]} {error}")
            return None

    def parse_options(self, json_value: object) -> tuple[Any, ...]:
        if not isinstance(json_value, list | tuple) or not 0 < len(json_value) <= MOST_OPTIONS:
            raise ValueError(f"must be a list of 1 to {MOST_OPTIONS}")
        return tuple(dict.fromkeys(self._field.kind.parse_option(each) for each in json_value))


def _parse_flag(json_value: object) -> bool:
    if not isinstance(json_value, bool):
        raise ValueError("must be true or false")
    return json_value


def _parse_step(json_value: object) -> int:
    if (
        isinstance(json_value, bool)
        or not isinstance(json_value, int)
        or not 1 <= json_value <= 1_000_000
    ):
        raise ValueError("must be a whole number from 1")
    return json_value
