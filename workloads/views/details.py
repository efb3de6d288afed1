"""A workload's details: state, diagnosis, history, logs and definition, as a page and a pane."""

import uuid
from collections.abc import Collection
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django_htmx.http import push_url

from clusters.models import Cluster, Node
from console import http
from console.shell_commands import build_curl
from projects.http import Request
from workloads import asset_uses, queries, runtime_limits, workload_manifests
from workloads.diagnosis import LOOK_INTO_LOG
from workloads.manifests import CannotBuild, dump_yaml
from workloads.models import Event, Workload
from workloads.pod_counts import Standing, decode_counts
from workloads.queries.data_delivery import load_preparations
from workloads.queries.read_only_mounts import are_mounts_enforced
from workloads.rest.submit_command import build_submit_command
from workloads.rest.writing import build_rest_body, get_rest_path
from workloads.specs import UnreadableSpec, decode_spec
from workloads.states import ACTIVE, ENDING, STARTING
from workloads.views import (
    data_delivery,
    describing,
    findings,
    logs,
    metrics,
    pod_changes,
    rendering,
    timeline,
    training,
)
from workloads.views.abilities import list_abilities
from workloads.views.machine_picture import build_picture

TABS = {
    "history": "Event history",
    "timeline": "Timeline",
    "metrics": "Metrics",
    "progress": "Progress",
    "logs": "Logs",
    "details": "Details",
}
MOST_ATTEMPTS = 200
MOST_POD_NAMES = 50
"""Pods that the history's filter offers; of more, one types the name."""
SEARCHABLE_PODS = 20
"""From more pods on, there is a search for them."""


@require_safe
@never_cache
def details(request: Request, pk: uuid.UUID, tab: str = "history") -> HttpResponse:
    """Show the page at one of its tabs.

    For htmx, show only the part that is also the side pane.
    """
    if tab not in TABS:
        raise Http404("There is no such part of a workload.")
    workload = _get_workload(request, pk)
    context = _build_head_context(request, workload) | {
        "tab": tab,
        "tabs": _build_tabs(workload, tab, _is_pane(request)),
    }
    if tab == "history":
        context |= _build_history_context(request, workload)
        context |= pod_changes.build_pod_changes_context(request, workload)
        context |= data_delivery.build_delivery_context(request, workload)
    elif tab == "timeline":
        context |= timeline.build_timeline_context(request, workload)
    elif tab == "metrics":
        context |= metrics.build_metrics_context(request, workload)
    elif tab == "progress":
        context |= training.build_training_context(workload)
    elif tab == "logs":
        context |= logs.build_panel_context(request, workload)
    else:
        context |= _build_definition_context(workload) | {
            "made_from": asset_uses.list_used_assets(workload, request.user)
        }
    return http.render_page(request, "workloads/details.html", "workloads/_details.html", context)


