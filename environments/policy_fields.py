"""The fields that policies have rules for, as their form shows them.

The workloads app above registers them when the program starts.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms

from console.typed_forms import TypedValues
from environments.models import Asset, Policy
from projects.models import Project

CHECKBOX, YES_NO, CHOICE, MULTIPLE_CHOICE, TEXT, LINES, NAMES, PAIRS = (
    "check",
    "yes-no",
    "choice",
    "several",
    "text",
    "lines",
    "names",
    "pairs",
)
"""How something is asked for: a box, yes or no, one of a few, some of a few, a text, texts one a
line, names, NAME=value one a line.
"""
_WHOLE = re.compile(r"[0-9]{1,16}")
_TEXTAREA_KINDS = (LINES, NAMES, PAIRS)


@dataclass(frozen=True, slots=True)
class RuleInput:
    """One part of a rule for a field.

    `attribute` is its name in JSON, `kind` its input (see CHECKBOX and the others), `is_whole`
    whether its texts are whole numbers in JSON.
    """

    attribute: str
    label: str
    kind: str
    choices: tuple[tuple[str, str], ...] = ()
    is_whole: bool = False
    help_text: str = ""


@dataclass(frozen=True, slots=True)
class PolicyFormField:
    """A field of workloads, with the parts that a rule for it may have."""

    name: str
    label: str
    section: str
    about: str
    inputs: tuple[RuleInput, ...]

    def build_input_name(self, attribute: str) -> str:
        """Return the name of an input in the form."""
        return f"rule-{self.name.replace('.', '_')}-{attribute}"


ComplianceJudge = Callable[[Asset], Sequence[tuple[str, str, str]]]
"""Returns what policies forbid of an asset as it is: (field, sentence, rule) triples."""


@dataclass(frozen=True, slots=True)
class PolicyDefinitions:
    """What workloads register: the fields, and functions about policies and compliance."""

    fields: tuple[PolicyFormField, ...]
    describe_ineffective_rules: Callable[[Policy], Sequence[str]]
    get_judge: Callable[[Project, str], ComplianceJudge]


_definitions: list[PolicyDefinitions] = []


def register_definitions(definitions: PolicyDefinitions) -> None:
    """Use these fields and functions from now on."""
    _definitions[:] = [definitions]


def list_policy_fields() -> Sequence[PolicyFormField]:
    return _definitions[0].fields


def describe_ineffective_rules(policy: Policy) -> Sequence[str]:
    """Say which rules of a policy have no effect beside those of wider scopes: sentences."""
    return _definitions[0].describe_ineffective_rules(policy)


def get_compliance_judge(project: Project, architecture: str) -> ComplianceJudge:
    """Return a judge of assets for workloads of an architecture in a project. One query."""
    return _definitions[0].get_judge(project, architecture)


def build_form_fields() -> dict[str, forms.Field]:
    """Build all inputs of the form, by name."""
    return {
        each.build_input_name(entry.attribute): _build_form_field(each, entry)
        for each in list_policy_fields()
        for entry in each.inputs
    }


def _build_form_field(policy_field: PolicyFormField, entry: RuleInput) -> forms.Field:
    named: dict[str, Any] = {
        "label": f"{policy_field.label}: {entry.label}",
        "help_text": entry.help_text,
        "required": False,
    }
    if entry.kind == CHECKBOX:
        return forms.BooleanField(**named)
    if entry.kind in (CHOICE, YES_NO):
        choices = entry.choices if entry.kind == CHOICE else (("yes", "Yes"), ("no", "No"))
        return forms.ChoiceField(choices=[("", "Nothing is said"), *choices], **named)
    if entry.kind == MULTIPLE_CHOICE:
        return forms.MultipleChoiceField(
            choices=entry.choices, widget=forms.SelectMultiple(attrs={"size": 5}), **named
        )
    widget = (
        forms.Textarea(attrs={"rows": 2, "spellcheck": "false"})
        if entry.kind in _TEXTAREA_KINDS
        else forms.TextInput()
    )
    return forms.CharField(widget=widget, max_length=200 * 600, **named)


def build_typed_rules(rules: Mapping[str, Any]) -> TypedValues:
    """Return the rules of a policy as they would be typed."""
    typed: TypedValues = {}
    for each in list_policy_fields():
        rule = rules.get(each.name)
        if not isinstance(rule, Mapping):
            continue
        for entry in each.inputs:
            if (value := rule.get(entry.attribute)) not in (None, False, [], {}) or (
                entry.kind == YES_NO and value is False
            ):
                typed[each.build_input_name(entry.attribute)] = _build_typed_value(entry, value)
    return typed


def _build_typed_value(entry: RuleInput, value: Any) -> list[str]:
    if entry.kind == CHECKBOX:
        return ["on"]
    if entry.kind == YES_NO:
        return ["yes" if value else "no"]
    if entry.kind == PAIRS and isinstance(value, Mapping):
        return ["\n".join(f"{name}={text}" for name, text in value.items())]
    if isinstance(value, list | tuple):
        texts = [str(each) for each in value]
        return (
            texts
            if entry.kind == MULTIPLE_CHOICE
            else [("\n" if entry.kind in _TEXTAREA_KINDS else " ").join(texts)]
        )
    return [str(value)]


def parse_rules(get_typed: Callable[[str], Any]) -> dict[str, Any]:
    """Return the typed rules as JSON has them; `get_typed` returns the value typed under a name.

    What is wrong with them is left to their judge.
    """
    rules: dict[str, Any] = {}
    for each in list_policy_fields():
        values = {
            entry.attribute: _parse_value(entry, get_typed(each.build_input_name(entry.attribute)))
            for entry in each.inputs
        }
        rule = {attribute: value for attribute, value in values.items() if value is not None}
        if rule:
            rules[each.name] = rule
    return rules


def _parse_value(entry: RuleInput, value: Any) -> Any:
    """Return the value as JSON has it; None for what is empty."""
    if entry.kind == CHECKBOX:
        return True if value else None
    if entry.kind == YES_NO:
        return {"yes": True, "no": False}.get(value)
    if entry.kind == MULTIPLE_CHOICE:
        return list(value or ()) or None
    text = str(value or "").strip()
    if not text:
        return None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if entry.kind == PAIRS:
        return {name.strip(): rest for name, _, rest in (line.partition("=") for line in lines)}
    if entry.kind == NAMES:
        return [name for line in lines for name in line.replace(",", " ").split()]
    if entry.kind == LINES:
        return [_parse_number(entry, line) for line in lines]
    return _parse_number(entry, text)


def _parse_number(entry: RuleInput, text: str) -> int | str:
    digits = text.replace(",", "")
    return int(digits) if entry.is_whole and _WHOLE.fullmatch(digits) else text
