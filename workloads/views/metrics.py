"""What the pods of a workload use: the tab of its page, its figures for the script, and as CSV."""

import uuid
from collections.abc import Iterator
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console.moments import format_moment
from console.pagination import format_csv_line
from console.streams import build_file_response
from console.texts import parse_number
from projects.http import Request
from workloads import queries
from workloads.metrics.reading import Span
from workloads.models import Workload
from workloads.views.metric_csv import METRIC_COLUMNS, format_metrics
from workloads.views.metric_ranges import (
    DEFAULT_RANGE,
    RANGES,
    list_ranges,
    parse_after,
    parse_span,
)


@require_safe
@never_cache
def metric_frames(request: Request, pk: uuid.UUID) -> HttpResponseBase:
    """Answer the figures of a time as bytes, or as CSV."""
    visible = Workload.objects.visible_to(request.user).defer("spec", "job", "pod_group")
    workload: Workload = get_object_or_404(visible, pk=pk)
    span = parse_span(request.GET, workload.created_at, workload.ended_at)
    if request.GET.get("format") == "csv":
        return build_file_response(
            _render_csv(workload, span), f"{workload.name}-metrics.csv", "text/csv; charset=utf-8"
        )
    return HttpResponse(
        queries.pack_metrics(workload, span, parse_after(request.GET)),
        content_type="application/octet-stream",
    )


def build_metrics_context(request: Request, workload: Workload) -> dict[str, Any]:
    """Build what the tab shows before its script draws. The workload is loaded with its cluster."""
    chosen = request.GET.get("range", "")
    chosen = chosen if chosen in RANGES else DEFAULT_RANGE
    pod = parse_number(request.GET.get("pod", ""), 18)
    return {
        "metrics": queries.view_metrics(workload),
        "frames_url": reverse("workload-metric-frames", args=[workload.pk]),
        "range": chosen,
        "ranges": list_ranges(),
        "chosen_pod": pod,
        "ends_at": workload.ended_at,
    }


def _render_csv(workload: Workload, span: Span) -> Iterator[str]:
    """Yield the figures as lines: a moment and a pod each."""
    pods = {pod["id"]: pod for pod in queries.list_measured_pods(workload, span)}
    yield format_csv_line(["time", "pod", "attempt", "rank", *METRIC_COLUMNS])
    for moment, frame in queries.iterate_frames(workload, span):
        for place, key in enumerate(frame.ids):
            pod = pods.get(key, {})
            about = [pod.get("name", ""), pod.get("attempt", ""), pod.get("rank", "")]
            yield format_csv_line([format_moment(moment), *about, *format_metrics(frame, place)])
