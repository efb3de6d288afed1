"""The pages of GPU hours: of all projects that the reader may see, and of one."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from django.db.models import Min, QuerySet
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console import pagination
from console.http import build_empty_state, render_page
from console.streams import build_file_response
from console.tables import LIST_TEMPLATE, Listing
from console.texts import parse_number
from projects import access
from projects.http import Request
from projects.models import Project
from projects.permissions import Entity, Verb
from projects.scopes import project_scope
from workloads.ledger import WANTED, Month, get_month, parse_month, to_hours
from workloads.models import LedgerBookmark, LedgerEntry
from workloads.overview import ledger_bars
from workloads.queries import ledger
from workloads.queries.ledger import Entries, Grouping, LedgerGroup
from workloads.views.ledger_table import TITLES, build_table

MOST_BARS = 10
MOST_MONTHS = 60
"""Months that are offered."""
MOST_OFFSET = 100_000


@require_safe
@never_cache
def usage(request: Request) -> HttpResponseBase:
    """Show what became of the GPU hours of all projects whose workloads the reader may see."""
    access.require_anywhere(request.user, Verb.VIEW, Entity.WORKLOADS)
    entries = LedgerEntry.objects.visible_to(request.user)
    projects = Project.objects.visible_to(request.user)
    context = {"heading": "GPU hours", "known_until": _find_known_until(projects)}
    return _render_usage(request, entries, tuple(Grouping), context)


@require_safe
@never_cache
def project_usage(request: Request, pk: int) -> HttpResponseBase:
    """Show what became of the GPU hours of one project."""
    project = get_object_or_404(Project.objects.visible_to(request.user), pk=pk)
    access.require(request.user, Verb.VIEW, Entity.WORKLOADS, project_scope(project))
    entries = LedgerEntry.objects.filter(project=project.pk)
    groupings = (Grouping.USER, Grouping.WORKLOAD, Grouping.DAY)
    context = {
        "heading": f"GPU hours of {project.name}",
        "project": project,
        "known_until": _find_known_until(Project.objects.filter(pk=project.pk)),
    }
    return _render_usage(request, entries, groupings, context)


def _find_known_until(projects: QuerySet[Project]) -> datetime | None:
    """Return up to when all clusters of some projects are counted; None before the first."""
    bookmarks = LedgerBookmark.objects.filter(
        cluster__removed_at=None, cluster__in=projects.order_by().values("cluster")
    )
    known_until: datetime | None = bookmarks.aggregate(at=Min("until"))["at"]
    return known_until


def _render_usage(
    request: Request,
    entries: Entries,
    groupings: Sequence[Grouping],
    context: Mapping[str, Any],
) -> HttpResponseBase:
    today = datetime.now(UTC).date()
    month = parse_month(request.GET.get("month", "")) or get_month(today)
    chosen = request.GET.get("by", "")
    grouping = next((each for each in groupings if each == chosen), groupings[0])
    sort = request.GET.get("sort", ledger.DEFAULT_SORT)
    if sort.removeprefix("-") not in ledger.SORTS:
        sort = ledger.DEFAULT_SORT
    rows = ledger.filter_month(entries, month)
    if request.GET.get("format") == "csv":
        return _build_csv_response(rows, grouping, sort, f"gpu-hours-{month}")
    total = ledger.load_total(rows)
    listing = _build_listing(request, rows, grouping, sort, total)
    first = ledger.load_first_month(entries) or month
    return render_page(
        request,
        "ledger/usage.html",
        LIST_TEMPLATE,
        {
            "listing": listing,
            "groupings": [(each, TITLES[each]) for each in groupings],
            "grouping": grouping,
            "total": total,
            **_build_month_context(month, min(first, month), get_month(today)),
            **_build_pictures(rows, groupings[0], month, total, today),
            **build_empty_state(
                "gauge",
                f"Nothing held GPUs in {month.label}",
                "GPU hours are counted minute by minute, from the first one in which Muster looks.",
            ),
            **context,
        },
    )


def _build_listing(
    request: Request, rows: Entries, grouping: Grouping, sort: str, total: LedgerGroup
) -> Listing:
    """Load a page of groups. The cursor is how many come before it: groups have no keys."""
    offset = min(parse_number(request.GET.get("cursor", "")) or 0, MOST_OFFSET)
    size = pagination.PAGE_SIZE
    groups = ledger.load_groups(rows, grouping, sort=sort, offset=offset, limit=size + 1)
    if grouping is Grouping.WORKLOAD:
        ledger.mark_visible_workloads(groups, request.user)
    table = build_table(grouping, total)
    column_names = {name for each in request.GET.getlist("column") for name in each.split(",")}
    columns = [
        column
        for column in table.columns
        if column is table.columns[0]
        or (column.name in column_names if column_names else not column.is_extra)
    ]
    return Listing(
        table,
        groups[:size],
        columns,
        sort,
        next=str(offset + size) if len(groups) > size else "",
        previous=str(max(0, offset - size)) if offset else "",
    )


def _build_csv_response(
    rows: Entries, grouping: Grouping, sort: str, file: str
) -> HttpResponseBase:
    """Return all groups as CSV, in hours."""
    table = build_table(grouping, ledger.load_total(rows))
    cells = [cell for column in table.columns for cell in column.csv_cells.items()]

    def render_lines() -> Iterator[str]:
        yield pagination.format_csv_line(title for title, _ in cells)
        for group in ledger.iterate_groups(rows, grouping, sort):
            yield pagination.format_csv_line(text(group) for _, text in cells)

    return build_file_response(render_lines(), f"{file}.csv", "text/csv; charset=utf-8")


def _build_month_context(month: Month, first: Month, newest: Month) -> dict[str, Any]:
    """Return the month that is shown, its neighbours, and those that can be chosen."""
    months: list[Month] = []
    each = max(newest, month)
    while each >= first and len(months) < MOST_MONTHS:
        months.append(each)
        each = each.previous_month
    return {
        "month": month,
        "months": months,
        "previous_month": month.previous_month if month > first else None,
        "next_month": month.next_month if month < newest else None,
    }


def _build_pictures(
    rows: Entries, grouping: Grouping, month: Month, total: LedgerGroup, today: date
) -> dict[str, Any]:
    """Build the bars of the largest groups, and of all, and the columns of days. Two queries."""
    largest = ledger.load_groups(rows, grouping, limit=MOST_BARS + 1, has_costs=False)
    days = ledger.load_groups(rows, Grouping.DAY, sort="name", has_costs=False)
    most = max((group.amounts.allocated for group in largest), default=0)
    amounts = total.amounts
    spent_otherwise = amounts.allocated - amounts.useful - amounts.unknown
    return {
        "bars": [
            (group, ledger_bars.build_bar(group.name, group.amounts, most))
            for group in largest[:MOST_BARS]
            if group.amounts.allocated
        ],
        "has_more_bars": len(largest) > MOST_BARS,
        "bars_title": "Largest projects" if grouping is Grouping.PROJECT else "Largest users",
        "whole": ledger_bars.build_bar("All", amounts, amounts.allocated),
        "shares": ledger_bars.list_shares(amounts),
        "wanted": [(kind, to_hours(amounts.get(kind))) for kind in WANTED],
        "allocated": to_hours(amounts.allocated),
        "unused": to_hours(spent_otherwise),
        "unused_percent": ledger_bars.format_percent(spent_otherwise, amounts.allocated),
        "unknown_percent": ledger_bars.format_percent(amounts.unknown, amounts.allocated),
        "without_price": to_hours(total.costs.without_price),
        "without_power": to_hours(total.costs.without_power),
        "days": ledger_bars.build_day_picture(
            {group.key: group.amounts for group in days}, month, today
        ),
    }
