"""Live updates: one stream for the table, one for a workload's details. What is looked at is said
here; `feeds` shares the looking.
"""

import json
import uuid
from collections.abc import Callable

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404

from projects import looking
from projects.http import Request
from projects.models import User
from projects.querysets import visible_projects
from workloads import queries
from workloads.filters import Filters
from workloads.models import Workload
from workloads.views.feeds import Told, feeds, streamed
from workloads.views.table import after, as_data

FULL = (
    "You have too many live pages open. Close some; this one looks for changes every few seconds "
    "meanwhile."
)


async def live(request: Request) -> HttpResponseBase:
    """The changed rows of the table, from position N on. Reads Last-Event-ID when a browser comes
    back.
    """
    if request.method != "GET":
        return HttpResponse(status=405)
    user, visible = await sync_to_async(_looker)(request)
    if feeds.full(user.pk):
        return HttpResponse(FULL, status=429, content_type="text/plain")
    filters = Filters.read(request.GET)

    def look(position: int) -> Told:
        news = queries.changes(position, visible, filters.apply)
        return Told(news.position, json.dumps(as_data(news)) if news else "")

    allowed = _still(request, user, visible)
    return streamed(
        feeds.stream((visible, filters), visible, look, _from(request), user.pk, allowed)
    )


async def live_one(request: Request, pk: uuid.UUID) -> HttpResponseBase:
    """A wake-up whenever one workload has changed; the page then asks for its parts."""
    if request.method != "GET":
        return HttpResponse(status=405)
    user, visible, project = await sync_to_async(_looker_at)(request, pk)
    if feeds.full(user.pk):
        return HttpResponse(FULL, status=429, content_type="text/plain")

    def look(position: int) -> Told:
        changed = Workload.objects.filter(pk=pk).values_list("changed", flat=True).first()
        if changed is None or changed <= position:
            return Told(position)
        return Told(changed, json.dumps({"position": changed, "id": str(pk)}), "changed")

    allowed = _still(request, user, visible)
    return streamed(feeds.stream(pk, frozenset({project}), look, _from(request), user.pk, allowed))


def _looker(request: Request) -> tuple[User, frozenset[int] | None]:
    """Who looks, and at which projects. The thread's connection is given back: the stream outlives
    the question by hours.
    """
    user = User.objects.get(pk=request.user.pk)
    found = user, visible_projects(user)
    close_old_connections()
    return found


def _looker_at(request: Request, pk: uuid.UUID) -> tuple[User, frozenset[int] | None, int]:
    workload = get_object_or_404(
        Workload.objects.visible_to(request.user).only("project_id"), pk=pk
    )
    return *_looker(request), workload.project_id


def _from(request: Request) -> int:
    """Where the browser's last message ended, else where its page says it begins."""
    last = request.headers.get("Last-Event-ID", "")
    return int(last) if last.isascii() and last.isdigit() and len(last) < 19 else after(request.GET)


def _still(request: Request, user: User, visible: frozenset[int] | None) -> Callable[[], bool]:
    """Whether the session goes on and its pages are still this user's, who still sees these
    projects.
    """
    asking = looking.asking(request)

    def allowed() -> bool:
        now = asking()
        return now is not None and now == user and visible_projects(now) == visible

    return allowed
