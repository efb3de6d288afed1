"""The table of workloads: the page, what changed on it, and its rows as CSV. Everything that was
chosen is in the address.
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

from console import http, lists
from projects.http import Request
from projects.models import Project, User
from projects.permissions import Entity, Permission, Verb
from projects.querysets import visible_projects
from projects.why import may_not
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
    """The page, or for htmx the table alone."""
    visible = visible_projects(request.user)
    filters = Filters.read(request.GET)
    order = queries.ORDERS[columns.order_words(request)]
    # Before the rows: what changes between the two is told again, not lost.
    position = queries.position()
    found = filters.apply(queries.in_projects(visible))
    page = lists.page(
        found,
        order,
        request.GET.get("page", ""),
        shown=queries.rows_for_table(Workload.objects.all()),
    )
    shown = columns.chosen(request)
    context = _table_context(request, filters, order, page, shown) | {"position": position}
    context |= _choices(request.user, filters)
    answer = http.page(request, "workloads/table.html", "workloads/_table.html", context)
    if "cols" in request.GET:
        answer.set_cookie(
            columns.COOKIE,
            ",".join(shown) or columns.FIXED,
            max_age=columns.COOKIE_SECONDS,
            samesite="Lax",
            httponly=True,
            secure=settings.SESSION_COOKIE_SECURE,
        )
    return answer


def _table_context(
    request: Request,
    filters: Filters,
    order: lists.Order,
    page: "lists.Page[Workload]",
    shown: Sequence[str],
) -> dict[str, Any]:
    sort = "" if order is queries.NEWEST else order.name
    here = reverse("workloads")
    asked = [("cols", request.GET.get("cols", ""))]

    def link(*more: tuple[str, str]) -> str:
        query = filters.query(*asked, *more)
        return f"{here}?{query}" if query else here

    links = {
        name: link(("sort", "" if name == queries.NEWEST.name else name)) for name in queries.ORDERS
    }
    query = filters.query(("sort", sort))
    return {
        "rows": rendering.rows(page.rows),
        "heads": columns.heads(shown, order.name, links),
        "hidden": [f"hide-{key}" for key in columns.OPTIONAL if key not in shown],
        "filters": filters,
        "sort": sort,
        "query": query,
        "first": link(("sort", sort)),
        "next": link(("sort", sort), ("page", page.next)) if page.next else "",
        "previous": link(("sort", sort), ("page", page.previous)) if page.previous else "",
        "is_first": not page.previous,
        "is_newest": order is queries.NEWEST,
        "page_size": lists.PAGE,
        "without_filters": f"{here}?deleted=1" if filters.deleted else here,
        "deleted_days": f"{settings.OPTIONS.deleted_days:g}",
    }


def _choices(user: User, filters: Filters) -> dict[str, Any]:
    """What the filters offer: three queries at most, whatever the table holds."""
    projects = list(
        Project.objects.visible_to(user).only("id", "name").order_by("name")[:MOST_CHOICES]
    )
    people = User.objects.filter(is_service=False)
    visible = visible_projects(user)
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
        "may_submit": user.rights.anywhere(Permission(Entity.WORKLOADS, Verb.CREATE)),
        "may_not": may_not(
            user, Verb.CREATE, Entity.WORKLOADS, words="New workload", icon="plus", anywhere=True
        ),
    }


@require_safe
@never_cache
def changes(request: Request) -> HttpResponse:
    """What changed after position N, once: 204 when nothing did."""
    filters = Filters.read(request.GET)
    news = queries.changes(after(request.GET), visible_projects(request.user), filters.apply)
    return JsonResponse(as_data(news)) if news else HttpResponse(status=204)


def after(query: QueryDict) -> int:
    """The position that an address names; 0 for none."""
    text = query.get("after", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def as_data(news: queries.Changes) -> dict[str, Any]:
    """What a page is told, by poll and by stream alike."""
    rows = [
        {"id": row.id, "created": row.created, "html": row.html}
        for row in rendering.rows(news.rows)
    ]
    return {
        "position": news.position,
        "rows": rows,
        "gone": [str(id) for id in news.gone],
        "reset": news.reset,
    }


@require_safe
@never_cache
def as_csv(request: Request) -> StreamingHttpResponse:
    """The rows of the current filter, at most MOST_CSV of them, streamed a chunk at a time."""
    filters = Filters.read(request.GET)
    order = queries.ORDERS[columns.order_words(request)]
    found = filters.apply(queries.in_projects(visible_projects(request.user)))
    answer = StreamingHttpResponse(_lines(found, order), content_type="text/csv; charset=utf-8")
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


async def _lines(found: Any, order: lists.Order) -> AsyncIterator[str]:
    yield lists.csv_line(_CSV_HEAD)
    shown = queries.rows_for_table(Workload.objects.all())
    cursor, left = "", MOST_CSV
    while left > 0:
        page = await sync_to_async(lists.page)(found, order, cursor, min(CSV_CHUNK, left), shown)
        ran = await sync_to_async(rendering.runtimes)(page.rows)
        yield "".join(_line(row, ran[row.pk].seconds) for row in page.rows)
        cursor, left = page.next, left - len(page.rows)
        if not cursor:
            return


def _line(row: Workload, ran: float) -> str:
    return lists.csv_line(
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
            round(ran, 1),
            row.attempt,
        )
    )
