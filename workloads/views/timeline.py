"""A workload's past as one picture: the tab of its page, and the same as an SVG file."""

import uuid
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django_htmx.http import push_url

from console.streams import build_file_response
from projects.http import Request
from workloads import queries
from workloads.models import Workload
from workloads.overview.timeline_picture import build_timeline_picture
from workloads.timeline import RankChoice, parse_ranks, render_svg
from workloads.timeline.moments import format_exact
from workloads.timeline.rank_choice import LONGEST

WRONG_RANKS = "Write ranks as 5, as 64-127, or several of these with commas."


@require_safe
@never_cache
def timeline_lanes(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Show the part with the picture; it asks for itself when the workload has changed."""
    workload = _get_workload(request, pk)
    context = build_timeline_context(request, workload)
    answer = render(request, "workloads/_timeline.html", context | {"w": workload})
    # What asks by itself after a change says so by its id; only what a person chose moves the
    # address.
    if context["pane"] or request.htmx.trigger == "timeline":
        return answer
    return push_url(answer, f"{context['tab_url']}{context['query']}")


@require_safe
@never_cache
def timeline_svg(request: Request, pk: uuid.UUID) -> HttpResponseBase:
    """Answer the picture as a file."""
    workload = _get_workload(request, pk)
    timeline = queries.load_timeline(workload, request.user, _parse_choice(request)[0])
    span = f"{format_exact(timeline.begin)} to {format_exact(timeline.end)}"
    subtitle = f"Project {workload.project.name} · {workload.state.label} · {span}"
    return build_file_response(
        iter([render_svg(timeline, workload.name, subtitle)]),
        f"{workload.name}-timeline.svg",
        "image/svg+xml",
    )


def build_timeline_context(request: Request, workload: Workload) -> dict[str, Any]:
    """Build what the tab shows. The workload is loaded with its project and progress."""
    choice, problem = _parse_choice(request)
    pairs = [("ranks", str(choice))] if choice else []
    query = f"?{urlencode(pairs)}" if choice else ""
    is_pane = request.GET.get("pane") == "1" and bool(request.htmx)
    part_pairs = [*pairs, ("pane", "1")] if is_pane else pairs
    return {
        "picture": build_timeline_picture(queries.load_timeline(workload, request.user, choice)),
        "ranks": request.GET.get("ranks", "")[:LONGEST] if problem else str(choice),
        "ranks_problem": problem,
        "query": query,
        "part_query": f"?{urlencode(part_pairs)}" if part_pairs else "",
        "pane": is_pane,
        "tab_url": reverse("workload-tab", args=[workload.pk, "timeline"]),
        "lanes_url": reverse("workload-timeline-lanes", args=[workload.pk]),
        "svg_url": reverse("workload-timeline-svg", args=[workload.pk]) + query,
    }


def _parse_choice(request: Request) -> tuple[RankChoice, str]:
    """Return the ranks that the address chooses, and what is wrong with it; all where it is."""
    choice = parse_ranks(request.GET.get("ranks", ""))
    return (RankChoice(), WRONG_RANKS) if choice is None else (choice, "")


def _get_workload(request: Request, pk: uuid.UUID) -> Workload:
    visible = Workload.objects.visible_to(request.user).select_related("project", "progress")
    workload: Workload = get_object_or_404(
        visible.defer("job", "pod_group", "data_job", "progress__pace"), pk=pk
    )
    return workload
