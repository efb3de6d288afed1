"""filterBy and sortBy of lists: `field operator value`, as in Run:ai's API."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import reduce
from operator import or_
from typing import Any, TypeVar
from uuid import UUID

from django.db import models

from console.errors import Invalid
from console.texts import parse_number
from projects.api.base import ListQuery, build_list_body, parse_moment

Rows = TypeVar("Rows", bound=models.QuerySet[Any])

_CONDITION = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]*)\s*(==|!=|<=|>=|=@|!@|=\^|=\$)(.*)", re.DOTALL)
_LOOKUPS = {
    "==": "exact",
    "!=": "exact",
    "<=": "lte",
    ">=": "gte",
    "=@": "icontains",
    "!@": "icontains",
    "=^": "istartswith",
    "=$": "iendswith",
}
_EQUAL = ("==", "!=")
_ORDERED = ("==", "!=", "<=", ">=")
_TEXT = ("==", "!=", "=@", "!@", "=^", "=$")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a list: its column, its operators, and how its value is parsed.

    `parse` raises ValueError, and returns a tuple where any of several values is meant; `expects`
    describes a valid value.
    """

    column: str
    operators: Sequence[str]
    parse: Callable[[str], Any]
    expects: str
    rows: models.Q | None = None
    """Of which rows the column says something: no condition selects any other."""


def text_field(column: str) -> Field:
    return Field(column, _TEXT, str, "a text")


def exact_field(column: str, parse: Callable[[str], Any] = str, expects: str = "a text") -> Field:
    return Field(column, _EQUAL, parse, expects)


def choice_field(
    column: str, values: Mapping[str, Any] | Iterable[str], *, foreign: Iterable[str] = ()
) -> Field:
    """Return a field that takes some values only; a mapping has what the column holds for each.

    `foreign` are values of Run:ai's clients that no row has: they are taken, and find nothing.
    """
    own = dict(values) if isinstance(values, Mapping) else {each: each for each in values}
    accepted = own | {each: each for each in foreign}

    def parse(text: str) -> Any:
        if text not in accepted:
            raise ValueError(text)
        return accepted[text]

    return Field(column, _EQUAL, parse, f"one of {', '.join(filter(None, own))}")


def number_field(column: str) -> Field:
    return Field(column, _ORDERED, _parse_number, "a number")


def whole_number_field(column: str) -> Field:
    """Return a field for a column of whole numbers: it would cut off what follows the point."""
    return Field(column, _ORDERED, _parse_whole_number, "a whole number")


def size_field(column: str) -> Field:
    """Return a field for bytes."""
    return Field(column, _ORDERED, _parse_id, "a whole number of bytes")


def ordered_field(column: str, parse: Callable[[str], Any], expects: str) -> Field:
    return Field(column, _ORDERED, parse, expects)


def moment_field(column: str, rows: models.Q | None = None) -> Field:
    return Field(column, _ORDERED, parse_moment, "a date as in 2026-01-31T12:00:00Z", rows)


def flag_field(column: str) -> Field:
    return Field(column, _EQUAL, _parse_flag, "true or false")


def id_field(column: str) -> Field:
    """Return a field for a row's integer id, which the API shows as text."""
    return Field(column, _EQUAL, _parse_id, "an id")


def uuid_field(column: str) -> Field:
    return Field(column, _EQUAL, UUID, "an id (a UUID)")


def filter_and_search(
    rows: Rows,
    query: ListQuery,
    fields: Mapping[str, Field],
    search_columns: Sequence[str] = ("name",),
) -> Rows:
    """Return the rows that filterBy and search select. Raises Invalid.

    search looks into `search_columns`.
    """
    rows = filter_rows(rows, query, fields)
    if text := query.text("search"):
        rows = rows.filter(
            reduce(or_, (models.Q((f"{column}__icontains", text)) for column in search_columns))
        )
    return rows


