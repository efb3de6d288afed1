"""What a person has typed into a form, kept as it was typed: forms that can show it without judging
it, and rows that repeat.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS
from django.forms.utils import ErrorDict
from django.http import QueryDict

Typed = dict[str, list[str]]
"""Field names, each with the values that a browser sent for it."""

MOST_ROWS = 300
NOT_TYPED = frozenset({"csrfmiddlewaretoken", "at", "started_from", "anyway"})


def typed(sent: QueryDict, buttons: Iterable[str] = ()) -> Typed:
    """What was sent, without the token and what the pressed button said.

    Null characters, which PostgreSQL cannot store, are dropped, and lines end as everywhere but in
    a browser's text areas.
    """
    left_out = NOT_TYPED.union(buttons)
    return {
        _cleaned(name): [_cleaned(value) for value in sent.getlist(name)]
        for name in sent
        if name not in left_out
    }


def _cleaned(value: str) -> str:
    return value.replace("\x00", "").replace("\r\n", "\n")


def as_sent(stored: Mapping[str, list[str]]) -> QueryDict:
    """The other way."""
    sent = QueryDict(mutable=True)
    for name, values in stored.items():
        sent.setlist(name, values)
    return sent


class TypedForm(forms.Form):
    """A bound form that judges only when told to: `quiet`, it shows what was typed without
    errors.
    """

    use_required_attribute = False

    def __init__(self, data: Typed | None = None, *, quiet: bool = True, **more: Any) -> None:
        super().__init__(None if data is None else as_sent(data), **more)
        self.quiet = quiet

    @property
    def wrong(self) -> ErrorDict:
        """What is wrong, quiet or not."""
        return super().errors

    @property
    def errors(self) -> ErrorDict:
        return ErrorDict() if self.quiet else self.wrong

    @property
    def is_wrong(self) -> bool:
        return bool(self.wrong)

    def read(self, name: str, otherwise: Any = None) -> Any:
        """The value of a field as the program has it; `otherwise` where what was typed is none."""
        value = None if self.wrong.get(name) else self.cleaned_data.get(name)
        return otherwise if value is None else value

    def blame(self, field: str | None, text: str) -> None:
        """Put an error beside a field, or above all fields; one that has an error already keeps
        that.
        """
        known = field if field in self.fields else None
        if known not in self.wrong if known else text not in self.wrong.get(NON_FIELD_ERRORS, ()):
            self.add_error(known, text)


class RowForm(TypedForm):
    """One of several alike. It is blank, and counts for nothing, while none of `content` is filled
    in.
    """

    content: tuple[str, ...] = ()

    @property
    def is_blank(self) -> bool:
        return not any(str(self[name].value() or "").strip() for name in self.content)


Row = TypeVar("Row", bound=RowForm)


class Rows(Generic[Row]):
    """All rows of one name. The fields of row 3 are called `<name>-3-<field>`; numbers may have
    gaps, as rows come and go.
    """

    def __init__(
        self, name: str, row: Callable[..., Row], data: Typed, *, quiet: bool = True
    ) -> None:
        self.name = name
        self._row = row
        self._quiet = quiet
        self._errors: list[str] = []
        self.note = ""
        """Why nothing of it can be changed; "" where it can."""
        self.policy_note = ""
        """What policies want of it."""
        pattern = re.compile(rf"{re.escape(name)}-([0-9]{{1,5}})-")
        self._numbers = sorted({int(match[1]) for key in data if (match := pattern.match(key))})
        self.all = [
            row(data, prefix=f"{name}-{number}", quiet=quiet)
            for number in self._numbers[:MOST_ROWS]
        ]
        if len(self._numbers) > MOST_ROWS:
            self._errors.append(f"There can be at most {MOST_ROWS} rows; take some away.")

    @property
    def errors(self) -> list[str]:
        """What is wrong with the rows as a whole."""
        return [] if self._quiet else self._errors

    def blame(self, text: str) -> None:
        """Say what is wrong with the rows as a whole."""
        if text not in self._errors:
            self._errors.append(text)

    @property
    def filled(self) -> list[Row]:
        """Those that say something, in their order."""
        return [row for row in self.all if not row.is_blank]

    @property
    def empty(self) -> Row:
        """What a script copies to add a row: it has __n__ where the number goes."""
        return self._row({}, prefix=f"{self.name}-__n__")

    @property
    def next(self) -> int:
        return self._numbers[-1] + 1 if self._numbers else 0

    @property
    def quiet(self) -> bool:
        return self._quiet

    @quiet.setter
    def quiet(self, quiet: bool) -> None:
        self._quiet = quiet
        for row in self.all:
            row.quiet = quiet

    @property
    def is_wrong(self) -> bool:
        return bool(self._errors) or any(row.is_wrong for row in self.filled)


def with_row(data: Typed, rows: Rows[Any]) -> Typed:
    """What was typed, with one more, blank row."""
    first = next(iter(rows.empty.fields))
    return data | {f"{rows.name}-{rows.next}-{first}": [""]}


def without_row(data: Typed, row: str) -> Typed:
    """What was typed, without the row called so ("variables-3")."""
    return {name: values for name, values in data.items() if not name.startswith(f"{row}-")}


def as_rows(name: str, rows: Iterable[Mapping[str, str | list[str]]]) -> Typed:
    """Values as if they had been typed into rows; a list is several values of one field."""
    values = (
        (f"{name}-{number}-{field}", value)
        for number, row in enumerate(rows)
        for field, value in row.items()
    )
    return {field: value if isinstance(value, list) else [value] for field, value in values}
