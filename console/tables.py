"""Tables of rows: columns, search, filters, order, pages by key, chosen columns, CSV.

A view says what the columns are and hands over the rows that the person may see; `render_table`
does the rest, with the same few queries however many rows there are. The state of a table is all in
its address. An unknown column, filter or order in an address means the default.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.http import HttpRequest, HttpResponse
from django.utils.dateparse import parse_date

from console import pagination
from console.http import render_page
from console.templatetags.muster import render_time_distance

MAX_CSV_ROWS = 20_000
"""Rows of one file, as in Run:ai."""
CSV_CHUNK_ROWS = 500
MAX_SEARCH_CHARS = 100
LIST_TEMPLATE = "parts/_list.html"

Rows = models.QuerySet[Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    `text` returns a row's value for CSV, and for the page too where neither `template` (which gets
    `row`) nor `render` is set. `order` are the keys by which it is sorted, as `order_by` takes them
    and none of them nullable; () is not sortable.
    """

    name: str
    title: str
    text: Callable[[Any], object]
    template: str = ""
    order: tuple[str, ...] = ()
    is_number: bool = False
    is_extra: bool = False
    """Shown only to those who chose it."""
    related: tuple[str, ...] = ()
    """Names for `prefetch_related`, where the column is shown, and for CSV."""
    render: Callable[[Any], str] | None = None
    """Returns the cell's HTML, instead of a template: a table shows it fifty times."""


def build_time_column(
    name: str, title: str, field: str, *, is_sortable: bool = False, is_extra: bool = False
) -> Column:
    """Build a column of a row's time: its distance from now on the page, ISO 8601 in CSV."""

    def text(row: Any) -> str:
        moment = getattr(row, field)
        return "" if moment is None else str(moment.isoformat())

    return Column(
        name,
        title,
        text,
        render=lambda row: render_time_distance(getattr(row, field)),
        order=(field,) if is_sortable else (),
        is_extra=is_extra,
    )


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter by one value.

    `choices` returns the (value, words) pairs, once a page; `apply` narrows the rows by one value.
    Of another `kind` it is typed: "date" (a day, as 2026-01-31) or "text"; it has no choices then.
    """

    name: str
    title: str
    choices: Callable[[HttpRequest], Sequence[tuple[str, str]]]
    apply: Callable[[Rows, str], Rows]
    kind: str = "choice"

    def accepts(self, request: HttpRequest, value: str) -> bool:
        """Return whether rows can be narrowed by this value."""
        if self.kind == "date":
            return _is_day(value)
        if self.kind == "text":
            return len(value) <= MAX_SEARCH_CHARS and "\x00" not in value
        return value in {key for key, _ in self.choices(request)}


@dataclass(frozen=True, slots=True)
class Table:
    """The definition of a table.

    `title` names it, `search` are the lookups for the search text, `sort` the default order
    ("-name").
    """

    title: str
    columns: tuple[Column, ...]
    search: tuple[str, ...] = ("name__icontains",)
    search_words: str = "Search by name"
    filters: tuple[Filter, ...] = ()
    sort: str = "name"
    actions: str = ""
    """A template for the last column that shows what can be done to a `row`; "" has none."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of a table, as its template shows it."""

    table: Table
    rows: Sequence[Any]
    columns: Sequence[Column]
    sort: str
    search: str
    filters: Sequence[tuple[Filter, str, Sequence[tuple[str, str]]]]
    """Each filter with the chosen value and the possible ones."""
    next: str
    previous: str

    @property
    def is_filtered(self) -> bool:
        """Whether a search or a filter leaves rows out."""
        return bool(self.search or any(value for _, value, _ in self.filters))

    @property
    def column_names(self) -> frozenset[str]:
        """The names of the columns that are shown."""
        return frozenset(column.name for column in self.columns)


