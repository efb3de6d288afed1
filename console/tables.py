"""One recipe for tables of rows: columns, search, filters, order, pages by key, chosen columns,
CSV. All of it stands in the address.

A view says what the columns are and hands over the rows that the person may see; `answer` does the
rest, with the same few queries however many rows there are. What it cannot do it leaves out: an
unknown column, filter or order in an address means the default.
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
from console.templatetags.muster import when

MAX_CSV_ROWS = 20_000
"""Rows of one file, as Run:ai has it."""
CSV_CHUNK_ROWS = 500
MAX_SEARCH_CHARS = 100
LIST_TEMPLATE = "parts/_list.html"

Rows = models.QuerySet[Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `text` is what CSV has of a row, and the page too where neither `template` (which
    gets `row`) nor `shown` shows it.

    `order` are the keys by which it is sorted, as `order_by` takes them and none of them null; ()
    is not sorted.
    """

    name: str
    title: str
    text: Callable[[Any], object]
    template: str = ""
    order: tuple[str, ...] = ()
    is_number: bool = False
    is_extra: bool = False
    """Shown only to who chose it."""
    related: tuple[str, ...] = ()
    """What `prefetch_related` has to fetch for it, where it is shown, and for CSV."""
    render: Callable[[Any], str] | None = None
    """What is one filter or tag of a row, and no template then: a table shows it fifty times."""


def build_time_column(
    name: str, title: str, field: str, *, is_sortable: bool = False, is_extra: bool = False
) -> Column:
    """A column of a row's time: its distance from now on the page, ISO 8601 in CSV."""

    def text(row: Any) -> str:
        there = getattr(row, field)
        return "" if there is None else str(there.isoformat())

    return Column(
        name,
        title,
        text,
        render=lambda row: when(getattr(row, field)),
        order=(field,) if is_sortable else (),
        is_extra=is_extra,
    )


@dataclass(frozen=True, slots=True)
class Filter:
    """A choice of one value among few: `choices` are asked for once a page, as (value, words);
    `apply` narrows by one of them.

    Of another `kind` it is typed: "date" (a day, as 2026-01-31) or "text"; it has no choices then.
    """

    name: str
    title: str
    choices: Callable[[HttpRequest], Sequence[tuple[str, str]]]
    apply: Callable[[Rows, str], Rows]
    kind: str = "choice"

    def accepts(self, request: HttpRequest, value: str) -> bool:
        """Whether it can be narrowed by this value."""
        if self.kind == "date":
            return _is_day(value)
        if self.kind == "text":
            return len(value) <= MAX_SEARCH_CHARS and "\x00" not in value
        return value in {key for key, _ in self.choices(request)}


@dataclass(frozen=True, slots=True)
class Table:
    """What a table is: `title` names it, `search` are the lookups that one text is sought in,
    `sort` the default order ("-name").
    """

    title: str
    columns: tuple[Column, ...]
    search: tuple[str, ...] = ("name__icontains",)
    search_words: str = "Search by name"
    filters: tuple[Filter, ...] = ()
    sort: str = "name"
    actions: str = ""
    """A template that shows what can be done to a `row`, in the last column; "" has none."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of a table as its template shows it."""

    table: Table
    rows: Sequence[Any]
    columns: Sequence[Column]
    sort: str
    search: str
    filters: Sequence[tuple[Filter, str, Sequence[tuple[str, str]]]]
    """Each with the value that is chosen and those that can be."""
    next: str
    previous: str

    @property
    def is_filtered(self) -> bool:
        """Whether something is left out."""
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
    """The table as a page, as a part where htmx asks, or as CSV (`?format=csv`), called `file`.
    Templates find it as `listing`.

    `prepare` gets the rows that are shown, some at a time, to put on them what the columns need
    beside the row: it asks for all at once.
    """
    search, chosen, found = _filter_rows(request, rows, table)
    order = _parse_order(request, table, rows.model)
    if request.GET.get("format") == "csv":
        return _render_csv(
            _prefetch_related(found, table.columns).order_by(*order.keys), table, file, prepare
        )
    columns = _parse_columns(request, table)
    part = pagination.load_page(
        _prefetch_related(found, columns), order, request.GET.get("cursor", "")
    )
    if prepare:
        prepare(part.rows)
    filters = [(each, chosen.get(each.name, ""), each.choices(request)) for each in table.filters]
    listing = Listing(
        table, part.rows, columns, order.name, search, filters, part.next, part.previous
    )
    return render_page(request, template, LIST_TEMPLATE, {"listing": listing, **context})


def filter_rows(request: HttpRequest, rows: Rows, table: Table) -> Rows:
    """The rows that the address asks for, in its order: for what answers with them in another
    form.
    """
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
        wanted = models.Q()
        for lookup in table.search:
            wanted |= models.Q((lookup, search))
        rows = rows.filter(wanted)
    chosen: dict[str, str] = {}
    for each in table.filters:
        value = request.GET.get(each.name, "")
        if value and each.accepts(request, value):
            chosen[each.name] = value
            rows = each.apply(rows, value)
    return search, chosen, rows


def _parse_order(
    request: HttpRequest, table: Table, model: type[models.Model]
) -> pagination.SortOrder:
    sortable = {column.name: column.order for column in table.columns if column.order}
    wanted = request.GET.get("sort", "")
    name = wanted if wanted.lstrip("-") in sortable and not wanted.startswith("--") else table.sort
    keys, unique = sortable[name.lstrip("-")], model._meta.pk.name
    if name.startswith("-"):
        return pagination.SortOrder(
            name, (*pagination.SortOrder(name, keys).reversed_keys(), f"-{unique}")
        )
    return pagination.SortOrder(name, (*keys, unique))


def _parse_columns(request: HttpRequest, table: Table) -> Sequence[Column]:
    wanted = set(request.GET.getlist("column"))
    shown = [
        column
        for column in table.columns
        if (column.name in wanted if wanted else not column.is_extra)
    ]
    return [column for column in table.columns if column in shown or column is table.columns[0]]


def _prefetch_related(rows: Rows, columns: Iterable[Column]) -> Rows:
    return rows.prefetch_related(
        *dict.fromkeys(name for column in columns for name in column.related)
    )


def _render_csv(
    rows: Rows, table: Table, file: str, prepare: Callable[[Sequence[Any]], None] | None
) -> HttpResponse:
    def lines() -> Iterator[str]:
        yield pagination.format_csv_line(column.title for column in table.columns)
        found = rows[:MAX_CSV_ROWS].iterator(chunk_size=CSV_CHUNK_ROWS)
        while some := list(itertools.islice(found, CSV_CHUNK_ROWS)):
            if prepare:
                prepare(some)
            for row in some:
                yield pagination.format_csv_line(column.text(row) for column in table.columns)

    # Read here: a stream would leave its reading to a moment when the connection may be somebody
    # else's.
    answer = HttpResponse("".join(lines()), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{file}.csv"'
    return answer
