"""How far a training is: its place and estimate, its loss, and each rank beside the others."""

import uuid
from datetime import UTC, datetime
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from projects.http import Request
from workloads import queries
from workloads.models import Workload
from workloads.overview.loss_picture import build_loss_picture, choose_rows
from workloads.states import ACTIVE, UP
from workloads.training_progress import VARIABLE, describe_loss
from workloads.views import logs

MOST_RANKS = 128
"""Ranks of the table; REST has more."""


@require_safe
@never_cache
def training(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Show the part with the progress; it asks for itself when the workload has changed."""
    visible = Workload.objects.visible_to(request.user).select_related("progress")
    workload = get_object_or_404(visible.defer("spec", "job", "pod_group", "data_job"), pk=pk)
    context = build_training_context(workload)
    return render(request, "workloads/_training.html", context | {"w": workload})


def build_training_context(workload: Workload) -> dict[str, Any]:
    """Build what the part shows. The workload is loaded with its progress. Three queries."""
    details = queries.load_progress_details(workload, MOST_RANKS)
    log_link = ""
    if details.log is not None:
        log_link = logs.build_line_link(details.log, details.offset)
    return {
        "progress": queries.view_progress(workload),
        "details": details,
        "picture": build_loss_picture(details.loss),
        "losses": [
            (datetime.fromtimestamp(at, UTC), step, describe_loss(loss, is_bad=loss is None))
            for at, step, loss in choose_rows(details.loss)
        ],
        "log_link": log_link,
        "is_waiting": workload.status in ACTIVE - UP,
        "is_up": workload.status in UP,
        "variable": VARIABLE,
    }
