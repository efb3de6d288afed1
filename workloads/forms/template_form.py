"""The form that makes a template of a draft: what it is called, who can use it, and what of it
stays as it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms

from console.typed import Typed
from environments.kinds.templates import TemplateForm
from environments.models import Template
from workloads.forms import locks

LOCKED = "locked"


@dataclass(frozen=True)
class LockCard:
    """One thing to lock, with the value that it would be locked to, in words."""

    key: str
    title: str
    value: str
    is_locked: bool


@dataclass(frozen=True)
class LockSection:
    """A section of the form: ticked as a whole, or thing by thing."""

    key: str
    title: str
    is_locked: bool
    cards: Sequence[LockCard]


class SavedTemplateForm(TemplateForm):
    """`content` is what the draft makes: architecture, framework and form."""

    locked = forms.MultipleChoiceField(
        label="Locked",
        required=False,
        choices=[
            *((f"section:{name}", title) for name, (title, _) in locks.SECTIONS.items()),
            *((lock.key, lock.title) for lock in locks.LOCKS.values()),
        ],
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(
        self, data: Typed, *, draft: Mapping[str, Any], words: Mapping[str, str], **more: Any
    ) -> None:
        super().__init__(data, **more)
        self._draft = draft
        self._words = words

    @property
    def content(self) -> dict[str, Any]:
        return {**self._draft, "locked": list(locks.known(self.read(LOCKED, ())))}

    @property
    def sections(self) -> Sequence[LockSection]:
        """What can be locked of this draft: things that its kind of workload does not have are left
        out.
        """
        ticked = set(self[LOCKED].value() or ())
        form: Mapping[str, Any] = self._draft["form"]
        return [
            _section(name, title, those, form, ticked, self._words)
            for name, (title, those) in locks.SECTIONS.items()
        ]


def _section(
    name: str,
    title: str,
    those: Sequence[locks.Lock],
    form: Mapping[str, Any],
    ticked: set[str],
    words: Mapping[str, str],
) -> LockSection:
    whole = f"section:{name}" in ticked
    cards = [
        LockCard(each.key, each.title, words.get(each.key, ""), whole or each.key in ticked)
        for each in those
        if each.key in words
    ]
    return LockSection(
        f"section:{name}",
        title,
        whole or (bool(cards) and all(card.is_locked for card in cards)),
        cards,
    )


def typed_template(name: str, description: str, scope: str, locked: Sequence[str]) -> Typed:
    """The form as it starts."""
    return {"name": [name], "description": [description], "scope": [scope], LOCKED: list(locked)}


def typed_of(template: Template) -> Typed:
    """A template that is there, as if it had been typed."""
    return typed_template(
        template.name, template.description, str(template.scope), locks.known(template.locked)
    )
