"""Keyset pagination of lists: pages by key, never by count or offset; and lines of CSV.

Filters and looks of a list are up to its app.
"""

import base64
import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db import models
from django.utils.timezone import make_aware

PAGE_SIZE = 50
MAX_CURSOR_CHARS = 4000
"""Characters of a cursor. The longest sort key, an image, has 512: 2 KiB of UTF-8, of which base64
makes 2731 characters. Proxies take addresses of 8 KiB.
"""

Row = TypeVar("Row", bound=models.Model)


@dataclass(frozen=True, slots=True)
class SortOrder:
    """An order of rows in which no two are equal.

    `keys` are as `order_by` takes them: the last one unique, none of them nullable.
    """

    name: str
    keys: tuple[str, ...]

    def reversed_keys(self) -> tuple[str, ...]:
        return tuple(key[1:] if key.startswith("-") else f"-{key}" for key in self.keys)


def build_order(name: str, keys: tuple[str, ...], model: type[models.Model]) -> SortOrder:
    """Build the order by these keys, the other way round where its name begins with "-".

    The key that makes it unique goes the way of the last one, as the indexes do.
    """
    unique = f"-{model._meta.pk.name}" if keys[-1].startswith("-") else model._meta.pk.name
    order = SortOrder(name, (*keys, unique))
    return SortOrder(name, order.reversed_keys()) if name.startswith("-") else order


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Some rows, and the cursors of the pages before and after; "" where there is none."""

    rows: Sequence[Row]
    next: str = ""
    previous: str = ""
    is_later: bool = False
    """Whether these are rows after a cursor, and not the first ones."""


def _select_same(rows: "models.QuerySet[Row]") -> "models.QuerySet[Row]":
    return rows


def load_page(
    rows: "models.QuerySet[Row]",
    order: SortOrder,
    cursor: str = "",
    size: int = PAGE_SIZE,
    *,
    select: "Callable[[models.QuerySet[Row]], models.QuerySet[Row]]" = _select_same,
) -> Page[Row]:
    """Load the rows at a cursor of this order.

    The first rows for "" and for a cursor of another order or one that cannot be read. Two queries,
    whatever the size: the keys of the rows, which an index of the order gives without reading the
    rows before them; and these rows by their keys, with what `select` adds to them.
    """
    position = _parse_cursor(cursor, order, rows)
    direction, values = position if position is not None else ("next", [])
    keys = order.keys if direction == "next" else order.reversed_keys()
    candidates = rows.filter(_build_after_filter(keys, values)) if values else rows
    # One key more than the page has, to know whether there is a next page without counting.
    row_keys = list(candidates.order_by(*keys).values_list("pk", flat=True)[: size + 1])
    page_rows = _load_in_order(select(rows), row_keys[:size])
    # A row may have left the list between the two queries; all of them, too.
    has_more = bool(page_rows) and len(row_keys) > size
    if direction == "next":
        previous_cursor = (
            _build_cursor(order, page_rows[0], "previous") if page_rows and values else ""
        )
        return Page(
            page_rows,
            next=_build_cursor(order, page_rows[-1], "next") if has_more else "",
            previous=previous_cursor,
            is_later=bool(values),
        )
    if not page_rows:
        return load_page(rows, order, "", size, select=select)
    page_rows.reverse()
    return Page(
        page_rows,
        next=_build_cursor(order, page_rows[-1], "next"),
        previous=_build_cursor(order, page_rows[0], "previous") if has_more else "",
    )


def iterate_chunks(
    rows: "models.QuerySet[Row]",
    order: SortOrder,
    size: int,
    *,
    select: "Callable[[models.QuerySet[Row]], models.QuerySet[Row]]" = _select_same,
) -> Iterator[Sequence[Row]]:
    """Yield all rows in this order, `size` at a time; the last key of the order is the primary one.

    Two queries each, which cost the same at any place: the rows after the last key. A row that
    changes its place meanwhile may be left out or come twice.
    """
    names = [key.lstrip("-") for key in order.keys]
    candidates = rows
    while True:
        keys = list(candidates.order_by(*order.keys).values_list(*names)[:size])
        yield _load_in_order(select(rows), [each[-1] for each in keys])
        if len(keys) < size:
            return
        candidates = rows.filter(_build_after_filter(order.keys, keys[-1]))


def _load_in_order(rows: "models.QuerySet[Row]", keys: Sequence[Any]) -> list[Row]:
    by_key = {row.pk: row for row in rows.order_by().filter(pk__in=keys)}
    return [by_key[key] for key in keys if key in by_key]


def _build_after_filter(keys: Sequence[str], values: Sequence[Any]) -> models.Q:
    """Build the filter for rows after these values.

    The bound on the first key stands for itself, so that an index is entered there.
    """
    name, operator = (keys[0][1:], "lt") if keys[0].startswith("-") else (keys[0], "gt")
    first_key_after = models.Q(**{f"{name}__{operator}": values[0]})
    if len(keys) == 1:
        return first_key_after
    return models.Q(**{f"{name}__{operator}e": values[0]}) & (
        first_key_after | _build_after_filter(keys[1:], values[1:])
    )


def _build_cursor(order: SortOrder, row: models.Model, direction: str) -> str:
    content = [
        order.name,
        direction,
        *(_serialize_value(_get_value(row, key.lstrip("-"))) for key in order.keys),
    ]
    return (
        base64.urlsafe_b64encode(json.dumps(content, ensure_ascii=False).encode())
        .decode()
        .rstrip("=")
    )


def _get_value(row: Any, path: str) -> Any:
    for name in path.split("__"):
        row = getattr(row, name)
    return row


def _serialize_value(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _parse_cursor(
    cursor: str, order: SortOrder, rows: "models.QuerySet[Any]"
) -> tuple[str, list[Any]] | None:
    if not cursor or len(cursor) > MAX_CURSOR_CHARS:
        return None
    try:
        content = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        name, direction, *texts = content
        if (
            name != order.name
            or direction not in ("next", "previous")
            or len(texts) != len(order.keys)
        ):
            return None
        fields = [_get_field(rows, key.lstrip("-")) for key in order.keys]
        values = [
            _parse_value(field, text)
            for field, text in zip(fields, texts, strict=True)
            if isinstance(text, str)
        ]
    except (ValueError, TypeError, OverflowError, ValidationError, FieldDoesNotExist):
        return None
    return (direction, values) if len(values) == len(order.keys) and None not in values else None


def _parse_value(field: "models.Field[Any, Any]", text: str) -> Any:
    """Return the value of a field in a cursor, which anybody may have written.

    Raises ValueError, OverflowError or ValidationError for what no database takes.
    """
    if "\x00" in text:
        raise ValueError("a null is in no column")
    text.encode()
    value = field.to_python(text)
    if isinstance(value, datetime):
        # Databases compare in UTC, which the first and last moments of all may not have.
        return (value if value.tzinfo else make_aware(value, UTC)).astimezone(UTC)
    return value


def _get_field(rows: "models.QuerySet[Any]", path: str) -> "models.Field[Any, Any]":
    """Return the field of a key: of the rows, of what they refer to, or of what is annotated."""
    if path in rows.query.annotations:
        annotated: models.Field[Any, Any] = rows.query.annotations[path].output_field
        return annotated
    model: type[models.Model] = rows.model
    *parents, last = path.split("__")
    for parent in parents:
        related = model._meta.get_field(parent).related_model
        assert isinstance(related, type)
        model = related
    field = model._meta.get_field(last)
    assert isinstance(field, models.Field)
    return field


def format_csv_line(cells: Iterable[object]) -> str:
    """Return one line of CSV with its end.

    A cell that a spreadsheet would take for a formula is made text.
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
