"""Two people edit one thing: the second is told what changed meanwhile, and nothing is overwritten
unseen.

A form carries what it started from, sealed, so that no history is needed to tell what somebody else
changed. A view passes `fields` to its template, which includes parts/_changed_meanwhile.html inside
its form; it gives the writer the version that `started_version` reads. The writer locks the row and
asks `unchanged`. On ChangedMeanwhile the view reads the row anew and shows the form again, with
409: what was typed stays, `fields` is told that it is a second time, and the form's button then
saves over what was shown.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django import forms
from django.core import signing

from console.errors import Clash

START_FIELD = "started_from"
"""The hidden field of a form that carries the seal."""
_SALT = "muster.editing"
MAX_SEAL_CHARS = 256 << 10
"""Characters of a seal that is read."""


@dataclass(frozen=True, slots=True)
class FormStart:
    """What a form started from: the row's version, and the values as they would have been typed,
    without secrets.
    """

    version: int
    values: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that somebody else changed meanwhile: by its name in the form, as it was, and as it
    is now.
    """

    field: str
    was: str
    now: str
    label: str = ""
    """What the form calls the field."""


class ChangedMeanwhile(Clash):
    """The row is of a newer version than what was edited. `version` is the row's."""

    def __init__(self, version: int, what: str = "It") -> None:
        super().__init__(
            f"{what} was changed meanwhile by somebody else. Load it again, and repeat your change."
        )
        self.version = version


def check_version(version: int, edited_version: int | None, what: str = "It") -> None:
    """Raises ChangedMeanwhile where the row's version is not the one that was edited; None means
    that nobody cares.

    Asked while the row is locked, before its version is raised.
    """
    if edited_version is not None and edited_version != version:
        raise ChangedMeanwhile(version, what)


def parse_started_version(sent: Mapping[str, Any]) -> int:
    """The version that a sent form was opened at; -1, which no row has, where it does not say."""
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
    """What parts/_changed_meanwhile.html needs: the seal and, where a form that was `sent` came too
    late, what changed, who and when.

    `version` and `now` are the row's as it is in the database, `now` as it would be typed; `form`
    lends the labels.
    """
    found: dict[str, Any] = {"started_from": sign_start(version, current)}
    if sent is None:
        return found
    start = parse_start(str(sent.get(START_FIELD, "")))
    different = (
        () if start is None else label_differences(find_differences(start.values, current), form)
    )
    return found | {
        "is_late": True,
        "differences": different,
        "changed_by": str(changed_by or ""),
        "changed_at": changed_at,
    }


def sign_start(version: int, values: Mapping[str, Sequence[str]]) -> str:
    """For the hidden field. It is signed, and can be read by who gets it: nothing secret goes into
    it.
    """
    return signing.dumps(
        [version, {name: list(each) for name, each in values.items()}], salt=_SALT, compress=True
    )


def parse_start(sealed: str) -> FormStart | None:
    """What `seal` was given; None for anything else."""
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
    """The fields whose values differ, in the order of the form."""
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
    """The differences as a page words them: fields by their labels, choices by theirs."""
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
