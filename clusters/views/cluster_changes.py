"""The pages on which administrators add, try, change, check, disable and remove clusters."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from clusters import actions, cluster_twins, connection_trial
from clusters.cluster_forms import STORED_WAY, ClusterChangeForm, ClusterForm
from clusters.connection_trial import ConnectionTrial
from clusters.models import Cluster
from console import edit_conflicts
from console.errors import UserError
from console.http import redirect_with_message
from console.questions import Question, render_question
from projects import access
from projects.http import Request
from projects.last_changes import find_last_change
from projects.models import User
from projects.permissions import Entity, Verb
from projects.scopes import cluster_scope

hide_credentials = sensitive_post_parameters("kubeconfig", "token")

EditedValues = Mapping[str, Sequence[str]]
"""What a form shows of a row, by its fields."""


@require_http_methods(["GET", "POST"])
@never_cache
@hide_credentials
def cluster_new(request: Request) -> HttpResponse:
    """Add a cluster, or only try the connection; the form keeps what was typed."""
    access.require(request.user, Verb.CREATE, Entity.CLUSTERS)
    form = ClusterForm(request.POST or None)
    if "test" in request.POST:
        return _render_trial(request, form, None)
    if request.method == "POST" and form.is_valid():
        way, kubeconfig = form.credentials
        try:
            cluster = actions.register(
                form.cleaned_data["name"], kubeconfig, way=way, user=request.user
            )
        except UserError as refusal:
            form.add_error(refusal.field or None, refusal.text)
        else:
            twins = cluster_twins.find_twins(cluster, Cluster.objects.visible_to(request.user))
            if warning := cluster_twins.describe_twins(twins):
                messages.warning(request, warning)
            return redirect_with_message(
                request,
                reverse("cluster", args=[cluster.pk]),
                f"Cluster {cluster.name} is added; it is being asked what it can do.",
            )
    return _render_form(request, form, None)


@require_http_methods(["GET", "POST"])
@never_cache
@hide_credentials
def cluster_edit(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Change the name, the credentials or the Prometheus of a cluster. Stored credentials are shown
    to nobody.

    The second of two editors is shown what the first changed; of credentials, their address and
    way.
    """
    access.require(request.user, Verb.EDIT, Entity.CLUSTERS, cluster_scope(pk))
    cluster = _get_cluster(pk)
    stored = {
        "name": cluster.name,
        "prometheus_url": cluster.prometheus_url,
        "prometheus_matcher": cluster.prometheus_matcher,
    }
    form = ClusterChangeForm(
        request.POST or None,
        initial=stored,
        is_local=cluster.is_local,
        stored_way=actions.find_sign_in_way(cluster),
    )
    if "test" in request.POST:
        return _render_trial(request, form, cluster)
    if request.method == "POST" and _is_changed_meanwhile(request, cluster):
        # Before it is validated: against the changed row what was sent may make no sense.
        return _render_form(request, form, cluster, is_late=True)
    if request.method == "POST" and form.is_valid():
        try:
            # All of it, or nothing: one of the changes may be refused.
            with transaction.atomic():
                _lock_unchanged(request, cluster)
                _apply_form(cluster, form, request.user)
        except edit_conflicts.ChangedMeanwhile:
            return _render_form(request, form, _get_cluster(pk), is_late=True)
        except UserError as refusal:
            form.add_error(refusal.field or None, refusal.text)
            # What was changed of it before the refusal is not stored.
            cluster = _get_cluster(pk)
        else:
            return redirect_with_message(
                request, reverse("cluster", args=[pk]), f"Cluster {cluster.name} is changed."
            )
    return _render_form(request, form, cluster)


