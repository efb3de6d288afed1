"""The pages on which administrators add, try, change, check, disable and remove clusters."""

import uuid
from operator import attrgetter
from typing import Any

from django.contrib import messages
from django.forms import BaseForm
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from clusters import actions, cluster_twins, connection_trial
from clusters.cluster_forms import STORED_WAY, ClusterChangeForm, ClusterForm
from clusters.cluster_saving import save_cluster
from clusters.connection_trial import ConnectionTrial
from clusters.models import Cluster
from console import edit_conflicts
from console.errors import UserError
from console.http import redirect_with_message
from console.questions import Question, render_question
from projects import access
from projects.http import Request
from projects.models import User
from projects.permissions import Entity, Verb
from projects.row_editing import edit_row
from projects.scopes import cluster_scope

hide_credentials = sensitive_post_parameters("kubeconfig", "token")


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
    return _render_form(request, form, {})


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
    form = ClusterChangeForm(
        request.POST or None,
        initial=ClusterChangeForm.values(cluster),
        is_local=cluster.is_local,
        stored_way=actions.find_sign_in_way(cluster),
    )
    if "test" in request.POST:
        return _render_trial(request, form, cluster)

    def save(version: int) -> str:
        return f"Cluster {save_cluster(pk, form, request.user, version).name} is changed."

    return edit_row(
        request,
        form,
        cluster,
        entity="cluster",
        back=reverse("cluster", args=[pk]),
        values=_list_compared_values,
        reload=lambda: _get_cluster(pk),
        save=save,
        get_version=attrgetter("edit_version"),
        render=_render_form,
        context={"cluster": cluster},
    )


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


def _list_compared_values(cluster: Cluster) -> dict[str, str]:
    """Return what a second editor is shown of a cluster: no secrets, but where they are for."""
    return {
        "name": cluster.name,
        "way": cluster.way,
        "server": cluster.server,
        "prometheus_url": cluster.prometheus_url,
        "prometheus_matcher": cluster.prometheus_matcher,
        "prometheus_way": actions.find_sign_in_way(cluster),
    }


def _render_trial(request: Request, form: ClusterForm, cluster: Cluster | None) -> HttpResponse:
    """Render how the connection trial went: a part of the page with scripts, else in the form as it
    was typed.
    """
    trial = _run_trial(form, cluster, request.user)
    if request.htmx:
        return render(request, "clusters/_trial.html", {"trial": trial, "form": form})
    # What was started from stays with the form.
    started_from = request.POST.get(edit_conflicts.START_FIELD, "")
    context = {"cluster": cluster, "trial": trial, "started_from": started_from}
    return _render_form(request, form, context, status=200 if trial else 0)


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
    request: Request, form: BaseForm, context: dict[str, Any], status: int = 0
) -> HttpResponse:
    """Render the form of a new or known cluster; the status is 422 where it has errors."""
    context = {"form": form} | context
    status = status or (422 if form.errors else 200)
    return render(request, "clusters/cluster_form.html", context, status=status)
