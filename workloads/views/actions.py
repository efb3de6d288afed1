"""Actions on one or many workloads from the pages: stop, run, delete."""

import uuid
from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST
from django_htmx.http import trigger_client_event

from console import http
from console.errors import UserError
from projects.http import Request
from projects.models import User
from workloads import actions
from workloads.models import Workload

BULK = {"stop": "Stop", "run": "Run", "delete": "Delete"}


@require_POST
def stop(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Stop the workload: free what it holds; keep its definition and logs."""
    return _act_and_answer(
        request, pk, actions.stop, "{} is being stopped.", "{} is being stopped already."
    )


@require_POST
def run(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Run the workload again, as its next attempt."""
    return _act_and_answer(
        request, pk, actions.run, "{} runs again.", "{} has been started already."
    )


@require_POST
def delete(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Delete the workload; the page has asked before."""
    return _act_and_answer(
        request, pk, actions.remove, "{} is being deleted.", "{} is being deleted already."
    )


@require_POST
def exclude_node(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Leave a node out of the workload's next runs, and run it again at once where that is asked.

    With `allow` the node may be used again.
    """
    node, runs_again = request.POST.get("node", "")[:253], request.POST.get("run") == "1"
    is_allowed = request.POST.get("allow") == "1"

    def act(workload: Workload, user: User) -> bool:
        others = [each for each in workload.excluded_nodes if each != node]
        nodes = others if is_allowed else [*others, node]
        return actions.exclude_nodes(workload, nodes, user, runs_again=runs_again)

    if is_allowed:
        success_text = f"{{}} may use {node} again, from its next run on."
    elif runs_again:
        success_text = f"{{}} runs again without {node}, as soon as it has stopped."
    else:
        success_text = f"{{}} does not use {node} any more, from its next run on."
    return _act_and_answer(request, pk, act, success_text, "Nothing of that is new for {}.")


def _act_and_answer(
    request: Request,
    pk: uuid.UUID,
    act: Callable[[Workload, User], bool],
    success_text: str,
    already: str,
) -> HttpResponse:
    workload = get_object_or_404(Workload.objects.visible_to(request.user), pk=pk)
    text = (success_text if act(workload, request.user) else already).replace("{}", workload.name)
    if request.htmx:
        # The parts on the page that show it ask anew, even where no stream tells them.
        answer = HttpResponse(status=204)
        trigger_client_event(answer, "muster:toast", {"text": text, "kind": "success"})
        return trigger_client_event(answer, "muster:acted", {"ids": [str(workload.pk)]})
    messages.success(request, text)
    return redirect(_find_return_address(request, reverse("workload", args=[workload.pk])))


def _find_return_address(request: Request, default: str) -> str:
    """Return the form's `next` if it is a page of ours, else the default."""
    address = request.POST.get("next", "")
    return (
        address
        if address.startswith("/") and url_has_allowed_host_and_scheme(address, allowed_hosts=None)
        else default
    )


@require_POST
def bulk(request: Request) -> HttpResponse:
    """Apply one action to all chosen workloads and show the result of each."""
    action, ids = request.POST.get("action", ""), request.POST.getlist("id")
    if action not in BULK:
        raise UserError(
            "Choose what to do with the workloads: stop, run or delete them.", status=400
        )
    if not ids:
        raise UserError("No workload is chosen. Tick the boxes at the beginning of the rows first.")
    results = actions.apply_bulk_action(ids, action, request.user)
    failed = sum(not result.ok for result in results)
    context = {
        "results": results,
        "action": BULK[action],
        "failed": failed,
        "done": len(results) - failed,
    }
    context["next"] = _find_return_address(request, reverse("workloads"))
    answer = http.render_page(request, "workloads/bulk.html", "workloads/_bulk.html", context)
    return (
        trigger_client_event(answer, "muster:acted", {"ids": [result.id for result in results]})
        if request.htmx
        else answer
    )
