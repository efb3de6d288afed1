"""The part of a project's page with its current state."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django.utils import timezone

from projects.models import Project, User
from projects.permissions import Entity
from projects.rights import view_permission
from projects.scopes import project_scope
from workloads.overview import attention, figures, quotas
from workloads.overview.bars import Bar, build_bar
from workloads.overview.gpu_holders import Holders, load_holders
from workloads.overview.history import DEFAULT, SPANS
from workloads.queries import list_in_projects
from workloads.queries.waiting import load_gpu_holdings
from workloads.states import Status

TEMPLATE = "overview/_project.html"
CHART = "overview/_project_chart.html"
STYLES: Sequence[str] = (
    "vendor/uplot-1.6.32/uPlot.min.css",
    "css/charts.css",
    "css/metrics.css",
)
SCRIPTS: Sequence[str] = (
    "vendor/uplot-1.6.32/uPlot.iife.min.js",
    "js/charts.js",
    "js/metrics.js",
)
GIB = Decimal(1 << 30)


def build_context(project: Project, user: User) -> dict[str, Any]:
    """Build the context of TEMPLATE: quota bars, and workloads where the user may see them.

    The same queries for any number of them. The project is loaded with its cluster.
    """
    context: dict[str, Any] = {
        "project": project,
        "at": timezone.now(),
        "gpu_bar": _build_gpu_bar(project),
        "other_bars": _build_other_bars(project),
    }
    if not user.rights.may(view_permission(Entity.WORKLOADS), project_scope(project)):
        return context | {"sees_workloads": False}
    rows = list_in_projects(frozenset({project.pk})).filter(released_at=None)
    counts = attention.count_by_status(rows)
    waiting = sum(counts.get(status, 0) for status in attention.WAITING_STATUSES)
    running = sum(counts.get(status, 0) for status in attention.RUNNING_STATUSES)
    up, idle = attention.load_largest_running(rows), figures.load_idle_gpus(frozenset({project.pk}))
    if idle.at is None:
        # No recent sample: what `idle_since` recorded then says nothing about now.
        for each in up:
            each.idle_since, each.is_use_known = None, False
    return context | {
        "sees_workloads": True,
        "running_count": running,
        "waiting_count": waiting,
        "failed_count": counts.get(Status.FAILED, 0),
        "waiting_statuses": [each.value for each in attention.WAITING_STATUSES],
        "running_statuses": [each.value for each in attention.RUNNING_STATUSES],
        "waiting": attention.load_longest_waiting(rows, user),
        "running": up,
        "failed": attention.load_last_failed(rows),
        "idle": idle,
        "spans": SPANS,
        "span": DEFAULT,
        "measures": bool(project.cluster.prometheus_url),
        "holders": _load_holders(project, user),
    }


def _load_holders(project: Project, user: User) -> Holders:
    cluster_ids = [project.cluster_id]
    return load_holders(
        cluster_ids,
        user.rights.project_ids(view_permission(Entity.WORKLOADS)),
        load_gpu_holdings(cluster_ids),
        figures.load_unavailable_gpus(cluster_ids),
    )


def _build_gpu_bar(project: Project) -> Bar:
    allocated, fixed = quotas.sum_project_gpus(project)
    # The default scheduler knows no quota, and takes nothing back.
    fixed_gpus = fixed if project.cluster.can.has_kai else None
    return build_bar(allocated, project.gpu_quota, project.gpu_limit, fixed=fixed_gpus)


def _build_other_bars(project: Project) -> Sequence[tuple[str, str, Bar]]:
    """Build bars of CPU and memory, where the project's Queue has reported them."""
    bars = []
    for key, name, unit, share, scale in (
        ("cpu", "CPU", "cores", project.shares.cpu, Decimal(1)),
        ("memory", "Memory", "GiB", project.shares.memory, GIB),
    ):
        amount = _parse_number(project.allocated.get(key))
        if amount is not None:
            quota, limit = (
                None if each is None else each / scale for each in (share.quota, share.limit)
            )
            bars.append((name, unit, build_bar(amount / scale, quota, limit, unit=unit)))
    return bars


def _parse_number(value: object) -> Decimal | None:
    try:
        number = Decimal(str(value)) if value is not None else None
    except ArithmeticError:
        return None
    return number if number is not None and number.is_finite() else None
