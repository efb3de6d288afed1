"""Optimistic locking of forms: the second of two editors sees what changed meanwhile.

A form carries what it started from, signed, so that no history is needed to tell what somebody else
changed. A view passes `build_conflict_context` to its template, which includes
parts/_changed_meanwhile.html inside its form; it gives the writer the version that
`parse_started_version` reads. The writer locks the row and calls `check_version`. On
ChangedMeanwhile the view loads the row anew and shows the form again, with 409: what was typed
stays, `build_conflict_context` gets the sent form, and the form's button then saves over what was
shown.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django import forms
from django.core import signing
from django.db import models

from console.errors import Clash

START_FIELD = "started_from"
"""The hidden form field that carries the signed start."""
CHANGE_COLUMNS = frozenset(("version", "updated_at", "updated_by"))
"""The columns that say how often, when and by whom a row was changed."""
_SALT = "muster.editing"
MAX_SEAL_CHARS = 256 << 10
"""Characters of a signed start that is read; longer ones count as none."""


@dataclass(frozen=True, slots=True)
class FormStart:
    """What a form started from: the row's version and its values as typed, without secrets."""

    version: int
    values: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that somebody else changed meanwhile: its form name, and its text before and now."""

    field: str
    was: str
    now: str
    label: str = ""
    """The field's label in the form."""


class ChangedMeanwhile(Clash):
    """The row has a newer version than the one that was edited. `version` is the row's."""

    def __init__(self, version: int, subject: str = "It") -> None:
        super().__init__(
            f"{subject} was changed meanwhile by somebody else. "
            "Load it again, and repeat your change."
        )
        self.version = version


def check_version(version: int, edited_version: int | None, subject: str = "It") -> None:
    """Raise ChangedMeanwhile if the row's version is not the edited one.

    An `edited_version` of None skips the check. Call it while the row is locked, before its version
    is raised.
    """
    if edited_version is not None and edited_version != version:
        raise ChangedMeanwhile(version, subject)


def get_edited_columns(row: models.Model) -> dict[str, Any]:
    """Return the loaded columns of a row, without those that follow from a change.

    A row whose columns an edit leaves as they are keeps its version: nobody else has to load it
    again.
    """
    unloaded = row.get_deferred_fields()
    return {
        column.attname: getattr(row, column.attname)
        for column in row._meta.concrete_fields
        if column.name not in CHANGE_COLUMNS and column.attname not in unloaded
    }


def parse_started_version(sent: Mapping[str, Any]) -> int:
    """Return the version that a sent form was opened at.

    -1, which no row has, where the form does not say.
    """
    start = parse_start(str(sent.get(START_FIELD, "")))
    return -1 if start is None else start.version


def build_conflict_context(
    version: int,
    current: Mapping[str, Sequence[str]],
    *,
    sent: Mapping[str, Any] | None = None,
    form: forms.BaseForm | None = None,
    changed_by: object = "",
    changed_at: datetime | None = None,
) -> dict[str, Any]:
    """Return the context of parts/_changed_meanwhile.html: the signed start, and the conflict.

    `version` and `current` are the row's in the database, `current` as it would be typed. `sent` is
    a form that came too late: then what changed, by whom and when is added; `form` lends the
    labels.
    """
    context: dict[str, Any] = {"started_from": sign_start(version, current)}
    if sent is None:
        return context
    start = parse_start(str(sent.get(START_FIELD, "")))
    differences = (
        () if start is None else label_differences(find_differences(start.values, current), form)
    )
    return context | {
        "is_late": True,
        "differences": differences,
        "changed_by": str(changed_by or ""),
        "changed_at": changed_at,
    }


def sign_start(version: int, values: Mapping[str, Sequence[str]]) -> str:
    """Sign a form's start for the hidden field.

    The text is signed, not encrypted: whoever gets it can read it, so nothing secret goes into it.
    """
    return signing.dumps(
        [version, {name: list(each) for name, each in values.items()}], salt=_SALT, compress=True
    )


def parse_start(sealed: str) -> FormStart | None:
    """Return what `sign_start` was given; None for a text that it did not sign."""
    if not sealed or len(sealed) > MAX_SEAL_CHARS:
        return None
    try:
        version, values = signing.loads(sealed, salt=_SALT)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    return FormStart(int(version), values)


def find_differences(
    was: Mapping[str, Sequence[str]], now: Mapping[str, Sequence[Any]]
) -> Sequence[Difference]:
    """Return the fields whose values differ, in the order of the form."""
    names = list(dict.fromkeys([*now, *was]))
    pairs = [
        (name, _join_values(was.get(name, ())), _join_values(now.get(name, ()))) for name in names
    ]
    return [Difference(name, before, after) for name, before, after in pairs if before != after]


def _join_values(values: Sequence[Any]) -> str:
    return ", ".join(str(value) for value in values)


def label_differences(
    differences: Iterable[Difference], form: forms.BaseForm | None
) -> Sequence[Difference]:
    """Return the differences with the labels of their fields and choices."""
    return [_label_difference(each, form) for each in differences]


_ROW_FIELD = re.compile(r"(.+)-([0-9]+)-(.+)")


def _label_difference(difference: Difference, form: forms.BaseForm | None) -> Difference:
    field = form.fields.get(difference.field) if form else None
    if field is None:
        row = _ROW_FIELD.fullmatch(difference.field)
        words = f"{row[1]} {int(row[2]) + 1}, {row[3]}" if row else difference.field
        return replace(difference, label=_capitalize_name(words))
    choices = {str(key): str(words) for key, words in getattr(field, "choices", ())}
    was, now = (choices.get(text, text) for text in (difference.was, difference.now))
    return replace(
        difference, label=str(field.label or _capitalize_name(difference.field)), was=was, now=now
    )


def _capitalize_name(name: str) -> str:
    words = name.replace("_", " ").replace("-", " ")
    return words[:1].upper() + words[1:]
