"""What administrators do about clusters: add, try, change, check, disable, remove."""

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from clusters import actions, trying
from clusters.adding import STORED, ClusterChangeForm, ClusterForm
from clusters.models import Cluster
from clusters.trying import Trial
from console.errors import UserError
from console.http import onward, page
from projects import access
from projects.http import Request
from projects.models import User
from projects.permissions import Entity, Verb
from projects.scopes import of_cluster

SECRET = sensitive_post_parameters("kubeconfig", "token")


@require_http_methods(["GET", "POST"])
@never_cache
@SECRET
def cluster_new(request: Request) -> HttpResponse:
    """Add a cluster, or only try whether it can be reached so; nothing that was typed is lost by
    that.
    """
    access.require(request.user, Verb.CREATE, Entity.CLUSTERS)
    form = ClusterForm(request.POST or None)
    if "test" in request.POST:
        return _tried(request, form, None)
    if request.method == "POST" and form.is_valid():
        way, kubeconfig = form.credentials
        try:
            made = actions.register(form.cleaned_data["name"], kubeconfig, way=way, by=request.user)
        except UserError as refusal:
            form.add_error(refusal.field or None, refusal.text)
        else:
            return onward(
                request,
                reverse("cluster", args=[made.pk]),
                f"Cluster {made.name} is added; it is being asked what it can do.",
            )
    return _shown(request, form, None)


@require_http_methods(["GET", "POST"])
@never_cache
@SECRET
def cluster_edit(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Another name, other credentials, or where its GPUs' use is asked for; credentials that are
    stored are shown to nobody.
    """
    access.require(request.user, Verb.EDIT, Entity.CLUSTERS, of_cluster(pk))
    found = _reach(pk)
    stored = {"name": found.name, "prometheus_url": found.prometheus_url}
    form = ClusterChangeForm(request.POST or None, initial=stored, is_local=found.is_local)
    if "test" in request.POST:
        return _tried(request, form, found)
    if request.method == "POST" and form.is_valid():
        try:
            _change(found, form, request.user)
        except UserError as refusal:
            form.add_error(refusal.field or None, refusal.text)
        else:
            return onward(
                request, reverse("cluster", args=[pk]), f"Cluster {found.name} is changed."
            )
    return _shown(request, form, found)


@require_POST
def cluster_check(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Have it found out anew what the cluster can do; its page shows it when it is."""
    access.require(request.user, Verb.EDIT, Entity.CLUSTERS, of_cluster(pk))
    actions.check(_reach(pk))
    return onward(request, reverse("cluster", args=[pk]))


@require_POST
def cluster_enable(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Use it again."""
    access.require(request.user, Verb.EDIT, Entity.CLUSTERS, of_cluster(pk))
    found = _reach(pk)
    actions.enable(found, by=request.user)
    return onward(
        request,
        reverse("cluster", args=[pk]),
        f"Cluster {found.name} is enabled; it is being asked how it is.",
    )


@require_POST
def cluster_disable(request: Request, pk: uuid.UUID) -> HttpResponse:
    """Launch nothing there, and leave it alone."""
    access.require(request.user, Verb.EDIT, Entity.CLUSTERS, of_cluster(pk))
    found = _reach(pk)
    actions.disable(found, by=request.user)
    return onward(
        request,
        reverse("cluster", args=[pk]),
        f"Cluster {found.name} is disabled. What runs there goes on.",
    )


@require_http_methods(["GET", "POST"])
def cluster_remove(request: Request, pk: uuid.UUID) -> HttpResponse:
    """The question before a cluster is removed, with what stands against it and what would happen;
    and the removal.
    """
    access.require(request.user, Verb.DELETE, Entity.CLUSTERS, of_cluster(pk))
    found = _reach(pk)
    if request.method == "POST":
        actions.remove(found, request.user, force=request.POST.get("force") == found.name)
        messages.success(request, f"Cluster {found.name} is removed, and its credentials with it.")
        return redirect("clusters")
    context = {"cluster": found, "hanging": actions.hanging(found)}
    return page(request, "clusters/remove.html", "clusters/_remove.html", context)


def _reach(pk: uuid.UUID) -> Cluster:
    found: Cluster = get_object_or_404(Cluster.objects.there().defer("kubeconfig"), pk=pk)
    return found


def _change(cluster: Cluster, form: ClusterChangeForm, by: User) -> None:
    if form.cleaned_data["name"] != cluster.name:
        actions.rename(cluster, form.cleaned_data["name"], by=by)
    if not form.keeps:
        way, kubeconfig = form.credentials
        actions.reconnect(cluster, kubeconfig, way=way, by=by)
    if form.cleaned_data["prometheus_url"] != cluster.prometheus_url:
        actions.measure(cluster, form.cleaned_data["prometheus_url"], by=by)


def _tried(request: Request, form: ClusterForm, cluster: Cluster | None) -> HttpResponse:
    """What the connection is like: as a part that takes the place of the last verdict, or without
    scripts in the form as it was typed.
    """
    trial = _trial(form, cluster)
    if request.htmx:
        return render(request, "clusters/_trial.html", {"trial": trial, "form": form})
    return _shown(request, form, cluster, trial)


def _trial(form: ClusterForm, cluster: Cluster | None) -> Trial | None:
    """None where what was typed cannot be tried. For that it needs no name."""
    form.is_valid()
    form.errors.pop("name", None)
    if form.errors:
        return None
    if cluster is not None and form.cleaned_data["way"] == STORED:
        return trying.stored(cluster)
    way, kubeconfig = form.credentials
    return trying.tried(way, kubeconfig)


def _shown(
    request: Request, form: ClusterForm, cluster: Cluster | None, trial: Trial | None = None
) -> HttpResponse:
    context = {"form": form, "cluster": cluster, "trial": trial}
    return render(
        request,
        "clusters/cluster_form.html",
        context,
        status=422 if form.errors and not trial else 200,
    )
