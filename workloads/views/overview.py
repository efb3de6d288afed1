"""The overview, the figures of its charts, and the state on a project's page."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console import pagination
from projects import access
from projects.http import Request
from projects.models import Project
from projects.permissions import Entity, Verb
from projects.scopes import project_scope
from workloads.overview import attention, bars, figures, gpu_holders, project_page, quotas
from workloads.overview.history import DEFAULT, SPANS, AllocationHistory, load_history
from workloads.overview.viewer_scope import ProjectIds, ViewerScope
from workloads.queries import waiting

CHARTS = ("status", "projects", "departments", "holders", "waiting")
"""Charts with CSV, beside the allocation over time."""


@require_safe
@never_cache
def overview(request: Request) -> HttpResponse:
    """Show resources, their holders, waiting and failed workloads; each tile if the reader may see
    it.
    """
    access.require_anywhere(request.user, Verb.VIEW, Entity.OVERVIEW)
    sight = ViewerScope(request.user)
    chosen = request.GET.get("range", "")
    context: dict[str, Any] = {
        "sight": sight,
        "spans": SPANS,
        "span": chosen if chosen in SPANS else DEFAULT,
    }
    if sight.sees_nodes:
        clusters = [each.pk for each in sight.clusters]
        holdings, away = (
            waiting.load_gpu_holdings(clusters),
            figures.load_unavailable_gpus(clusters),
        )
        context |= {
            "machines": figures.load_node_totals(clusters, holdings, away),
            "clusters": sight.clusters,
            "holders": gpu_holders.load_holders(clusters, sight.workloads, holdings, away),
        }
    if sight.sees_workloads:
        context |= _build_workloads_context(request, sight)
    if sight.sees_projects or sight.sees_departments:
        now = quotas.load_gpu_usage(sight)
        context |= {"projects": quotas.rank_projects(sight, now)} if sight.sees_projects else {}
        context |= (
            {"departments": quotas.rank_departments(sight, now)} if sight.sees_departments else {}
        )
    return render(request, "overview/overview.html", context)


@require_safe
@never_cache
def allocation(request: Request) -> HttpResponse:
    """Return the allocation of projects over time, as JSON or with `format=csv`."""
    access.require_anywhere(request.user, Verb.VIEW, Entity.OVERVIEW)
    return _build_allocation_response(request, ViewerScope(request.user).workloads, "allocation")


@require_safe
@never_cache
def chart(request: Request, chart: str) -> HttpResponse:
    """Return the figures of another chart as CSV."""
    access.require_anywhere(request.user, Verb.VIEW, Entity.OVERVIEW)
    if chart not in CHARTS:
        raise Http404("There is no such picture.")
    return _build_csv_response(chart, _list_chart_rows(request, ViewerScope(request.user), chart))


@require_safe
@never_cache
def project_state(request: Request, pk: int) -> HttpResponse:
    """Show the state of a project: the part of its page that is refreshed."""
    project = _get_project(request, pk)
    return render(request, project_page.TEMPLATE, project_page.build_context(project, request.user))


@require_safe
@never_cache
def project_allocation(request: Request, pk: int) -> HttpResponse:
    """Return the allocation of one project over time, as JSON or with `format=csv`."""
    project = _get_project(request, pk)
    access.require(request.user, Verb.VIEW, Entity.WORKLOADS, project_scope(project))
    return _build_allocation_response(
        request, frozenset({project.pk}), f"allocation-{project.name}"
    )


def _get_project(request: Request, pk: int) -> Project:
    visible = (
        Project.objects.visible_to(request.user)
        .select_related("department", "cluster")
        .defer("cluster__kubeconfig")
    )
    project: Project = get_object_or_404(visible, pk=pk)
    return project


def _build_workloads_context(request: Request, sight: ViewerScope) -> dict[str, Any]:
    rows = sight.workload_rows()
    counts = attention.count_by_status(rows)
    return {
        "running_count": sum(counts.get(status, 0) for status in attention.RUNNING_STATUSES),
        "waiting_count": sum(counts.get(status, 0) for status in attention.WAITING_STATUSES),
        "running_statuses": [each.value for each in attention.RUNNING_STATUSES],
        "waiting_statuses": [each.value for each in attention.WAITING_STATUSES],
        "statuses": list(bars.split_bar(counts)),
        "workload_count": sum(counts.values()),
        "idle": figures.load_idle_gpus(sight.workloads),
        "troubles": attention.load_troubles(rows),
        "waiting": attention.load_longest_waiting(rows, request.user),
        "failed": attention.load_last_failed(rows),
    }


def _build_allocation_response(request: Request, projects: ProjectIds, file: str) -> HttpResponse:
    chosen = request.GET.get("range", "")
    allocation_history = load_history(projects, SPANS.get(chosen, SPANS[DEFAULT]))
    if request.GET.get("format") == "csv":
        return _build_csv_response(file, _list_allocation_rows(allocation_history))
    return JsonResponse(
        {
            "at": [int(moment.timestamp()) for moment in allocation_history.moments],
            "lines": [
                {"name": line.name, "project": line.project, "points": line.points}
                for line in allocation_history.lines
            ],
            "quota": allocation_history.quota,
            "idle": allocation_history.idle,
            "used": allocation_history.used,
            "running": allocation_history.running,
            "waiting": allocation_history.waiting,
        }
    )


def _list_allocation_rows(allocation_history: AllocationHistory) -> Iterator[Sequence[object]]:
    yield [
        "Time (UTC)",
        *(line.name for line in allocation_history.lines),
        "GPU quota",
        "Idle GPUs",
        "GPUs in use",
        "Running workloads",
        "Waiting workloads",
    ]
    columns = [
        *(line.points for line in allocation_history.lines),
        allocation_history.quota,
        allocation_history.idle,
        allocation_history.used,
        allocation_history.running,
        allocation_history.waiting,
    ]
    for number, moment in enumerate(allocation_history.moments):
        yield [moment.strftime("%Y-%m-%d %H:%M:%S"), *(column[number] for column in columns)]


def _list_chart_rows(
    request: Request, sight: ViewerScope, chart: str
) -> Iterator[Sequence[object]]:
    if chart == "status" and sight.sees_workloads:
        yield ["Status", "Workloads"]
        yield from (
            [status.label, count]
            for status, count in attention.count_by_status(sight.workload_rows()).items()
        )
    elif (chart == "projects" and sight.sees_projects) or (
        chart == "departments" and sight.sees_departments
    ):
        list_all = quotas.list_projects if chart == "projects" else quotas.list_departments
        yield [
            "Project" if chart == "projects" else "Department",
            "Allocated GPUs",
            "GPU quota",
            "GPU limit",
        ]
        yield from (
            [row.name, row.allocated, row.quota, row.limit]
            for row in list_all(sight, quotas.load_gpu_usage(sight))
        )
    elif chart == "holders" and sight.sees_nodes:
        yield ["Holder", "GPUs", "Of these preemptible"]
        clusters = [each.pk for each in sight.clusters]
        holders = gpu_holders.load_holders(
            clusters,
            sight.workloads,
            waiting.load_gpu_holdings(clusters),
            figures.load_unavailable_gpus(clusters),
        )
        yield from ([row.name, row.gpus, row.preemptible] for row in holders.rows)
    elif chart == "waiting" and sight.sees_workloads:
        yield ["Workload", "Project", "Status", "Since (UTC)", "Requested GPUs", "Why"]
        for each in attention.load_longest_waiting(sight.workload_rows(), request.user):
            row = each.workload
            since = row.status_at.strftime("%Y-%m-%d %H:%M:%S")
            yield [
                row.name,
                row.project.name,
                row.state.label,
                since,
                row.gpus_requested,
                each.sentence,
            ]
    else:
        raise Http404("There is nothing here that you may see.")


def _build_csv_response(file: str, lines: Iterable[Sequence[object]]) -> HttpResponse:
    answer = HttpResponse(
        "".join(pagination.format_csv_line(line) for line in lines),
        content_type="text/csv; charset=utf-8",
    )
    answer["Content-Disposition"] = f'attachment; filename="{file}.csv"'
    return answer
