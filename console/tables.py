"""Tables of rows: columns, search, filters, order, pages by key, chosen columns, CSV.

A view says what the columns are and hands over the rows that the person may see; `render_table`
does the rest, with the same few queries however many rows there are. The state of a table is all in
its address. An unknown column, filter or order in an address means the default; a file is refused
for a value that its filter does not know.

A table whose page has more than its rows calls the parts of `render_table` by itself:
`build_listing`, `render_listing` and `render_csv`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from console import pagination
from console.errors import UserError
from console.http import render_page
from console.moments import format_moment
from console.streams import build_file_response
from console.table_filters import Choices, Filter, Rows, Selection
from console.templatetags.muster import render_time_distance

FILE_CHUNK_ROWS = 500
"""Rows of a file that are in memory at once."""
COOKIE_SECONDS = 365 * 24 * 3600
MAX_SEARCH_CHARS = 100
MAX_UNUSED = 5
"""Values of filters that a page says it could not use."""
LIST_TEMPLATE = "parts/_list.html"

Prepare = Callable[[Sequence[Any]], None]
"""Puts on rows what the columns need beside them, with one query for all."""


class Width(StrEnum):
    """How wide the cells of a column may be: the class that the style sheet has for it."""

    CONTENT = ""
    ONE_LINE = "mu-one-line"
    CHECKBOX = "mu-checkbox"
    AT_LEAST_96 = "mu-at-least-96"
    AT_LEAST_184 = "mu-at-least-184"
    AT_MOST_180 = "mu-at-most-180"
    AT_MOST_340 = "mu-at-most-340"


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column of a table.

    `text` returns a row's value for CSV, and for the page too where neither `template` (which gets
    `row`) nor `render` is set; there a number has its thousands apart. `order` are the keys by
    which it is sorted, as `order_by` takes them and none of them nullable; () is not sortable.
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
    width: Width = Width.CONTENT
    is_wide_only: bool = False
    """Left out where the window is narrow."""
    csv: Mapping[str, Callable[[Any], object]] | None = None
    """The cells of CSV by their titles, where these are not just `title` and `text`."""
    fields: tuple[str, ...] = ()
    """What of the model it reads, for `Table.select_fields`."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """What it reads of related rows: their paths by the names that it reads them by.

    It costs less than a related object for each row, which `fields` make.
    """

    @property
    def css(self) -> str:
        """The classes of its cells and of its head."""
        number, wide = "mu-number" * self.is_number, "mu-wide-only" * self.is_wide_only
        return " ".join(name for name in (number, self.width, wide) if name)

    @property
    def csv_cells(self) -> Mapping[str, Callable[[Any], object]]:
        """What CSV has of it, by title."""
        return {self.title: self.text} if self.csv is None else self.csv


def build_time_column(
    name: str,
    title: str,
    field: str,
    *,
    is_sortable: bool = False,
    is_extra: bool = False,
) -> Column:
    """Build a column of a row's time: its distance from now on the page, ISO 8601 in CSV."""

    def text(row: Any) -> str:
        moment = getattr(row, field)
        return format_moment(moment) or ""

    return Column(
        name,
        title,
        text,
        render=lambda row: render_time_distance(getattr(row, field)),
        order=(field,) if is_sortable else (),
        is_extra=is_extra,
        fields=(field,),
    )


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
    cookie: str = ""
    """The cookie that remembers the chosen columns; "" where the address alone has them."""

    def select_rows(self, rows: Rows, selection: Selection) -> Rows:
        """Return the rows that fit the search and the filters."""
        if selection.search:
            matches = models.Q()
            for lookup in self.search:
                matches |= models.Q((lookup, selection.search))
            rows = rows.filter(matches)
        for each in self.filters:
            rows = each.narrow(rows, selection.find_values(each.name))
        return rows

    def select_fields(self, rows: Rows, *more: str) -> Rows:
        """Return the same rows with just what the columns read of them, and these fields."""
        fields = {*more, *(name for column in self.columns for name in column.fields)}
        related = {path.rpartition("__")[0] for path in fields if "__" in path}
        return rows.select_related(*sorted(related)).only(*fields)

    def annotate_rows(self, rows: Rows) -> Rows:
        """Return the same rows with what the columns read of related ones.

        The query for the keys of a page does without it: a join would keep it from its index.
        """
        paths = [path for column in self.columns for path in column.annotations.items()]
        annotated: Rows = rows.annotate(**{name: models.F(path) for name, path in paths})
        return annotated


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of a table, as its template shows it."""

    table: Table
    rows: Sequence[Any]
    columns: Sequence[Column]
    sort: str
    selection: Selection = field(default_factory=Selection)
    filters: Sequence[tuple[Filter, str | tuple[str, ...], Choices, Sequence[str]]] = ()
    """Each filter of the bar with the chosen value, or values, the possible ones, and suggestions
    for a typed one.
    """
    unused_filters: Sequence[tuple[str, str]] = ()
    """The first values of filters in the address that there are not, each with its filter's title.

    They narrow nothing: the page says so.
    """
    next: str = ""
    previous: str = ""
    is_left_empty: bool = False
    """Whether it is a later page, and all that it had has left the list."""

    @property
    def is_filtered(self) -> bool:
        """Whether a search or a filter leaves rows out."""
        return bool(self.selection.search or any(value for _, value, *_ in self.filters))

    @property
    def heads(self) -> Sequence[tuple[Column, str, str]]:
        """The columns that are shown, each with its order and the one that a click asks for.

        The former is "ascending", "descending" or "" as aria-sort says it, the latter is "" where
        the rows cannot be sorted by the column.
        """
        return [(column, *self._describe_order(column)) for column in self.columns]

    def _describe_order(self, column: Column) -> tuple[str, str]:
        if not column.order:
            return "", ""
        # The column of the default order is first sorted as by default: the newest come first.
        name, default = column.name, self.table.sort
        first = default if default.lstrip("-") == name else name
        second = name if first.startswith("-") else f"-{name}"
        direction = {name: "ascending", f"-{name}": "descending"}.get(self.sort, "")
        return direction, second if self.sort == first else first


def render_table(
    request: HttpRequest,
    rows: Rows,
    table: Table,
    template: str,
    context: Mapping[str, Any],
    *,
    file: str,
    prepare: Prepare | None = None,
) -> HttpResponseBase:
    """Render the table as a page, as a part for htmx, or as CSV (`?format=csv`) called `file`.

    Templates find it as `listing`. `prepare` gets the rows that are shown, some at a time.
    """
    if request.GET.get("format") == "csv":
        return render_csv(request, rows, table, file, prepare)
    listing = build_listing(request, rows, table, prepare)
    return render_listing(request, listing, template, LIST_TEMPLATE, context)


def build_listing(
    request: HttpRequest, rows: Rows, table: Table, prepare: Prepare | None = None
) -> Listing:
    """Load the page of the table that the address asks for."""
    selection, order = parse_selection(request, table), _parse_order(request, table, rows.model)
    columns = _parse_columns(request, table)
    listed_page = pagination.load_page(
        _prefetch_related(table.select_rows(rows, selection), columns),
        order,
        request.GET.get("cursor") or request.GET.get("page", ""),
        select=table.annotate_rows,
    )
    if prepare:
        prepare(listed_page.rows)
    return Listing(
        table,
        listed_page.rows,
        columns,
        order.name,
        selection,
        [
            (
                each,
                _get_shown_value(each, selection),
                *each.offer(request, selection.find_values(each.name)),
            )
            for each in table.filters
            if each.kind != "view"
        ],
        _list_unused(request, table, selection),
        listed_page.next,
        listed_page.previous,
        is_left_empty=listed_page.is_later and not listed_page.rows,
    )


def render_listing(
    request: HttpRequest,
    listing: Listing,
    template: str,
    part: str,
    context: Mapping[str, Any],
    *,
    remember_columns: bool = True,
) -> HttpResponse:
    """Render a page of a table, or its part for htmx, and remember the columns that were chosen."""
    answer = render_page(request, template, part, {"listing": listing, **context})
    if remember_columns and listing.table.cookie and _get_columns_parameter(request):
        answer.set_cookie(
            listing.table.cookie,
            ",".join(column.name for column in listing.columns),
            max_age=COOKIE_SECONDS,
            samesite="Lax",
            httponly=True,
            secure=settings.SESSION_COOKIE_SECURE,
        )
    return answer


def render_csv(
    request: HttpRequest, rows: Rows, table: Table, file: str, prepare: Prepare | None = None
) -> HttpResponseBase:
    """Render all rows that the address asks for as CSV, streamed if many.

    The columns are those that the address chooses, else all.
    """
    columns = table.columns
    if _get_columns_parameter(request):
        columns = tuple(_parse_columns(request, table))
    cells = [cell for column in columns for cell in column.csv_cells.items()]
    chunks = iterate_chunks(request, _prefetch_related(rows, columns), table)

    def render_pieces() -> Iterator[str]:
        lines = [pagination.format_csv_line(title for title, _ in cells)]
        for chunk in chunks:
            if prepare:
                prepare(chunk)
            lines += [pagination.format_csv_line(text(row) for _, text in cells) for row in chunk]
            yield "".join(lines)
            lines.clear()

    return build_file_response(render_pieces(), f"{file}.csv", "text/csv; charset=utf-8")


def iterate_chunks(request: HttpRequest, rows: Rows, table: Table) -> Iterator[Sequence[Any]]:
    """Return all rows that the address asks for, in its order, some at a time: for a file.

    Raises UserError for values that cannot be filtered by: a page says so beside its rows, which a
    file cannot.
    """
    selection = parse_selection(request, table)
    if unused := _list_unused(request, table, selection):
        words = ", ".join(f"{title} “{value}”" for title, value in unused)
        raise UserError(
            f"{words} cannot be filtered by: there is no such value. The file would have rows that "
            "nobody asked for, so it is not made: correct the address.",
            status=400,
        )
    selected = table.select_rows(rows, selection)
    order = _parse_order(request, table, rows.model)
    return pagination.iterate_chunks(selected, order, FILE_CHUNK_ROWS, select=table.annotate_rows)


def build_query(request: HttpRequest, table: Table) -> str:
    """Build the query of an address that shows the same columns, filters and order to anybody."""
    return urlencode(
        [
            *parse_selection(request, table).list_parameters(),
            ("sort", _parse_sort(request, table)),
            ("column", ",".join(column.name for column in _parse_columns(request, table))),
        ]
    )


def parse_selection(request: HttpRequest, table: Table) -> Selection:
    """Parse the search and the filters of the address, without what the table does not have."""
    search = request.GET.get("q", "").replace("\x00", "").strip() if table.search else ""
    values = ((each.name, each.parse_values(request)) for each in table.filters)
    return Selection(search[:MAX_SEARCH_CHARS], tuple(pair for pair in values if pair[1]))


def _list_unused(request: HttpRequest, table: Table, selection: Selection) -> list[tuple[str, str]]:
    unused = [
        (each.title, value[:MAX_SEARCH_CHARS])
        for each in table.filters
        for value in each.list_unused(request, selection.find_values(each.name))
    ]
    return unused[:MAX_UNUSED]


def _get_columns_parameter(request: HttpRequest) -> str:
    """Return the names of the chosen columns, which the address may have one by one."""
    return ",".join([*request.GET.getlist("column"), *request.GET.getlist("cols")])


def _get_shown_value(table_filter: Filter, selection: Selection) -> str | tuple[str, ...]:
    values = selection.find_values(table_filter.name)
    return values if table_filter.kind == "choices" else next(iter(values), "")


def _parse_order(
    request: HttpRequest, table: Table, model: type[models.Model]
) -> pagination.SortOrder:
    name = _parse_sort(request, table)
    [keys] = [column.order for column in table.columns if column.name == name.lstrip("-")]
    return pagination.build_order(name, keys, model)


def _parse_sort(request: HttpRequest, table: Table) -> str:
    requested = request.GET.get("sort", "")
    sortable = {column.name for column in table.columns if column.order}
    if requested.lstrip("-") in sortable and not requested.startswith("--"):
        return requested
    return table.sort


def _parse_columns(request: HttpRequest, table: Table) -> Sequence[Column]:
    remembered = request.COOKIES.get(table.cookie, "") if table.cookie else ""
    names = {column.name for column in table.columns}
    requested = names.intersection((_get_columns_parameter(request) or remembered).split(","))
    return [
        column
        for column in table.columns
        if column is table.columns[0]
        or (column.name in requested if requested else not column.is_extra)
    ]


def _prefetch_related(rows: Rows, columns: Iterable[Column]) -> Rows:
    return rows.prefetch_related(
        *dict.fromkeys(name for column in columns for name in column.related)
    )
