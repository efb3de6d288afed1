"""How many pods a workload had over time, with what took or gave them: a picture and a list."""

import uuid
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from projects.http import Request
from workloads import queries
from workloads.models import Event, Workload
from workloads.overview.pod_picture import Bounds, build_pod_picture
from workloads.queries.pod_history import load_pod_history
from workloads.queries.quota_pods import count_quota_pods, decode_known_spec

MOST_MARKS = 20
"""Changes that the picture marks, the newest; the history below has all of them."""
MOST_ROWS = 100
"""Rows of the picture as a table, the newest."""


@require_safe
@never_cache
def pod_changes(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Show the part with the picture; it asks for itself when the workload has changed."""
    workload = get_object_or_404(
        Workload.objects.visible_to(request.user).select_related("project"), pk=pk
    )
    context = build_pod_changes_context(request, workload)
    return render(request, "workloads/_pod_changes.html", context | {"w": workload})


def build_pod_changes_context(request: Request, workload: Workload) -> dict[str, Any]:
    """Build what the part shows: nothing for a workload whose number of pods stays.

    Six queries at most, whatever the number of pods and of changes.
    """
    events = queries.load_disruptions(workload, MOST_MARKS)[::-1]
    if workload.max_pods is None and not events:
        return {"picture": None}
    now = timezone.now()
    history = load_pod_history(workload, now)
    if history is None:
        return {"picture": None, "is_awaited": True}
    words = queries.load_event_words(events, workload, request.user)
    current = [each for each in events if each.attempt == workload.attempt]
    spec = decode_known_spec(workload)
    bounds = Bounds(workload.min_pods, workload.max_pods, count_quota_pods(workload, spec))
    is_running = history.end >= now
    picture = build_pod_picture(
        history.steps,
        history.begin,
        history.end,
        bounds,
        [(each.at, _is_loss(each)) for each in current],
        is_running=is_running,
    )
    return {
        "picture": picture,
        "history": history,
        "is_running": is_running,
        "range_words": spec.elastic_range if spec else "",
        "changes": [(number, each, words[each.pk].text) for number, each in enumerate(current, 1)],
        "rows": history.steps[: -MOST_ROWS - 1 : -1],
        "left_out": max(0, len(history.steps) - MOST_ROWS),
        "quota_pods": bounds.quota,
    }


def _is_loss(event: Event) -> bool:
    return event.cause is not None or event.is_warning
