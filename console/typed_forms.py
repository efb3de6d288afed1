"""Forms kept as they were typed: shown without being judged, and with repeating rows."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS
from django.forms.utils import ErrorDict
from django.http import QueryDict

TypedValues = dict[str, list[str]]
"""Field names, each with the values that a browser sent for it."""

MAX_ROWS = 300
IGNORED_FIELDS = frozenset({"csrfmiddlewaretoken", "at", "started_from", "anyway"})


def parse_typed(post_data: QueryDict, buttons: Iterable[str] = ()) -> TypedValues:
    r"""Return the sent values, without the CSRF token and the pressed button.

    Null characters, which PostgreSQL cannot store, are dropped, and line ends become "\n".
    """
    left_out = IGNORED_FIELDS.union(buttons)
    return {
        _clean_text(name): [_clean_text(value) for value in post_data.getlist(name)]
        for name in post_data
        if name not in left_out
    }


def _clean_text(value: str) -> str:
    return value.replace("\x00", "").replace("\r\n", "\n")


def to_query_dict(stored: Mapping[str, list[str]]) -> QueryDict:
    """Return typed values as a QueryDict, the inverse of `parse_typed`."""
    sent = QueryDict(mutable=True)
    for name, values in stored.items():
        sent.setlist(name, values)
    return sent


class TypedForm(forms.Form):
    """A bound form that shows errors only when told to.

    While `quiet`, it shows what was typed without errors.
    """

    use_required_attribute = False

    def __init__(self, data: TypedValues | None = None, *, quiet: bool = True, **more: Any) -> None:
        super().__init__(None if data is None else to_query_dict(data), **more)
        self.quiet = quiet

    @property
    def all_errors(self) -> ErrorDict:
        """All errors, quiet or not."""
        return super().errors

    @property
    def errors(self) -> ErrorDict:
        return ErrorDict() if self.quiet else self.all_errors

    @property
    def has_errors(self) -> bool:
        return bool(self.all_errors)

    def read(self, name: str, default: Any = None) -> Any:
        """Return the cleaned value of a field; `default` where it is missing or wrong."""
        value = None if self.all_errors.get(name) else self.cleaned_data.get(name)
        return default if value is None else value

    def add_error_once(self, field: str | None, text: str) -> None:
        """Put an error beside a field, or above all fields, unless there is one already.

        A field keeps its first error; above all fields a text stands once.
        """
        known_field = field if field in self.fields else None
        if (
            known_field not in self.all_errors
            if known_field
            else text not in self.all_errors.get(NON_FIELD_ERRORS, ())
        ):
            self.add_error(known_field, text)


class RowForm(TypedForm):
    """One of several rows. It is blank, and counts for nothing, while no `content_fields` are
    filled in.
    """

    content_fields: tuple[str, ...] = ()

    @property
    def is_blank(self) -> bool:
        return not any(str(self[name].value() or "").strip() for name in self.content_fields)


Row = TypeVar("Row", bound=RowForm)


class FormRows(Generic[Row]):
    """All rows of one name.

    The fields of row 3 are called `<name>-3-<field>`; numbers may have gaps, as rows come and go.
    """

    def __init__(
        self, name: str, row: Callable[..., Row], data: TypedValues, *, quiet: bool = True
    ) -> None:
        self.name = name
        self._row = row
        self._quiet = quiet
        self._errors: list[str] = []
        self.note = ""
        """Why nothing of it can be changed; "" where it can."""
        self.policy_note = ""
        """What policies want of it."""
        rows_by_number = _group_rows(name, data)
        self._numbers = sorted(rows_by_number)
        self.all = [
            row(rows_by_number[number], prefix=f"{name}-{number}", quiet=quiet)
            for number in self._numbers[:MAX_ROWS]
        ]
        if len(self._numbers) > MAX_ROWS:
            self._errors.append(f"There can be at most {MAX_ROWS} rows; take some away.")

    @property
    def errors(self) -> list[str]:
        """What is wrong with the rows as a whole."""
        return [] if self._quiet else self._errors

    def add_error_once(self, text: str) -> None:
        """Add an error of the rows as a whole."""
        if text not in self._errors:
            self._errors.append(text)

    @property
    def filled_rows(self) -> list[Row]:
        """The rows that are not blank, in their order."""
        return [row for row in self.all if not row.is_blank]

    @property
    def empty_row(self) -> Row:
        """A blank row with __n__ in place of its number, which a script copies to add a row."""
        return self._row({}, prefix=f"{self.name}-__n__")

    @property
    def next_number(self) -> int:
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
    def has_errors(self) -> bool:
        return bool(self._errors) or any(row.has_errors for row in self.filled_rows)


def _group_rows(name: str, data: TypedValues) -> Mapping[int, TypedValues]:
    """Return the values of each row of this name, by its number.

    With the values of all rows for each of them, the work would grow by the square of their number.
    """
    pattern = re.compile(rf"{re.escape(name)}-([0-9]{{1,5}})-")
    rows: defaultdict[int, TypedValues] = defaultdict(dict)
    for key, values in data.items():
        if match := pattern.match(key):
            rows[int(match[1])][key] = values
    return rows


def add_row(data: TypedValues, rows: FormRows[Any]) -> TypedValues:
    """Return the typed values with one more, blank row."""
    first = next(iter(rows.empty_row.fields))
    return data | {f"{rows.name}-{rows.next_number}-{first}": [""]}


def remove_row(data: TypedValues, row: str) -> TypedValues:
    """Return the typed values without this row ("variables-3")."""
    return {name: values for name, values in data.items() if not name.startswith(f"{row}-")}


def build_row_values(name: str, rows: Iterable[Mapping[str, str | list[str]]]) -> TypedValues:
    """Return values as if they had been typed into rows.

    A list is several values of one field.
    """
    values = (
        (f"{name}-{number}-{field}", value)
        for number, row in enumerate(rows)
        for field, value in row.items()
    )
    return {field: value if isinstance(value, list) else [value] for field, value in values}
