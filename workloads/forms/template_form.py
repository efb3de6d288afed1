"""The form that saves a draft as a template: its name, its scope, and what it locks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms

from console.typed_forms import TypedValues
from environments.kinds.templates import TemplateForm
from environments.models import Template
from workloads.forms import template_locks

LOCKED = "locked"


@dataclass(frozen=True)
class LockCard:
    """One value that can be locked, with a description of the draft's value."""

    key: str
    title: str
    value: str
    is_locked: bool


@dataclass(frozen=True)
class LockSection:
    """A section of the form, which can be locked as a whole or value by value."""

    key: str
    title: str
    is_locked: bool
    cards: Sequence[LockCard]


class SavedTemplateForm(TemplateForm):
    """The form of a template that is saved from a draft.

    `draft` has what the template is made of: architecture, framework and form.
    """

    locked = forms.MultipleChoiceField(
        label="Locked",
        required=False,
        choices=[
            *((f"section:{name}", title) for name, (title, _) in template_locks.SECTIONS.items()),
            *((lock.key, lock.title) for lock in template_locks.LOCKS.values()),
        ],
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(
        self,
        data: TypedValues,
        *,
        draft: Mapping[str, Any],
        lock_descriptions: Mapping[str, str],
        **more: Any,
    ) -> None:
        super().__init__(data, **more)
        self._draft = draft
        self._lock_descriptions = lock_descriptions

    @property
    def content(self) -> dict[str, Any]:
        return {
            **self._draft,
            "locked": list(template_locks.filter_known_keys(self.read(LOCKED, ()))),
        }

    @property
    def sections(self) -> Sequence[LockSection]:
        """Return what of this draft can be locked.

        Locks that its kind of workload does not have are left out.
        """
        ticked = set(self[LOCKED].value() or ())
        form: Mapping[str, Any] = self._draft["form"]
        return [
            _build_section(name, title, section_locks, form, ticked, self._lock_descriptions)
            for name, (title, section_locks) in template_locks.SECTIONS.items()
        ]


def _build_section(
    name: str,
    title: str,
    section_locks: Sequence[template_locks.Lock],
    form: Mapping[str, Any],
    ticked: set[str],
    lock_descriptions: Mapping[str, str],
) -> LockSection:
    is_ticked = f"section:{name}" in ticked
    cards = [
        LockCard(
            each.key,
            each.title,
            lock_descriptions.get(each.key, ""),
            is_ticked or each.key in ticked,
        )
        for each in section_locks
        if each.key in lock_descriptions
    ]
    return LockSection(
        f"section:{name}",
        title,
        is_ticked or (bool(cards) and all(card.is_locked for card in cards)),
        cards,
    )


def build_template_values(
    name: str, description: str, scope: str, locked: Sequence[str]
) -> TypedValues:
    """Return the form's initial values for a new template."""
    return {"name": [name], "description": [description], "scope": [scope], LOCKED: list(locked)}


def build_existing_template_values(template: Template) -> TypedValues:
    """Return the form's values for an existing template, as if they had been typed."""
    return build_template_values(
        template.name,
        template.description,
        str(template.scope),
        template_locks.filter_known_keys(template.locked),
    )