@require_POST
def cluster_check(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Queue a check of the cluster; its page shows the result when it is there."""
    access.require(request.user, Verb.EDIT, Entity.CLUSTERS, cluster_scope(pk))
    actions.request_check(_get_cluster(pk))
    return redirect_with_message(request, reverse("cluster", args=[pk]))


@require_POST
def cluster_enable(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Enable the cluster."""
    access.require(request.user, Verb.EDIT, Entity.CLUSTERS, cluster_scope(pk))
    cluster = _get_cluster(pk)
    actions.enable(cluster, user=request.user)
    return redirect_with_message(
        request,
        reverse("cluster", args=[pk]),
        f"Cluster {cluster.name} is enabled; it is being asked how it is.",
    )


@require_POST
def cluster_disable(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Disable the cluster: nothing is launched in it or asked of it."""
    access.require(request.user, Verb.EDIT, Entity.CLUSTERS, cluster_scope(pk))
    cluster = _get_cluster(pk)
    actions.disable(cluster, user=request.user)
    return redirect_with_message(
        request,
        reverse("cluster", args=[pk]),
        f"Cluster {cluster.name} is disabled. What runs there goes on.",
    )


@require_http_methods(["GET", "POST"])
def cluster_remove(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Ask before a cluster is removed, with the hindrances and effects, and remove it."""
    access.require(request.user, Verb.DELETE, Entity.CLUSTERS, cluster_scope(pk))
    cluster = _get_cluster(pk)
    if request.method == "POST":
        actions.remove(cluster, request.user, force=request.POST.get("force") == cluster.name)
        messages.success(
            request, f"Cluster {cluster.name} is removed, and its credentials with it."
        )
        return redirect("clusters")
    question = Question(
        title=f"Remove {cluster.name}",
        button="Remove",
        crumbs=[
            (reverse("clusters"), "Clusters"),
            (reverse("cluster", args=[pk]), cluster.name),
        ],
        template="clusters/_remove_words.html",
        # The browser checks the required box of a form that it sends itself.
        is_answered_in_place=False,
    )
    return render_question(
        request, question, {"cluster": cluster, "hanging": actions.load_dependents(cluster)}
    )


def _get_cluster(pk: uuid.UUID) -> Cluster:
    cluster: Cluster = get_object_or_404(Cluster.objects.there().defer("kubeconfig"), pk=pk)
    return cluster


def _lock_unchanged(request: Request, cluster: Cluster) -> None:
    """Lock the row of a cluster that was loaded before.

    Raises ChangedMeanwhile where it is not any more what the sent form started from.
    """
    rows = Cluster.objects.there().defer("kubeconfig").select_for_update(no_key=True)
    row = get_object_or_404(rows, pk=cluster.pk)
    if _is_changed_meanwhile(request, row, _list_values(cluster)):
        raise edit_conflicts.ChangedMeanwhile(0, f"Cluster {cluster.name}")


def _is_changed_meanwhile(
    request: Request, cluster: Cluster, loaded_values: EditedValues | None = None
) -> bool:
    """Return whether a cluster is not any more what the sent form started from.

    It has no version, so its values are compared; where the form does not say, with those that were
    loaded before.
    """
    start = edit_conflicts.parse_start(request.POST.get(edit_conflicts.START_FIELD, ""))
    values = loaded_values if start is None else start.values
    return values is not None and bool(
        edit_conflicts.find_differences(values, _list_values(cluster))
    )


def _list_values(cluster: Cluster) -> EditedValues:
    """Return what the form shows of the cluster, as it would be typed."""
    values = {
        "name": cluster.name,
        "way": cluster.way,
        "server": cluster.server,
        "prometheus_url": cluster.prometheus_url,
        "prometheus_matcher": cluster.prometheus_matcher,
        "prometheus_way": actions.find_sign_in_way(cluster),
    }
    return {name: [value] if value else [] for name, value in values.items()}


def _apply_form(cluster: Cluster, form: ClusterChangeForm, user: User) -> None:
    if form.cleaned_data["name"] != cluster.name:
        actions.rename(cluster, form.cleaned_data["name"], user=user)
    if not form.keeps_credentials:
        way, kubeconfig = form.credentials
        actions.reconnect(cluster, kubeconfig, way=way, user=user)
    url = form.cleaned_data["prometheus_url"]
    if url or cluster.prometheus_url:
        actions.set_prometheus(cluster, url, form.sign_in, matcher=form.matcher, user=user)


def _render_trial(request: Request, form: ClusterForm, cluster: Cluster | None) -> HttpResponse:
    """Render how the connection trial went: a part of the page with scripts, else in the form as it
    was typed.
    """
    trial = _run_trial(form, cluster, request.user)
    if request.htmx:
        return render(request, "clusters/_trial.html", {"trial": trial, "form": form})
    return _render_form(request, form, cluster, trial)


def _run_trial(form: ClusterForm, cluster: Cluster | None, user: User) -> ConnectionTrial | None:
    """Try the typed connection; None where it cannot be tried. A trial needs no name."""
    visible = Cluster.objects.visible_to(user)
    form.is_valid()
    form.errors.pop("name", None)
    if form.errors:
        return None
    if cluster is not None and form.cleaned_data["way"] == STORED_WAY:
        return connection_trial.try_stored_connection(cluster, visible)
    way, kubeconfig = form.credentials
    if cluster is not None:
        actions.require_way(cluster, way, user)
    return connection_trial.try_connection(way, kubeconfig, visible, cluster=cluster)


def _render_form(
    request: Request,
    form: ClusterForm,
    cluster: Cluster | None,
    trial: ConnectionTrial | None = None,
    *,
    is_late: bool = False,
) -> HttpResponse:
    context: dict[str, Any] = {"form": form, "cluster": cluster, "trial": trial}
    if cluster is not None:
        context |= _build_conflict_context(request, form, cluster, is_late=is_late)
    status = 422 if form.errors and not trial else 200
    return render(request, "clusters/cluster_form.html", context, status=409 if is_late else status)


def _build_conflict_context(
    request: Request, form: ClusterForm, cluster: Cluster, *, is_late: bool
) -> dict[str, Any]:
    """Return the signed start of the form, and after a conflict what changed meanwhile."""
    if request.method == "POST" and not is_late:
        # Shown again for another reason: it still starts from what it started from.
        return {"started_from": request.POST.get(edit_conflicts.START_FIELD, "")}
    if not is_late:
        return edit_conflicts.build_conflict_context(0, _list_values(cluster))
    changed_by, changed_at = find_last_change("cluster", cluster.pk)
    return edit_conflicts.build_conflict_context(
        0,
        _list_values(cluster),
        sent=request.POST,
        form=form,
        changed_by=changed_by,
        changed_at=changed_at,
    )
