"""Live updates: one stream for the table, one for a workload's details.

The queries are here; `feeds` shares them among viewers.
"""

import json
import uuid
from collections.abc import Callable, Hashable

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from console import tables
from console.table_filters import Selection
from console.texts import parse_number
from projects import impersonation
from projects.http import Request
from projects.models import User
from projects.querysets import list_visible_project_ids
from workloads import queries
from workloads.models import Workload
from workloads.views.feeds import LoadMessage, StreamMessage, build_stream_response, feeds
from workloads.views.table import parse_position, serialize_changes
from workloads.workload_table import TABLE

TOO_MANY_STREAMS = (
    "You have too many live pages open. Close some; this one looks for changes every few seconds "
    "meanwhile."
)


@require_GET
async def stream_table(request: Request) -> HttpResponseBase:
    """Stream the changed rows of the table, from a position on.

    Reads Last-Event-ID when a browser comes back.
    """
    user, visible, selection = await sync_to_async(_load_table_viewer)(request)

    def look(position: int) -> StreamMessage:
        news = queries.load_changes(
            position, visible, lambda rows: TABLE.select_rows(rows, selection)
        )
        return StreamMessage(news.position, json.dumps(serialize_changes(news)) if news else "")

    return _stream_to_viewer(request, user, visible, (visible, selection), visible, look)


@require_GET
async def stream_workload(request: Request, pk: uuid.UUID) -> HttpResponseBase:
    """Stream a wake-up whenever one workload has changed; the page then requests its parts."""
    user, visible, project = await sync_to_async(_load_workload_viewer)(request, pk)

    def look(position: int) -> StreamMessage:
        changed = Workload.objects.filter(pk=pk).values_list("changed", flat=True).first()
        if changed is None or changed == position:
            return StreamMessage(position)
        # A position ahead of the journal is another database's, or made up. The feed would never
        # come to it, and all viewers share the feed: it goes back to where the workload is.
        if changed < position <= queries.load_position():
            return StreamMessage(position)
        return StreamMessage(changed, json.dumps({"position": changed, "id": str(pk)}), "changed")

    return _stream_to_viewer(request, user, visible, pk, frozenset({project}), look)


def _stream_to_viewer(
    request: Request,
    user: User,
    visible: frozenset[int] | None,
    key: Hashable,
    projects: frozenset[int] | None,
    look: LoadMessage,
) -> HttpResponseBase:
    if feeds.is_full(user.pk):
        return HttpResponse(TOO_MANY_STREAMS, status=429, content_type="text/plain")
    allowed = _build_access_check(request, user, visible)
    start = _parse_start_position(request)
    return build_stream_response(feeds.stream(key, projects, look, start, user.pk, allowed))


def _load_viewer(request: Request) -> tuple[User, frozenset[int] | None]:
    """Load the viewer and their projects.

    Gives the thread's connection back, because the stream outlives this query by hours.
    """
    user = User.objects.get(pk=request.user.pk)
    viewer = user, list_visible_project_ids(user)
    close_old_connections()
    return viewer


def _load_table_viewer(
    request: Request,
) -> tuple[User, frozenset[int] | None, Selection]:
    # The choices of a filter may be rows.
    selection = tables.parse_selection(request, TABLE)
    return *_load_viewer(request), selection


def _load_workload_viewer(
    request: Request, pk: uuid.UUID
) -> tuple[User, frozenset[int] | None, int]:
    workload = get_object_or_404(
        Workload.objects.visible_to(request.user).only("project_id"), pk=pk
    )
    return *_load_viewer(request), workload.project_id


def _parse_start_position(request: Request) -> int:
    """Return where the browser's last message ended, else where its page says it begins."""
    last = parse_number(request.headers.get("Last-Event-ID"))
    return parse_position(request.GET) if last is None else last


def _build_access_check(
    request: Request, user: User, visible: frozenset[int] | None
) -> Callable[[], bool]:
    """Return a check that the session goes on for the same user with the same projects."""
    asking = impersonation.make_user_lookup(request)

    def may_still_see() -> bool:
        now = asking()
        return now is not None and now == user and list_visible_project_ids(now) == visible

    return may_still_see
