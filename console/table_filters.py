"""Filters of a table of `console.tables`, and the values of them that an address has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db import models
from django.http import HttpRequest
from django.utils.dateparse import parse_date

MAX_TEXT_CHARS = 150
"""Characters of a typed filter: those of the longest user name."""
MAX_VALUES = 50
"""Values of one filter."""
MAX_OPTIONS = 100
"""Choices that a filter lists of what can be typed."""
MAX_NUMBER = Decimal(10**9)

Rows = models.QuerySet[Any]
Choices = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of a table.

    `choices` returns the (value, words) pairs, once a page; `apply` narrows the rows by one value.
    Other kinds than "choice" are:

    - "choices": several values at once, all of which `apply` gets as a tuple
    - "text", "number", "integer" and "date" (a day, as 2026-01-31): a typed value; the choices of a
      text are suggestions
    - "view": a link chooses it, not the bar of filters; `apply` gets "" where it does not
    """

    name: str
    title: str
    choices: Callable[[HttpRequest], Choices]
    apply: Callable[[Rows, Any], Rows]
    kind: str = "choice"
    check: Callable[[str], bool] | None = None
    """Says whether rows can be narrowed by a value; without it the choices and the kind do."""
    any_words: str = ""
    """The choice of no value; "" says the title."""
    name_values: Callable[[HttpRequest, Sequence[str]], Choices] | None = None
    """Returns the chosen ones of too many "choices", of which one more is typed.

    Without it all choices are offered, however many.
    """
    is_more: bool = False
    """Whether it stands in the panel of further filters, and not in the bar."""

    def offer(self, request: HttpRequest, chosen: Sequence[str]) -> tuple[Choices, Sequence[str]]:
        """Return the choices that the bar shows, and suggestions where a value is typed."""
        choices = self.choices(request)
        if self.name_values is None or len(choices) <= MAX_OPTIONS:
            return choices, ()
        suggestions = [words for _, words in choices[:MAX_OPTIONS]]
        return self.name_values(request, chosen), suggestions

    def accepts(self, request: HttpRequest, value: str) -> bool:
        """Return whether rows can be narrowed by this value."""
        if self.check is not None:
            return self.check(value)
        if self.kind in ("number", "integer"):
            return parse_decimal(value) is not None
        if self.kind == "date":
            return _is_day(value)
        if self.kind == "text":
            return True
        return value in {key for key, _ in self.choices(request)}

    def parse_values(self, request: HttpRequest) -> tuple[str, ...]:
        """Return the values that the address has for it, without those that it does not accept.

        A typed text is cut, and not left out: rows that nobody asked for would be shown.
        """
        values = request.GET.getlist(self.name)
        if self.kind != "choices":
            values = [_cut_text(value) if self.kind == "text" else value for value in values[-1:]]
        return tuple(
            sorted(
                {value for value in values[:MAX_VALUES] if value and self.accepts(request, value)}
            )
        )

    def list_unused(self, request: HttpRequest, accepted: tuple[str, ...]) -> list[str]:
        """Return the values of the address that are not among the accepted ones.

        Of a view's filter and of one that is typed there are none: only links set the first, and
        the second takes any text.
        """
        if self.kind in ("view", "text"):
            return []
        values = request.GET.getlist(self.name)
        values = values if self.kind == "choices" else values[-1:]
        return [value for value in dict.fromkeys(values) if value and value not in accepted]

    def narrow(self, rows: Rows, values: tuple[str, ...]) -> Rows:
        """Return the rows that fit these values, as `parse_values` returns them."""
        if self.kind == "choices":
            return self.apply(rows, values) if values else rows
        value = next(iter(values), "")
        return self.apply(rows, value) if value or self.kind == "view" else rows


def _cut_text(value: str) -> str:
    return value.replace("\x00", "").strip()[:MAX_TEXT_CHARS]


@dataclass(frozen=True, slots=True)
class Selection:
    """The search and the values of filters in an address. Equal ones select the same rows."""

    search: str = ""
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def find_values(self, name: str) -> tuple[str, ...]:
        """Return the values of a filter, () where it has none."""
        return dict(self.values).get(name, ())

    def list_parameters(self) -> list[tuple[str, str]]:
        """Return the parameters of an address that selects the same."""
        search = [("q", self.search)] if self.search else []
        return [*search, *((name, value) for name, values in self.values for value in values)]


def _is_day(text: str) -> bool:
    try:
        return parse_date(text) is not None
    except ValueError:
        return False


def parse_decimal(text: str) -> Decimal | None:
    """Return the number that a person typed; None for what is none, or beyond MAX_NUMBER."""
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    if not number.is_finite() or not 0 <= number <= MAX_NUMBER:
        return None
    return round(number, 6)
