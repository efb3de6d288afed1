"""The table of workloads: the page, its changes, and its rows as CSV.

Everything that was chosen is in the address.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpResponse, JsonResponse, QueryDict, StreamingHttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_cookie

from console import http, pagination
from projects.http import Request
from projects.models import Project, User
from projects.permission_explanations import find_disabled_button
from projects.permissions import Entity, Permission, Verb
from projects.querysets import list_visible_project_ids
from workloads import queries
from workloads.filters import AGES, FRAMEWORKS, Filters
from workloads.models import Workload
from workloads.states import Status
from workloads.views import columns, rendering

MOST_CHOICES = 200
"""Projects and people that a filter offers."""
MOST_CSV = 20_000
CSV_CHUNK = 1000


@require_safe
@never_cache
@vary_on_cookie
def table(request: Request) -> HttpResponse:
    """Show the page, or for htmx the table alone."""
    visible = list_visible_project_ids(request.user)
    filters = Filters.from_query(request.GET)
    order = queries.ORDERS[columns.parse_order_name(request)]
    # Before the rows: what changes between the two is told again, not lost.
    position = queries.load_position()
    workloads = filters.apply(queries.list_in_projects(visible))
    page = pagination.load_page(
        workloads,
        order,
        request.GET.get("page", ""),
        display_rows=queries.select_table_columns(Workload.objects.all()),
    )
    shown_keys = columns.parse_columns(request)
    context = _build_table_context(request, filters, order, page, shown_keys) | {
        "position": position
    }
    context |= _build_filter_choices(request.user, filters)
    answer = http.render_page(request, "workloads/table.html", "workloads/_table.html", context)
    if "cols" in request.GET:
        answer.set_cookie(
            columns.COOKIE,
            ",".join(shown_keys) or columns.FIXED,
            max_age=columns.COOKIE_SECONDS,
            samesite="Lax",
            httponly=True,
            secure=settings.SESSION_COOKIE_SECURE,
        )
    return answer


def _build_table_context(
    request: Request,
    filters: Filters,
    order: pagination.SortOrder,
    page: "pagination.Page[Workload]",
    shown_keys: Sequence[str],
) -> dict[str, Any]:
    sort = "" if order is queries.NEWEST else order.name
    here = reverse("workloads")
    asked = [("cols", request.GET.get("cols", ""))]

    def link(*more: tuple[str, str]) -> str:
        query = filters.to_query_string(*asked, *more)
        return f"{here}?{query}" if query else here

    links = {
        name: link(("sort", "" if name == queries.NEWEST.name else name)) for name in queries.ORDERS
    }
    query = filters.to_query_string(("sort", sort))
    return {
        "rows": rendering.render_rows(page.rows),
        "heads": columns.build_heads(shown_keys, order.name, links),
        "hidden": [f"hide-{key}" for key in columns.OPTIONAL if key not in shown_keys],
        "filters": filters,
        "sort": sort,
        "query": query,
        "first": link(("sort", sort)),
        "next": link(("sort", sort), ("page", page.next)) if page.next else "",
        "previous": link(("sort", sort), ("page", page.previous)) if page.previous else "",
        "is_first": not page.previous,
        "is_newest": order is queries.NEWEST,
        "page_size": pagination.PAGE_SIZE,
        "without_filters": f"{here}?deleted=1" if filters.deleted else here,
        "deleted_days": f"{settings.OPTIONS.deleted_days:g}",
    }


def _build_filter_choices(user: User, filters: Filters) -> dict[str, Any]:
    """Build what the filters offer: three queries at most, however many workloads there are."""
    projects = list(
        Project.objects.visible_to(user).only("id", "name").order_by("name")[:MOST_CHOICES]
    )
    people = User.objects.filter(is_service=False)
    visible = list_visible_project_ids(user)
    if visible is not None:
        people = people.filter(
            pk__in=Workload.objects.filter(project__in=visible).values("submitted_by")
        )
    return {
        "choices": {
            "status": [
                (each.value, each.label, each.value in filters.statuses)
                for each in Status
                if each is not Status.DELETING
            ],
            "project": [(each.pk, each.name, each.pk in filters.projects) for each in projects],
            "framework": [
                (value, label, value in filters.frameworks) for value, label in FRAMEWORKS.items()
            ],
            "people": list(
                people.order_by("username").values_list("username", flat=True)[:MOST_CHOICES]
            ),
            "age": [(key, label) for key, (label, _) in AGES.items()],
        },
        "may_submit": user.rights.may_anywhere(Permission(Entity.WORKLOADS, Verb.CREATE)),
        "may_not": find_disabled_button(
            user, Verb.CREATE, Entity.WORKLOADS, words="New workload", icon="plus", anywhere=True
        ),
    }


@require_safe
@never_cache
def changes(request: Request) -> HttpResponse:
    """Return what changed after a position; 204 when nothing did."""
    filters = Filters.from_query(request.GET)
    news = queries.load_changes(
        parse_position(request.GET), list_visible_project_ids(request.user), filters.apply
    )
    return JsonResponse(serialize_changes(news)) if news else HttpResponse(status=204)


def parse_position(query: QueryDict) -> int:
    """Return the position in the address; 0 for none."""
    text = query.get("after", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


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
def table_csv(request: Request) -> StreamingHttpResponse:
    """Stream the rows of the current filter as CSV, at most MOST_CSV of them, in chunks."""
    filters = Filters.from_query(request.GET)
    order = queries.ORDERS[columns.parse_order_name(request)]
    workloads = filters.apply(queries.list_in_projects(list_visible_project_ids(request.user)))
    answer = StreamingHttpResponse(
        _stream_csv_lines(workloads, order), content_type="text/csv; charset=utf-8"
    )
    answer["Content-Disposition"] = (
        f'attachment; filename="workloads-{timezone.now():%Y%m%d-%H%M}.csv"'
    )
    return answer


_CSV_HEAD = (
    "Workload",
    "Id",
    "Architecture",
    "Framework",
    "Status",
    "Status since",
    "Reason",
    "Project",
    "Submitted by",
    "Preemptible",
    "Running pods",
    "Requested pods",
    "Pods ended",
    "GPU request",
    "GPU memory request (MiB)",
    "GPU allocation",
    "Created",
    "Runtime (s)",
    "Attempt",
)


async def _stream_csv_lines(workloads: Any, order: pagination.SortOrder) -> AsyncIterator[str]:
    yield pagination.format_csv_line(_CSV_HEAD)
    shown = queries.select_table_columns(Workload.objects.all())
    cursor, remaining = "", MOST_CSV
    while remaining > 0:
        page = await sync_to_async(pagination.load_page)(
            workloads, order, cursor, min(CSV_CHUNK, remaining), shown
        )
        runtimes = await sync_to_async(rendering.load_runtimes)(page.rows)
        yield "".join(_build_csv_line(row, runtimes[row.pk].seconds) for row in page.rows)
        cursor, remaining = page.next, remaining - len(page.rows)
        if not cursor:
            return


def _build_csv_line(row: Workload, ran_seconds: float) -> str:
    return pagination.format_csv_line(
        (
            row.name,
            row.pk,
            row.architecture,
            row.framework_label,
            row.state.label,
            row.status_at.isoformat(),
            row.reason,
            row.project.name,
            row.submitted_by.username if row.submitted_by else "",
            "yes" if row.preemptible else "no",
            row.running_pods,
            row.requested_pods,
            row.ended,
            row.gpus_requested,
            row.gpu_memory_requested,
            row.gpus_allocated,
            row.created_at.isoformat(),
            round(ran_seconds, 1),
            row.attempt,
        )
    )
