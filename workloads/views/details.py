"""A workload's details, as a page and as a side pane: what it is, why it is so, what happened, its
logs, what was asked for.
"""

import json
import shlex
import uuid
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django_htmx.http import push_url

from console import http
from projects.http import Request
from workloads import asset_uses, blueprint, limits, queries
from workloads.manifests import CannotBuild, as_rest, as_yaml, rest_path
from workloads.models import Event, Workload
from workloads.specs import BadSpec, from_json
from workloads.states import ACTIVE, LEAVING
from workloads.views import describing, logs, rendering
from workloads.views.abilities import abilities

TABS = {"history": "Event history", "logs": "Logs", "details": "Details"}
MOST_ATTEMPTS = 200


@require_safe
@never_cache
def details(request: Request, pk: uuid.UUID, tab: str = "history") -> HttpResponse:
    """The page at one of its tabs; for htmx the part of it that is also the side pane."""
    if tab not in TABS:
        raise Http404("There is no such part of a workload.")
    workload = _workload(request, pk)
    context = _head(request, workload) | {
        "tab": tab,
        "tabs": _tabs(workload, tab, _is_pane(request)),
    }
    if tab == "history":
        context |= _history(request, workload)
    elif tab == "logs":
        context |= logs.panel(request, workload)
    else:
        context |= _definition(workload) | {
            "made_from": asset_uses.made_from(workload, request.user)
        }
    return http.page(request, "workloads/details.html", "workloads/_details.html", context)


@require_safe
@never_cache
def head(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Name, status, actions, diagnosis and attempts: what changes while one looks."""
    tab = request.GET.get("tab", "")
    return render(
        request,
        "workloads/_head.html",
        _head(request, _workload(request, pk)) | {"tab": tab if tab in TABS else "history"},
    )


@require_safe
@never_cache
def events(request: Request, pk: uuid.UUID) -> HttpResponse:
    """The list of events as it is filtered; the page's address follows."""
    workload = _workload(request, pk)
    context = _history(request, workload) | {"w": workload, "pane": _is_pane(request)}
    answer = render(request, "workloads/_events.html", context)
    # What asks by itself after a change says so by its id; only what a person clicked moves the
    # address.
    by_itself = request.htmx.trigger == "history"
    return (
        answer
        if _is_pane(request) or by_itself
        else push_url(answer, _address(workload, "history", context["query"]))
    )


@require_safe
@never_cache
def pods(request: Request, pk: uuid.UUID) -> HttpResponse:
    """The pods of all attempts: a dialog, and a page for who comes by the address."""
    workload = get_object_or_404(
        Workload.objects.visible_to(request.user).defer("spec", "job", "pod_group"), pk=pk
    )
    found = queries.pods_of(workload)
    context = {
        "w": workload,
        "pods": found,
        "cut": len(found) >= queries.MOST_PODS,
        "ranked": any(pod.rank is not None for pod in found),
    }
    return http.page(request, "workloads/pods.html", "workloads/_pods.html", context)


def _workload(request: Request, pk: uuid.UUID) -> Workload:
    wanted = Workload.objects.visible_to(request.user).select_related(
        "project", "cluster", "submitted_by"
    )
    found: Workload = get_object_or_404(wanted, pk=pk)
    return found


def _is_pane(request: Request) -> bool:
    return request.GET.get("pane") == "1" and bool(request.htmx)


def _address(workload: Workload, tab: str, query: str = "") -> str:
    path = (
        reverse("workload-tab", args=[workload.pk, tab])
        if tab != "history"
        else reverse("workload", args=[workload.pk])
    )
    return f"{path}?{query}" if query else path


def _tabs(workload: Workload, now: str, pane: bool) -> list[dict[str, Any]]:
    query = "pane=1" if pane else ""
    return [
        {
            "name": name,
            "title": title,
            "here": name == now,
            "href": _address(workload, name),
            "part": _address(workload, name, query),
        }
        for name, title in TABS.items()
    ]


def _head(request: Request, workload: Workload) -> dict[str, Any]:
    attempts = workload.attempts.select_related("asked_by").order_by("-number")[:MOST_ATTEMPTS]
    found = queries.diagnosis_of(workload, request.user)
    return {
        "w": workload,
        "pane": _is_pane(request),
        "can": abilities(workload, request.user),
        "why": found,
        "why_log": _log_link(workload, found) if found else "",
        "attempts": list(attempts),
        "runtime": rendering.runtime(workload),
        "limits": limits.uses(workload),
        "is_live": workload.status in ACTIVE | LEAVING,
    }


def _log_link(workload: Workload, found: queries.Explained) -> str:
    """The place of the log that a diagnosis speaks of; the pod's log where it speaks of no line; ""
    where there is none.
    """
    if found.log is not None and found.at is not None:
        return logs.link_to(found.log, found.at)
    return (
        _address(workload, "logs", urlencode({"pod": found.pod.pk}))
        if found.pod is not None
        else ""
    )


def _history(request: Request, workload: Workload) -> dict[str, Any]:
    wanted = queries.HistoryFilter.read(request.GET)
    page = queries.history(workload, wanted, request.GET.get("page", ""))
    pane = [("pane", "1")] if _is_pane(request) else []
    here = request.GET.get("page", "")

    def link(cursor: str = "") -> dict[str, str]:
        """The page of the details for who has no scripts, and the list alone for htmx."""
        query = [*wanted.pairs(), *([("page", cursor)] if cursor else [])]
        part = reverse("workload-events", args=[workload.pk])
        return {
            "href": _address(workload, "history", urlencode(query)),
            "part": f"{part}?{urlencode([*query, *pane])}",
        }

    return {
        "events": page.rows,
        "wanted": wanted,
        "kinds": [(kind.value, kind.label, kind.value in wanted.kinds) for kind in Event.Kind],
        "pod_names": sorted({pod.name for pod in queries.pods_of(workload)})[:200],
        "older": link(page.next) if page.next else None,
        "newer": link(page.previous) if page.previous else None,
        "newest": link(),
        "is_newest": not page.previous,
        "query": urlencode([*wanted.pairs(), *([("page", here)] if here else [])]),
    }


def _definition(workload: Workload) -> dict[str, Any]:
    """What was asked for as fields, as the cluster's objects, and as a REST call; `unreadable` says
    why there is none of it.
    """
    try:
        spec = from_json(workload.spec)
    except (BadSpec, AttributeError) as error:
        return {
            "unreadable": (
                "What was asked for is stored in a form that this version of Muster cannot read: "
                f"{error}."
            )
        }
    try:
        manifest = as_yaml(blueprint.of_workload(workload))
    except CannotBuild:
        manifest = ""
    body = as_rest(spec, project_id=str(workload.project_id), cluster_id=str(workload.cluster_id))
    return {
        "spec": spec,
        "sections": describing.sections(spec),
        "yaml": manifest,
        "rest": _as_curl(rest_path(spec), body),
    }


def _as_curl(path: str, body: dict[str, Any]) -> str:
    text = json.dumps(body, indent=2, ensure_ascii=False)
    return "\n".join(
        (
            f'curl -X POST "$MUSTER{path}" \\',
            '  -H "Authorization: Bearer $TOKEN" \\',
            "  -H 'Content-Type: application/json' \\",
            f"  -d {shlex.quote(text)}",
        )
    )
