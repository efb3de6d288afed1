"""The pages of quota trials: the list, the form, and what came out."""

import uuid
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from clusters.models import Cluster
from console.errors import UserError
from console.http import build_empty_state, redirect_with_message, render_page
from projects import access
from projects.http import Request
from projects.permissions import Entity, Verb
from workloads import trial_requests
from workloads.forms.trial_form import TrialForm
from workloads.models import MOST_TRIALS, TRIAL_AGE, TRIAL_WINDOW, QuotaTrial
from workloads.overview.trial_picture import build_trial_picture, compare_waits
from workloads.trials import TrialResult, decode_changes, decode_result

ABOUT = (
    "What waits would have been in the last 30 days with other quotas, weights or nodes. A trial "
    "applies nothing."
)


@require_safe
@never_cache
def trials(request: Request) -> HttpResponse:
    """Show the trials of the clusters on which the reader may try quotas."""
    access.require_anywhere(request.user, Verb.EDIT, Entity.DEPARTMENTS)
    clusters, rows = trial_requests.list_trials(request.user)
    first = reverse("quota-trial-new", args=[clusters[0].pk]) if clusters else ""
    text = (
        "Change quotas, weights or numbers of nodes, and see how long each project would have "
        "waited. Nothing is applied."
        if clusters
        else "It takes the right to change the departments and projects of a whole cluster."
    )
    return render(
        request,
        "quota_trials/trials.html",
        {
            "about": ABOUT,
            "clusters": clusters,
            "trials": [
                (row, decode_changes(row.first_changes), row.change_count - len(row.first_changes))
                for row in rows[:MOST_TRIALS]
            ],
            "days": TRIAL_AGE.days,
            **build_empty_state(
                "scale",
                "No quota trial yet"
                if clusters
                else "There is no cluster whose quotas you may try",
                text,
                action="New trial",
                url=first,
            ),
        },
    )


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def trial_new(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Show the form of a trial on a cluster, or begin one and lead to its page."""
    trial_requests.require_trials(request.user, pk)
    cluster = get_object_or_404(Cluster.objects.in_use(), pk=pk)
    refusal = ""
    if request.method == "POST":
        form = trial_requests.load_form(cluster, data=request.POST)
        if form.is_valid():
            try:
                trial = trial_requests.request_trial(request.user, cluster, form.changes)
                return redirect_with_message(request, reverse("quota-trial", args=[trial.pk]))
            except UserError as error:
                refusal = error.text
    else:
        form = trial_requests.load_form(cluster, tried=_load_tried_before(request, cluster))
    return _render_form(request, cluster, form, refusal)


def _load_tried_before(request: Request, cluster: Cluster) -> Any:
    """Return the changes of the trial that the address names; () without one of this cluster."""
    try:
        key = uuid.UUID(request.GET.get("from", ""))
    except ValueError:
        return ()
    trial = QuotaTrial.objects.filter(cluster=cluster, pk=key).only("changes").first()
    return decode_changes(trial.changes) if trial else ()


def _render_form(request: Request, cluster: Cluster, form: TrialForm, refusal: str) -> HttpResponse:
    is_wrong = bool(form.problem or form.problems) if request.method == "POST" else False
    context = {
        "cluster": cluster,
        "form": form,
        "problem": refusal or form.problem,
        "wrong": len(form.problems) if is_wrong else 0,
        "days": TRIAL_WINDOW.days,
        "most": trial_requests.MOST_ROWS,
        "has_more": len(form.projects) >= trial_requests.MOST_ROWS,
    }
    status = 409 if refusal else 422 if is_wrong else 200
    return render(request, "quota_trials/form.html", context, status=status)


@require_safe
@never_cache
def trial(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Show a trial: what is changed, and what came out as soon as it is done."""
    quota_trial = trial_requests.get_trial(request.user, pk)
    changes = decode_changes(quota_trial.changes)
    context: dict[str, Any] = {"trial": quota_trial, "changes": changes, "days": TRIAL_WINDOW.days}
    if quota_trial.result:
        result = decode_result(quota_trial.result)
        context |= {
            "result": result,
            "picture": build_trial_picture(result),
            "rows": _list_rows(result),
        }
    return render_page(request, "quota_trials/trial.html", "quota_trials/_outcome.html", context)


def _list_rows(result: TrialResult) -> list[tuple[Any, str]]:
    """Return the rows of the table, each with how its median changes; the total last."""
    rows = [*result.projects, *([result.total] if len(result.projects) > 1 else [])]
    return [(row, compare_waits(row.before.median, row.after.median)) for row in rows]


@require_POST
def trial_cancel(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Cancel a trial that is not done yet."""
    quota_trial = trial_requests.get_trial(request.user, pk)
    is_cancelled = trial_requests.cancel_trial(request.user, quota_trial)
    words = "The trial is cancelled." if is_cancelled else "The trial was done already."
    return redirect_with_message(request, reverse("quota-trial", args=[quota_trial.pk]), words)
