"""Lists of rows: a page by key, never by count or offset, and rows as CSV. What is filtered and how
it looks is the app's.
"""

import base64
import binascii
import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db import models

PAGE_SIZE = 50
MAX_CURSOR_CHARS = 600

Row = TypeVar("Row", bound=models.Model)


@dataclass(frozen=True, slots=True)
class SortOrder:
    """An order of rows in which no two are equal: `keys` as `order_by` takes them, the last one
    unique, none of them null.
    """

    name: str
    keys: tuple[str, ...]

    def reversed_keys(self) -> tuple[str, ...]:
        return tuple(key[1:] if key.startswith("-") else f"-{key}" for key in self.keys)


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows, and the cursors to those around them; "" where there are none."""

    rows: Sequence[Row]
    next: str = ""
    previous: str = ""


def load_page(
    rows: "models.QuerySet[Row]",
    order: SortOrder,
    cursor: str = "",
    size: int = PAGE_SIZE,
    display_rows: "models.QuerySet[Row] | None" = None,
) -> Page[Row]:
    """The rows at a cursor of this order; the first ones for "" and for a cursor that is of another
    order or cannot be read.

    Two queries, whatever the size: the keys of the rows, which an index of the order gives without
    looking at the rows before them, or into the rows; and these rows by their keys. `shown` gives
    what of a row is read (related rows, fields), where `rows` does not.
    """
    place = _parse_cursor(cursor, order, rows.model)
    way, values = place if place is not None else ("next", [])
    keys = order.keys if way == "next" else order.reversed_keys()
    there = rows.filter(_build_after_filter(keys, values)) if values else rows
    found = _load_in_order(
        rows if display_rows is None else display_rows,
        list(there.order_by(*keys).values_list("pk", flat=True)[: size + 1]),
    )
    more, found = len(found) > size, found[:size]
    if way == "next":
        back = _build_cursor(order, found[0], "previous") if found and values else ""
        return Page(
            found, next=_build_cursor(order, found[-1], "next") if more else "", previous=back
        )
    if not found:
        return load_page(rows, order, "", size, display_rows)
    found.reverse()
    return Page(
        found,
        next=_build_cursor(order, found[-1], "next"),
        previous=_build_cursor(order, found[0], "previous") if more else "",
    )


def _load_in_order(rows: "models.QuerySet[Row]", keys: Sequence[Any]) -> list[Row]:
    by_key = {row.pk: row for row in rows.order_by().filter(pk__in=keys)}
    return [by_key[key] for key in keys if key in by_key]


def _build_after_filter(keys: Sequence[str], values: Sequence[Any]) -> models.Q:
    """What comes after these values. The bound on the first key stands for itself, so that an index
    is entered there.
    """
    name, way = (keys[0][1:], "lt") if keys[0].startswith("-") else (keys[0], "gt")
    past = models.Q(**{f"{name}__{way}": values[0]})
    if len(keys) == 1:
        return past
    return models.Q(**{f"{name}__{way}e": values[0]}) & (
        past | _build_after_filter(keys[1:], values[1:])
    )


def _build_cursor(order: SortOrder, row: models.Model, way: str) -> str:
    place = [
        order.name,
        way,
        *(_serialize_value(_get_value(row, key.lstrip("-"))) for key in order.keys),
    ]
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def _get_value(row: Any, path: str) -> Any:
    for name in path.split("__"):
        row = getattr(row, name)
    return row


def _serialize_value(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _parse_cursor(
    cursor: str, order: SortOrder, model: type[models.Model]
) -> tuple[str, list[Any]] | None:
    if not cursor or len(cursor) > MAX_CURSOR_CHARS:
        return None
    try:
        place = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        name, way, *texts = place
        if name != order.name or way not in ("next", "previous") or len(texts) != len(order.keys):
            return None
        fields = [_get_field(model, key.lstrip("-")) for key in order.keys]
        values = [
            field.to_python(text)
            for field, text in zip(fields, texts, strict=True)
            if isinstance(text, str)
        ]
    except (ValueError, TypeError, binascii.Error, ValidationError, FieldDoesNotExist):
        return None
    return (way, values) if len(values) == len(order.keys) and None not in values else None


def _get_field(model: type[models.Model], path: str) -> "models.Field[Any, Any]":
    *parents, last = path.split("__")
    for parent in parents:
        related = model._meta.get_field(parent).related_model
        assert isinstance(related, type)
        model = related
    field = model._meta.get_field(last)
    assert isinstance(field, models.Field)
    return field


def format_csv_line(cells: Iterable[object]) -> str:
    """One line of CSV, with its end. A cell that a spreadsheet would take for a formula is made
    text.
    """
    line = io.StringIO()
    csv.writer(line).writerow(
        [_escape_formula(str("" if cell is None else cell)) for cell in cells]
    )
    return line.getvalue()


def _escape_formula(text: str) -> str:
    return (
        f"'{text}"
        if text.lstrip(" ")[:1] in ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%") and text
        else text
    )
