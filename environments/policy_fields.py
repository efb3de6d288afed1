"""What policies can speak of, as their form asks for it. Workloads, a floor above, say what there
is when the program starts.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms

from console.typed import Typed
from environments.models import Asset, Policy
from projects.models import Project

CHECK, YES_NO, CHOICE, SEVERAL, TEXT, LINES, NAMES, PAIRS = (
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
_AREAS = (LINES, NAMES, PAIRS)


@dataclass(frozen=True, slots=True)
class Input:
    """One thing that a rule can say of a field: `attribute` is its name in JSON, `whole` whether
    its texts are whole numbers there.
    """

    attribute: str
    label: str
    way: str
    choices: tuple[tuple[str, str], ...] = ()
    whole: bool = False
    help_text: str = ""


@dataclass(frozen=True, slots=True)
class Speakable:
    """A field of workloads with what a rule can say of it."""

    name: str
    label: str
    section: str
    about: str
    inputs: tuple[Input, ...]

    def typed_name(self, attribute: str) -> str:
        """The name of an input in the form."""
        return f"rule-{self.name.replace('.', '_')}-{attribute}"


Judge = Callable[[Asset], Sequence[tuple[str, str, str]]]
"""What policies have against an asset as it is: (field, sentence, rule) triples."""


@dataclass(frozen=True, slots=True)
class Speech:
    """What workloads bring: the fields, and what to tell of a policy that is there."""

    fields: tuple[Speakable, ...]
    advise: Callable[[Policy], Sequence[str]]
    complying: Callable[[Project, str], Judge]


_speech: list[Speech] = []


def appoint(speech: Speech) -> None:
    """From now on policies speak of these fields."""
    _speech[:] = [speech]


def speakable() -> Sequence[Speakable]:
    return _speech[0].fields


def advice(policy: Policy) -> Sequence[str]:
    """What of a policy has no effect, beside those of wider scopes: sentences."""
    return _speech[0].advise(policy)


def complying(project: Project, architecture: str) -> Judge:
    """Who judges assets for workloads of an architecture in a project. One query."""
    return _speech[0].complying(project, architecture)


def form_fields() -> dict[str, forms.Field]:
    """All inputs by their names in the form."""
    return {
        each.typed_name(entry.attribute): _field(each, entry)
        for each in speakable()
        for entry in each.inputs
    }


def _field(of: Speakable, entry: Input) -> forms.Field:
    named: dict[str, Any] = {
        "label": f"{of.label}: {entry.label}",
        "help_text": entry.help_text,
        "required": False,
    }
    if entry.way == CHECK:
        return forms.BooleanField(**named)
    if entry.way in (CHOICE, YES_NO):
        choices = entry.choices if entry.way == CHOICE else (("yes", "Yes"), ("no", "No"))
        return forms.ChoiceField(choices=[("", "Nothing is said"), *choices], **named)
    if entry.way == SEVERAL:
        return forms.MultipleChoiceField(
            choices=entry.choices, widget=forms.SelectMultiple(attrs={"size": 5}), **named
        )
    widget = (
        forms.Textarea(attrs={"rows": 2, "spellcheck": "false"})
        if entry.way in _AREAS
        else forms.TextInput()
    )
    return forms.CharField(widget=widget, max_length=200 * 600, **named)


def typed_rules(rules: Mapping[str, Any]) -> Typed:
    """The rules of a policy as they would be typed."""
    found: Typed = {}
    for each in speakable():
        rule = rules.get(each.name)
        if not isinstance(rule, Mapping):
            continue
        for entry in each.inputs:
            if (value := rule.get(entry.attribute)) not in (None, False, [], {}) or (
                entry.way == YES_NO and value is False
            ):
                found[each.typed_name(entry.attribute)] = _typed(entry, value)
    return found


def _typed(entry: Input, value: Any) -> list[str]:
    if entry.way == CHECK:
        return ["on"]
    if entry.way == YES_NO:
        return ["yes" if value else "no"]
    if entry.way == PAIRS and isinstance(value, Mapping):
        return ["\n".join(f"{name}={text}" for name, text in value.items())]
    if isinstance(value, list | tuple):
        texts = [str(each) for each in value]
        return (
            texts if entry.way == SEVERAL else [("\n" if entry.way in _AREAS else " ").join(texts)]
        )
    return [str(value)]


def rules_of(read: Callable[[str], Any]) -> dict[str, Any]:
    """The rules as JSON has them; `read` gives what was typed under a name. What is wrong with them
    is left for their judge to say.
    """
    found: dict[str, Any] = {}
    for each in speakable():
        given = {
            entry.attribute: _json(entry, read(each.typed_name(entry.attribute)))
            for entry in each.inputs
        }
        rule = {attribute: value for attribute, value in given.items() if value is not None}
        if rule:
            found[each.name] = rule
    return found


def _json(entry: Input, value: Any) -> Any:
    """None for what is empty."""
    if entry.way == CHECK:
        return True if value else None
    if entry.way == YES_NO:
        return {"yes": True, "no": False}.get(value)
    if entry.way == SEVERAL:
        return list(value or ()) or None
    text = str(value or "").strip()
    if not text:
        return None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if entry.way == PAIRS:
        return {name.strip(): rest for name, _, rest in (line.partition("=") for line in lines)}
    if entry.way == NAMES:
        return [name for line in lines for name in line.replace(",", " ").split()]
    if entry.way == LINES:
        return [_number(entry, line) for line in lines]
    return _number(entry, text)


def _number(entry: Input, text: str) -> int | str:
    plain = text.replace(",", "")
    return int(plain) if entry.whole and _WHOLE.fullmatch(plain) else text
