"""Making, changing and deleting a project; what it is in the cluster follows."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from clusters import making
from clusters.forms import ProjectForm, QuotaForm
from clusters.tasks import leave
from console import editing
from console.errors import Clash
from console.http import onward, page
from projects import access, changes, leaving, quotas
from projects.http import Request
from projects.models import Project
from projects.permissions import Entity, Verb
from projects.scopes import of_project


@require_http_methods(["GET", "POST"])
def project_new(request: Request) -> HttpResponse:
    """A new project, for who may make one somewhere; the form says where."""
    access.anywhere(request.user, Verb.CREATE, Entity.PROJECTS)
    form = ProjectForm(request.POST or None, user=request.user)
    if request.method == "POST" and (made := _saved(form)):
        return onward(
            request,
            reverse("project", args=[made.pk]),
            f"Project {made.name} is created; its namespace and Queue are being made.",
        )
    way = {"url": reverse("project-new"), "title": "New project", "yes": "Create project"}
    return _shown(request, form, way | {"back": reverse("projects"), "back_words": "Projects"})


@require_http_methods(["GET", "POST"])
def project_edit(request: Request, pk: int) -> HttpResponse:
    """Another department, quota or limits. Name and cluster stay: objects in the cluster are named
    after them.
    """
    found = _seen(request, pk)
    access.require(request.user, Verb.EDIT, Entity.PROJECTS, of_project(pk))
    values = QuotaForm.values(found)
    form = QuotaForm(request.POST or None, initial=values, user=request.user, row=found)
    page_of = reverse("project", args=[pk])
    way: dict[str, Any] = {
        "url": reverse("project-edit", args=[pk]),
        "title": f"Edit {found.name}",
        "yes": "Save",
    }
    way |= {"back": page_of, "back_words": found.name} | editing.fields(
        found.version, quotas.as_typed(values)
    )
    if request.method == "POST":
        # What was started from stays with the form until it is saved, however often it has to be
        # mended.
        way |= {"started_from": request.POST.get(editing.FIELD, "")}
        try:
            if _saved(form, editing.started_version(request.POST)):
                return onward(
                    request, page_of, f"Project {found.name} is changed; its Queue follows."
                )
        except editing.ChangedMeanwhile:
            now = _seen(request, pk)
            by, at = changes.last("project", pk)
            told = editing.fields(
                now.version,
                quotas.as_typed(QuotaForm.values(now)),
                sent=request.POST,
                form=form,
                by=by,
                at=at,
            )
            return _shown(request, form, way | told, status=409)
    return _shown(request, form, way)


@require_http_methods(["GET", "POST"])
def project_delete(request: Request, pk: int) -> HttpResponse:
    """The question before a project is deleted, with what stands against it and what will happen,
    and then the deletion.
    """
    found = _seen(request, pk)
    access.require(request.user, Verb.DELETE, Entity.PROJECTS, of_project(pk))
    if request.method == "POST":
        leaving.leave(found, request.user)
        leave.soon(found.pk, making.LOOKS)
        return onward(
            request,
            reverse("projects"),
            f"Project {found.name} is deleted; it is being removed from its cluster.",
        )
    names = leaving.hindrances(found)
    context = {"project": found, "hindered": leaving.in_the_way(found, names) if names else ""}
    return page(request, "projects/delete.html", "projects/_delete.html", context)


def _seen(request: Request, pk: int) -> Project:
    seen = (
        Project.objects.visible_to(request.user)
        .select_related("department", "cluster")
        .defer("cluster__kubeconfig")
    )
    found: Project = get_object_or_404(seen, pk=pk)
    return found


def _saved(form: QuotaForm, edited: int | None = None) -> Project | None:
    """The project in the database, and asked for in the cluster; None where the form has to be
    mended. Raises ChangedMeanwhile.
    """
    if not form.is_valid():
        return None
    try:
        return making.saved(form, edited)
    except editing.ChangedMeanwhile:
        raise
    except Clash as refusal:
        form.add_error(refusal.field, refusal.text)
        return None


def _shown(request: Request, form: QuotaForm, way: dict[str, Any], status: int = 0) -> HttpResponse:
    datalist = ("departments", form.department_names) if form.makes_departments else None
    context = {"form": form, "datalist": datalist} | way
    return page(
        request,
        "parts/form.html",
        "parts/_form.html",
        context,
        status=status or (422 if form.errors else 200),
    )