@require_safe
@never_cache
def head(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Show name, status, actions, diagnosis and attempts: what changes while one looks."""
    tab = request.GET.get("tab", "")
    return render(
        request,
        "workloads/_head.html",
        _build_head_context(request, _get_workload(request, pk))
        | {"tab": tab if tab in TABS else "history"},
    )


@require_safe
@never_cache
def events(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Show the filtered list of events; the page's address follows."""
    workload = _get_workload(request, pk)
    context = _build_history_context(request, workload) | {"w": workload, "pane": _is_pane(request)}
    answer = render(request, "workloads/_events.html", context)
    # What asks by itself after a change says so by its id; only what a person clicked moves the
    # address.
    by_itself = request.htmx.trigger == "history"
    return (
        answer
        if _is_pane(request) or by_itself
        else push_url(answer, _build_address(workload, "history", context["query"]))
    )


@require_safe
@never_cache
def pods(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Show a page of the pods of all attempts: a dialog, and a page for direct links."""
    workload = get_object_or_404(
        Workload.objects.visible_to(request.user).defer("spec", "job", "pod_group", "data_job"),
        pk=pk,
    )
    wanted = queries.PodFilter.from_query(request.GET)
    page = queries.load_pod_page(workload, wanted)
    context = {
        "w": workload,
        "page": page,
        "wanted": wanted,
        "query": urlencode({"q": wanted.search, "status": wanted.status}),
        "searchable": page.total > SEARCHABLE_PODS or bool(wanted),
        "ranked": any(pod.rank is not None for pod in page.pods),
        "nodes": _list_visible_nodes(request, workload, {pod.node for pod in page.pods}),
    }
    return http.render_page(request, "workloads/pods.html", "workloads/_pods.html", context)


def _list_visible_nodes(
    request: Request, workload: Workload, names: Collection[str]
) -> Collection[str]:
    """Return those of these nodes that have a page which the user may see. One query."""
    visible = Cluster.objects.visible_to(request.user).filter(pk=workload.cluster_id)
    nodes = Node.objects.filter(cluster__in=visible, name__in=names)
    return set(nodes.values_list("name", flat=True))


def _get_workload(request: Request, pk: uuid.UUID) -> Workload:
    visible = Workload.objects.visible_to(request.user).select_related(
        "project", "cluster", "submitted_by", "progress"
    )
    workload: Workload = get_object_or_404(visible, pk=pk)
    return workload


def _is_pane(request: Request) -> bool:
    return request.GET.get("pane") == "1" and bool(request.htmx)


def _build_address(workload: Workload, tab: str, query: str = "") -> str:
    path = (
        reverse("workload-tab", args=[workload.pk, tab])
        if tab != "history"
        else reverse("workload", args=[workload.pk])
    )
    return f"{path}?{query}" if query else path


def _build_tabs(workload: Workload, now: str, pane: bool) -> list[dict[str, Any]]:
    query = "pane=1" if pane else ""
    return [
        {
            "name": name,
            "title": title,
            "here": name == now,
            "href": _build_address(workload, name),
            "part": _build_address(workload, name, query),
        }
        for name, title in TABS.items()
    ]


def _build_head_context(request: Request, workload: Workload) -> dict[str, Any]:
    attempts = workload.attempts.select_related("requested_by").order_by("-number")[:MOST_ATTEMPTS]
    diagnosis = queries.diagnose_workload(workload, request.user)
    why_log = _build_log_link(workload, diagnosis) if diagnosis else ""
    return {
        "w": workload,
        "pane": _is_pane(request),
        "can": list_abilities(workload, request.user),
        "why": diagnosis,
        "why_log": why_log,
        "why_help": _choose_help(diagnosis, why_log) if diagnosis else "",
        "attempts": list(attempts),
        "runtime": rendering.load_runtime(workload),
        "running_data_workers": _count_running_data_workers(workload),
        "forecast": queries.view_forecast(workload, request.user),
        "preparation": load_preparations([workload]).get(workload.pk),
        "limits": runtime_limits.load_limit_uses(workload),
        "progress": queries.view_progress(workload),
        "findings": findings.build_finding_blocks(workload, request.user),
        "is_live": workload.status in ACTIVE | ENDING,
        # No change tells the page that nobody takes the step.
        "has_step": workload.status in STARTING | ENDING,
    }


def _choose_help(diagnosis: queries.WorkloadDiagnosis, log_link: str) -> str:
    """Return what would help, which a link to the log may say already."""
    return "" if log_link and diagnosis.help == LOOK_INTO_LOG else diagnosis.help


def _count_running_data_workers(workload: Workload) -> int:
    counts = decode_counts(workload.pod_counts)
    is_current = counts is not None and counts.attempt == workload.attempt
    return counts.data.get(Standing.READY, 0) if counts is not None and is_current else 0


def _build_log_link(workload: Workload, diagnosis: queries.WorkloadDiagnosis) -> str:
    """Return the address of the log that a diagnosis mentions, "" where there is none.

    Without a line it is the pod's log.
    """
    if diagnosis.log is not None and diagnosis.offset is not None:
        return logs.build_line_link(diagnosis.log, diagnosis.offset)
    return (
        _build_address(workload, "logs", urlencode({"pod": diagnosis.pod.pk}))
        if diagnosis.pod is not None
        else ""
    )


def _build_history_context(request: Request, workload: Workload) -> dict[str, Any]:
    wanted = queries.HistoryFilter.from_query(request.GET)
    page = queries.load_history(workload, wanted, request.GET.get("page", ""))
    words = queries.load_event_words(page.rows, workload, request.user)
    pane = [("pane", "1")] if _is_pane(request) else []
    page_cursor = request.GET.get("page", "")

    def link(cursor: str = "") -> dict[str, str]:
        """The page of the details for who has no scripts, and the list alone for htmx."""
        query = [*wanted.query_pairs(), *([("page", cursor)] if cursor else [])]
        part = reverse("workload-events", args=[workload.pk])
        return {
            "href": _build_address(workload, "history", urlencode(query)),
            "part": f"{part}?{urlencode([*query, *pane])}",
        }

    return {
        "events": [
            (each, findings.get_event_heading(each), words[each.pk].text) for each in page.rows
        ],
        "wanted": wanted,
        "kinds": [(kind.value, kind.label, kind.value in wanted.kinds) for kind in Event.Kind],
        "pod_names": queries.list_pod_names(workload, MOST_POD_NAMES + 1),
        "most_pod_names": MOST_POD_NAMES,
        "older": link(page.next) if page.next else None,
        "newer": link(page.previous) if page.previous else None,
        "newest": link(),
        "is_newest": not page.previous,
        "query": urlencode(
            [*wanted.query_pairs(), *([("page", page_cursor)] if page_cursor else [])]
        ),
    }


def _build_definition_context(workload: Workload) -> dict[str, Any]:
    """Return the definition as fields, as the cluster's objects, as a REST call and a command.

    `unreadable` says why none of it can be shown.
    """
    try:
        spec = decode_spec(workload.spec)
    except (UnreadableSpec, AttributeError) as error:
        return {
            "unreadable": (
                "What was asked for is stored in a form that this version of Muster cannot read: "
                f"{error}."
            )
        }
    try:
        manifest = dump_yaml(workload_manifests.build_for_workload(workload))
    except CannotBuild:
        manifest = ""
    body = build_rest_body(
        spec, project_id=str(workload.project_id), cluster_id=str(workload.cluster_id)
    )
    # Asked for only where it matters: most workloads write to all that they have.
    enforces_mounts = not describing.has_read_only_mounts(spec) or are_mounts_enforced(
        workload.cluster
    )
    return {
        "spec": spec,
        "picture": build_picture(spec),
        "sections": describing.describe_spec(spec, enforces_mounts=enforces_mounts),
        "yaml": manifest,
        "rest": build_curl(f'"$MUSTER{get_rest_path(spec)}"', body),
        "command": build_submit_command(spec, workload.project.name),
    }