def serialize_page(
    rows: models.QuerySet[Any],
    query: ListQuery,
    fields: Mapping[str, Field],
    default: Sequence[str],
    *,
    name: str,
    serialize: Callable[[Any], Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the body of a list: one page of the rows in the requested order.

    `serialize` makes an item of a row. Raises Invalid.
    """
    page, next_offset = query.page(order_rows(rows, query, fields, default))
    return build_list_body(name, [serialize(each) for each in page], next_offset)


def load_page(
    rows: Rows,
    query: ListQuery,
    fields: Mapping[str, Field],
    default: Sequence[str],
    default_limit: int = 50,
) -> tuple[list[Any], int | None]:
    """Return one page of rows that are large, and the next offset. Raises Invalid.

    Their keys are found first: else the database would carry whole rows through its sort.
    """
    ordered = order_rows(rows, query, fields, default)
    keys, next_offset = query.page(ordered.values_list("pk", flat=True), default_limit)
    rows_by_key = {row.pk: row for row in rows.order_by().filter(pk__in=keys)} if keys else {}
    return [rows_by_key[key] for key in keys if key in rows_by_key], next_offset


def filter_rows(rows: Rows, query: ListQuery, fields: Mapping[str, Field]) -> Rows:
    """Return the rows that fulfil every condition of filterBy.

    Raises Invalid with all conditions that cannot be understood.
    """
    problems = []
    for condition in query.filters:
        try:
            rows = _filter_by_condition(rows, condition, fields)
        except ValueError as error:
            problems.append(("filterBy", str(error)))
    if problems:
        raise Invalid(problems)
    return rows


def order_rows(
    rows: Rows, query: ListQuery, fields: Mapping[str, Field], default: Sequence[str]
) -> Rows:
    """Return the rows by sortBy and sortOrder, or by `default` where sortBy is not given."""
    descending = query.choice("sortOrder", ("asc", "desc")) == "desc"
    if not query.text("sortBy"):
        return rows.order_by(*default)
    path = fields[query.choice("sortBy", ("", *fields))].column
    # Where nothing is null, the clause would only keep the database from its indexes.
    nulls_last = _is_nullable(rows, path) or None
    column = models.F(path)
    first = column.desc(nulls_last=nulls_last) if descending else column.asc(nulls_last=nulls_last)
    # The key breaks ties: without it the pages of a list could repeat rows, or skip some.
    return rows.order_by(first, "-pk" if descending else "pk")


def _is_nullable(rows: models.QuerySet[Any], path: str) -> bool:
    """Return whether a column of the rows, or of what they refer to, may be null."""
    model: Any = rows.model
    for name in path.split("__"):
        if name in rows.query.annotations:
            return True
        field = model._meta.pk if name == "pk" else model._meta.get_field(name)
        if field.null:
            return True
        model = field.related_model
    return False


def _filter_by_condition(rows: Rows, condition: str, fields: Mapping[str, Field]) -> Rows:
    match = _CONDITION.fullmatch(condition)
    if match is None:
        raise ValueError(
            f"The filter {condition[:80]!r} is not a field, an operator ({' '.join(_LOOKUPS)}) "
            "and a value."
        )
    name, operator, value = match[1], match[2], match[3].strip()
    field = fields.get(name)
    if field is None:
        raise ValueError(
            f"There is no field {name[:40]} to filter by; there are {', '.join(fields)}."
        )
    if operator not in field.operators:
        raise ValueError(f"The field {name} can be filtered with {' '.join(field.operators)} only.")
    try:
        wanted = field.parse(value)
    except (ValueError, OverflowError):
        raise ValueError(
            f"The filter for {name} expects {field.expects}; it cannot be {value[:80]!r}."
        ) from None
    lookup = "in" if isinstance(wanted, tuple) else _LOOKUPS[operator]
    matching = models.Q((f"{field.column}__{lookup}", wanted))
    if field.rows is not None:
        rows = rows.filter(field.rows)
    return rows.exclude(matching) if operator.startswith("!") else rows.filter(matching)


def _parse_number(value: str) -> Decimal:
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise ValueError(value) from None
    # Compared, not passed to abs(), which raises Overflow for a huge Decimal.
    if not number.is_finite() or not -(10**9) <= number <= 10**9:
        raise ValueError(value)
    return round(number, 6)


def _parse_whole_number(value: str) -> int:
    number = _parse_number(value)
    # Not the rounded one: 0.0000001 is no 0.
    if Decimal(value) != int(number):
        raise ValueError(value)
    return int(number)


def _parse_flag(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError(value)
    return value.lower() == "true"


def _parse_id(value: str) -> int:
    number = parse_number(value)
    if number is None:
        raise ValueError(value)
    return number
