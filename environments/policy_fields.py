"""The fields that policies have rules for, as their form shows them."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django import forms

from console.typed_forms import TypedValues
from environments import seams
from environments.seams import InputKind, PolicyFormField, RuleInput

_WHOLE = re.compile(r"[0-9]{1,16}")
_TEXTAREA_KINDS = (InputKind.LINES, InputKind.NAMES, InputKind.PAIRS)


def list_policy_fields() -> Sequence[PolicyFormField]:
    """Return the fields that policies have rules for."""
    return seams.POLICY_RULES.get().list_policy_fields()


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
    if entry.kind is InputKind.CHECKBOX:
        return forms.BooleanField(**named)
    if entry.kind in (InputKind.CHOICE, InputKind.YES_NO):
        yes_no = (("yes", "Yes"), ("no", "No"))
        choices = entry.choices if entry.kind is InputKind.CHOICE else yes_no
        return forms.ChoiceField(choices=[("", "Nothing is said"), *choices], **named)
    if entry.kind is InputKind.MULTIPLE_CHOICE:
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
            value = rule.get(entry.attribute)
            if _is_typed(entry, value):
                typed[each.build_input_name(entry.attribute)] = _build_typed_value(entry, value)
    return typed


def _is_typed(entry: RuleInput, value: Any) -> bool:
    """Return whether a value of a rule needs its input filled in."""
    if value is False:
        return entry.kind is InputKind.YES_NO
    # Zero counts, though it equals False: as a limit it forbids.
    return value is not None and value not in ([], {})


def _build_typed_value(entry: RuleInput, value: Any) -> list[str]:
    if entry.kind is InputKind.CHECKBOX:
        return ["on"]
    if entry.kind is InputKind.YES_NO:
        return ["yes" if value else "no"]
    if entry.kind is InputKind.PAIRS and isinstance(value, Mapping):
        return ["\n".join(f"{name}={text}" for name, text in value.items())]
    if isinstance(value, list | tuple):
        texts = [str(each) for each in value]
        return (
            texts
            if entry.kind is InputKind.MULTIPLE_CHOICE
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
    if entry.kind is InputKind.CHECKBOX:
        return True if value else None
    if entry.kind is InputKind.YES_NO:
        return {"yes": True, "no": False}.get(value)
    if entry.kind is InputKind.MULTIPLE_CHOICE:
        return list(value or ()) or None
    text = str(value or "").strip()
    if not text:
        return None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if entry.kind is InputKind.PAIRS:
        return {name.strip(): rest for name, _, rest in (line.partition("=") for line in lines)}
    if entry.kind is InputKind.NAMES:
        return [name for line in lines for name in line.replace(",", " ").split()]
    if entry.kind is InputKind.LINES:
        return [_parse_number(entry, line) for line in lines]
    return _parse_number(entry, text)


def _parse_number(entry: RuleInput, text: str) -> int | str:
    digits = text.replace(",", "")
    return int(digits) if entry.is_whole and _WHOLE.fullmatch(digits) else text
