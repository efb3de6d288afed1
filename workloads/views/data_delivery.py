"""Data delivery on a workload's page: what is prepared, and which rank waits for data."""

import uuid
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from projects.http import Request
from workloads.models import Workload
from workloads.overview.delivery_bars import RankTimes, build_rank_bars
from workloads.queries.data_delivery import DeliveryView, load_delivery
from workloads.views.abilities import list_abilities
from workloads.views.drafting import DATA_WORKERS_PARAMETER

MOST_TABLE_ROWS = 100
"""Ranks of the table beside the bars, those that waited most."""


@require_safe
@never_cache
def delivery(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Show the part about data delivery; it asks for itself when the workload has changed."""
    workload = get_object_or_404(
        Workload.objects.visible_to(request.user)
        .select_related("project")
        .defer("spec", "job", "pod_group", "data_job"),
        pk=pk,
    )
    context = build_delivery_context(request, workload)
    return render(request, "workloads/_delivery.html", context | {"w": workload})


def build_delivery_context(request: Request, workload: Workload) -> dict[str, Any]:
    """Build what the part shows: nothing for a workload without data workers."""
    view = load_delivery(workload)
    if view is None:
        return {"delivery": None}
    times = [RankTimes(each.rank, each.waited, each.computed) for each in view.ranks]
    rows = view.ranks[:MOST_TABLE_ROWS]
    return {
        "delivery": view,
        "rank_bars": build_rank_bars(times, view.rank_count, view.waited_share or 0.0),
        "rank_rows": rows,
        "left_out_ranks": view.rank_count - len(rows),
        "more_workers": _build_more_workers_link(request, workload, view),
    }


def _build_more_workers_link(request: Request, workload: Workload, view: DeliveryView) -> str:
    """Return the address of a copy with as many data workers as would do; "" where none help."""
    if view.suggested_workers is None or list_abilities(workload, request.user).copy.why_not:
        return ""
    query = urlencode(
        {"copy": str(workload.pk), DATA_WORKERS_PARAMETER: str(view.suggested_workers)}
    )
    return f"{reverse('workload-new')}?{query}"
