"""The table of workloads: the page, its changes, and its rows as CSV.

Everything that was chosen is in the address.
"""

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpResponse, JsonResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_cookie

from console import pagination, tables
from console.table_filters import Filter, Rows
from console.texts import parse_number
from projects.http import Request
from projects.permission_explanations import find_disabled_button
from projects.permissions import Entity, Permission, Verb
from projects.querysets import list_visible_project_ids
from workloads import queries, saved_views
from workloads.filters import DELETED
from workloads.views import rendering
from workloads.views.saved_views import NO_VIEW, VIEW, build_view_address
from workloads.workload_table import CHECKBOX, TABLE


@require_safe
@never_cache
@vary_on_cookie
def table(request: Request) -> HttpResponse:
    """Show the page, or for htmx the table alone; without an address's query the default view."""
    # A part of the page shows no views.
    is_part = request.htmx and not request.htmx.history_restore_request
    views = () if is_part else saved_views.list_views(request.user)
    default = next((view for view in views if view.is_default), None)
    if default is not None and not request.GET:
        return redirect(build_view_address(default))
    # Before the rows: what changes between the two is told again, not lost.
    position = queries.load_position()
    listing = tables.build_listing(request, _list_rows(request), TABLE)
    context = _build_context(request, listing) | {
        "position": position,
        "views": [(view, build_view_address(view)) for view in views],
        "current_view": next((view for view in views if str(view.pk) == _get_view(request)), None),
    }
    return tables.render_listing(
        request,
        listing,
        "workloads/table.html",
        "workloads/_table.html",
        context,
        # The columns of a view are those of the view.
        remember_columns=_get_view(request) in ("", NO_VIEW),
    )


def _get_view(request: Request) -> str:
    return request.GET.get(VIEW, "")


def _list_rows(request: Request) -> Rows:
    return queries.select_table_fields(
        queries.list_in_projects(list_visible_project_ids(request.user))
    )


def _build_context(request: Request, listing: tables.Listing) -> dict[str, Any]:
    user, view = request.user, _get_view(request)
    deleted = bool(listing.selection.find_values(DELETED))
    sort = "" if listing.sort == TABLE.sort else listing.sort
    parameters = listing.selection.list_parameters()
    # Nothing can be done to what is deleted.
    columns = listing.columns if deleted else [CHECKBOX, *listing.columns]
    address, query = reverse("workloads"), [*parameters, *([("sort", sort)] if sort else [])]
    return {
        "rows": rendering.render_rows(listing.rows, columns),
        "deleted": deleted,
        "sort": sort,
        "parameters": parameters,
        "view": view,
        "all_rows": f"{address}?{VIEW}={NO_VIEW}",
        "query": urlencode(query),
        "file_query": urlencode([*query, *_list_column_parameters(listing)]),
        "chips": _list_chips(listing, view),
        "page_size": pagination.PAGE_SIZE,
        "without_filters": f"{address}?{DELETED}=1" if deleted else f"{address}?{VIEW}={NO_VIEW}",
        "deleted_days": f"{settings.OPTIONS.deleted_days:g}",
        "may_submit": user.rights.may_anywhere(Permission(Entity.WORKLOADS, Verb.CREATE)),
        "may_not": find_disabled_button(
            user, Verb.CREATE, Entity.WORKLOADS, words="New workload", icon="plus", anywhere=True
        ),
    }


def _list_column_parameters(listing: tables.Listing) -> list[tuple[str, str]]:
    return [("column", ",".join(column.name for column in listing.columns))]


def _list_chips(listing: tables.Listing, view: str) -> list[tuple[str, str]]:
    """List the filters of the panel that are set, each with the address without it."""
    return [
        (f"{each.title}: {dict(choices).get(value, value)}", _build_address(listing, view, each))
        for each, value, choices, _ in listing.filters
        if each.is_more and isinstance(value, str) and value
    ]


def _build_address(listing: tables.Listing, view: str, without: Filter) -> str:
    """Return the address of the table without one of its filters."""
    parameters = [
        *([(VIEW, view)] if view else []),
        *(pair for pair in listing.selection.list_parameters() if pair[0] != without.name),
        ("sort", listing.sort),
        *_list_column_parameters(listing),
    ]
    return f"{reverse('workloads')}?{urlencode(parameters)}"


@require_safe
@never_cache
def changes(request: Request) -> HttpResponse:
    """Return what changed after a position; 204 when nothing did."""
    selection = tables.parse_selection(request, TABLE)
    news = queries.load_changes(
        parse_position(request.GET),
        list_visible_project_ids(request.user),
        lambda rows: TABLE.select_rows(rows, selection),
    )
    return JsonResponse(serialize_changes(news)) if news else HttpResponse(status=204)


def parse_position(query: QueryDict) -> int:
    """Return the position in the address; 0 for none."""
    return parse_number(query.get("after")) or 0


def serialize_changes(news: queries.Changes) -> dict[str, Any]:
    """Return the changes for a page, for poll and stream alike."""
    rows = [
        {"id": row.id, "created": row.created, "html": row.html}
        for row in rendering.render_rows(news.rows)
    ]
    return {
        "position": news.position,
        "rows": rows,
        "gone": [str(id) for id in news.gone_ids],
        "reset": news.needs_reset,
    }


@require_safe
@never_cache
def table_csv(request: Request) -> HttpResponseBase:
    """Download all rows that the address asks for as CSV."""
    file = f"workloads-{timezone.now():%Y%m%d-%H%M}"
    return tables.render_csv(request, _list_rows(request), TABLE, file, rendering.set_runtimes)
