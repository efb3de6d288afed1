"""Live updates: one stream for the table, one for a workload's details.

The queries are here; `feeds` shares them among viewers.
"""

import json
import uuid
from collections.abc import Callable

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404

from projects import impersonation
from projects.http import Request
from projects.models import User
from projects.querysets import list_visible_project_ids
from workloads import queries
from workloads.filters import Filters
from workloads.models import Workload
from workloads.views.feeds import StreamMessage, build_stream_response, feeds
from workloads.views.table import parse_position, serialize_changes

TOO_MANY_STREAMS = (
    "You have too many live pages open. Close some; this one looks for changes every few seconds "
    "meanwhile."
)


async def stream_table(request: Request) -> HttpResponseBase:
    """Stream the changed rows of the table, from a position on.

    Reads Last-Event-ID when a browser comes back.
    """
    if request.method != "GET":
        return HttpResponse(status=405)
    user, visible = await sync_to_async(_load_viewer)(request)
    if feeds.is_full(user.pk):
        return HttpResponse(TOO_MANY_STREAMS, status=429, content_type="text/plain")
    filters = Filters.from_query(request.GET)

    def look(position: int) -> StreamMessage:
        news = queries.load_changes(position, visible, filters.apply)
        return StreamMessage(news.position, json.dumps(serialize_changes(news)) if news else "")

    allowed = _build_access_check(request, user, visible)
    return build_stream_response(
        feeds.stream(
            (visible, filters), visible, look, _parse_start_position(request), user.pk, allowed
        )
    )


async def stream_workload(request: Request, pk: uuid.UUID) -> HttpResponseBase:
    """Stream a wake-up whenever one workload has changed; the page then requests its parts."""
    if request.method != "GET":
        return HttpResponse(status=405)
    user, visible, project = await sync_to_async(_load_workload_viewer)(request, pk)
    if feeds.is_full(user.pk):
        return HttpResponse(TOO_MANY_STREAMS, status=429, content_type="text/plain")

    def look(position: int) -> StreamMessage:
        changed = Workload.objects.filter(pk=pk).values_list("changed", flat=True).first()
        if changed is None or changed <= position:
            return StreamMessage(position)
        return StreamMessage(changed, json.dumps({"position": changed, "id": str(pk)}), "changed")

    allowed = _build_access_check(request, user, visible)
    return build_stream_response(
        feeds.stream(
            pk, frozenset({project}), look, _parse_start_position(request), user.pk, allowed
        )
    )


def _load_viewer(request: Request) -> tuple[User, frozenset[int] | None]:
    """Load the viewer and their projects.

    Gives the thread's connection back, because the stream outlives this query by hours.
    """
    user = User.objects.get(pk=request.user.pk)
    viewer = user, list_visible_project_ids(user)
    close_old_connections()
    return viewer


def _load_workload_viewer(
    request: Request, pk: uuid.UUID
) -> tuple[User, frozenset[int] | None, int]:
    workload = get_object_or_404(
        Workload.objects.visible_to(request.user).only("project_id"), pk=pk
    )
    return *_load_viewer(request), workload.project_id


def _parse_start_position(request: Request) -> int:
    """Return where the browser's last message ended, else where its page says it begins."""
    last = request.headers.get("Last-Event-ID", "")
    return (
        int(last)
        if last.isascii() and last.isdigit() and len(last) < 19
        else parse_position(request.GET)
    )


def _build_access_check(
    request: Request, user: User, visible: frozenset[int] | None
) -> Callable[[], bool]:
    """Return a check that the session goes on for the same user with the same projects."""
    asking = impersonation.make_user_lookup(request)

    def allowed() -> bool:
        now = asking()
        return now is not None and now == user and list_visible_project_ids(now) == visible

    return allowed
