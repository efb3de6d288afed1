"""The part of a project's page that tells how it stands now. `settings.PROJECT_PAGE` names this
room: projects lie floors below.
"""

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
STYLES = ("vendor/uplot-1.6.32/uPlot.min.css", "css/charts.css")
SCRIPTS = ("vendor/uplot-1.6.32/uPlot.iife.min.js", "js/charts.js")
GIB = Decimal(1 << 30)


def now(project: Project, user: User) -> dict[str, Any]:
    """What TEMPLATE needs: quotas as pictures, and the workloads where the user may see them. The
    same queries however many there are.

    The project is loaded with its cluster.
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
        # Nobody has looked lately: what was known then says nothing of now.
        for each in up:
            each.idle_since, each.use_known = None, False
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
    there = [project.cluster_id]
    return load_holders(
        there,
        user.rights.project_ids(view_permission(Entity.WORKLOADS)),
        load_gpu_holdings(there),
        figures.load_unavailable_gpus(there),
    )


def _build_gpu_bar(project: Project) -> Bar:
    held = quotas.sum_project_gpus(project)
    return build_bar(held, project.gpu_quota, project.gpu_limit)


def _build_other_bars(project: Project) -> Sequence[tuple[str, str, Bar]]:
    """CPU and memory as the project's Queue told last, where it has told."""
    found = []
    for key, name, unit, share, scale in (
        ("cpu", "CPU", "cores", project.shares.cpu, Decimal(1)),
        ("memory", "Memory", "GiB", project.shares.memory, GIB),
    ):
        told = _parse_number(project.allocated.get(key))
        if told is not None:
            quota, limit = (
                None if each is None else each / scale for each in (share.quota, share.limit)
            )
            found.append((name, unit, build_bar(told / scale, quota, limit, unit=unit)))
    return found


def _parse_number(told: object) -> Decimal | None:
    try:
        found = Decimal(str(told)) if told is not None else None
    except ArithmeticError:
        return None
    return found if found is not None and found.is_finite() else None