def render_table(
    request: HttpRequest,
    rows: Rows,
    table: Table,
    template: str,
    context: Mapping[str, Any],
    *,
    file: str,
    prepare: Callable[[Sequence[Any]], None] | None = None,
) -> HttpResponse:
    """Render the table as a page, as a part for htmx, or as CSV (`?format=csv`) called `file`.

    Templates find it as `listing`. `prepare` gets the rows that are shown, some at a time, to put
    on them what the columns need beside the row, with one query for all.
    """
    search, chosen, filtered_rows = _filter_rows(request, rows, table)
    order = _parse_order(request, table, rows.model)
    if request.GET.get("format") == "csv":
        return _render_csv(
            _prefetch_related(filtered_rows, table.columns).order_by(*order.keys),
            table,
            file,
            prepare,
        )
    columns = _parse_columns(request, table)
    listed_page = pagination.load_page(
        _prefetch_related(filtered_rows, columns), order, request.GET.get("cursor", "")
    )
    if prepare:
        prepare(listed_page.rows)
    filters = [(each, chosen.get(each.name, ""), each.choices(request)) for each in table.filters]
    listing = Listing(
        table,
        listed_page.rows,
        columns,
        order.name,
        search,
        filters,
        listed_page.next,
        listed_page.previous,
    )
    return render_page(request, template, LIST_TEMPLATE, {"listing": listing, **context})


def filter_rows(request: HttpRequest, rows: Rows, table: Table) -> Rows:
    """Return the rows that the address asks for, in its order, to answer in another form."""
    return _filter_rows(request, rows, table)[2].order_by(
        *_parse_order(request, table, rows.model).keys
    )


def _is_day(text: str) -> bool:
    try:
        return parse_date(text) is not None
    except ValueError:
        return False


def _filter_rows(
    request: HttpRequest, rows: Rows, table: Table
) -> tuple[str, dict[str, str], Rows]:
    search = (
        request.GET.get("q", "").replace("\x00", "").strip()[:MAX_SEARCH_CHARS]
        if table.search
        else ""
    )
    if search:
        matches = models.Q()
        for lookup in table.search:
            matches |= models.Q((lookup, search))
        rows = rows.filter(matches)
    chosen: dict[str, str] = {}
    for table_filter in table.filters:
        value = request.GET.get(table_filter.name, "")
        if value and table_filter.accepts(request, value):
            chosen[table_filter.name] = value
            rows = table_filter.apply(rows, value)
    return search, chosen, rows


def _parse_order(
    request: HttpRequest, table: Table, model: type[models.Model]
) -> pagination.SortOrder:
    sortable = {column.name: column.order for column in table.columns if column.order}
    requested = request.GET.get("sort", "")
    name = (
        requested
        if requested.lstrip("-") in sortable and not requested.startswith("--")
        else table.sort
    )
    keys, unique = sortable[name.lstrip("-")], model._meta.pk.name
    if name.startswith("-"):
        return pagination.SortOrder(
            name, (*pagination.SortOrder(name, keys).reversed_keys(), f"-{unique}")
        )
    return pagination.SortOrder(name, (*keys, unique))


def _parse_columns(request: HttpRequest, table: Table) -> Sequence[Column]:
    requested = set(request.GET.getlist("column"))
    chosen = [
        column
        for column in table.columns
        if (column.name in requested if requested else not column.is_extra)
    ]
    return [column for column in table.columns if column in chosen or column is table.columns[0]]


def _prefetch_related(rows: Rows, columns: Iterable[Column]) -> Rows:
    return rows.prefetch_related(
        *dict.fromkeys(name for column in columns for name in column.related)
    )


def _render_csv(
    rows: Rows, table: Table, file: str, prepare: Callable[[Sequence[Any]], None] | None
) -> HttpResponse:
    def list_lines() -> Iterator[str]:
        yield pagination.format_csv_line(column.title for column in table.columns)
        iterator = rows[:MAX_CSV_ROWS].iterator(chunk_size=CSV_CHUNK_ROWS)
        while chunk := list(itertools.islice(iterator, CSV_CHUNK_ROWS)):
            if prepare:
                prepare(chunk)
            for row in chunk:
                yield pagination.format_csv_line(column.text(row) for column in table.columns)

    # Read here: a stream would leave its reading to a moment when the connection may be somebody
    # else's.
    answer = HttpResponse("".join(list_lines()), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{file}.csv"'
    return answer
