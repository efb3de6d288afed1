"""The pages to make, change and delete a project; its cluster follows."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from clusters import project_saving
from clusters.forms import ProjectChangeForm, ProjectForm
from clusters.tasks import remove_deleted_project
from console import edit_conflicts
from console.errors import Clash
from console.http import redirect_with_message, render_page
from projects import access, last_changes, project_removal, quotas
from projects.http import Request
from projects.models import Project
from projects.permissions import Entity, Verb
from projects.scopes import project_scope


@require_http_methods(["GET", "POST"])
def project_new(request: Request) -> HttpResponse:
    """Make a project, for users who may make one somewhere; the form says where."""
    access.require_anywhere(request.user, Verb.CREATE, Entity.PROJECTS)
    form = ProjectForm(request.POST or None, user=request.user)
    if request.method == "POST" and (project := _save_form(form)):
        return redirect_with_message(
            request,
            reverse("project", args=[project.pk]),
            f"Project {project.name} is created; its namespace and Queue are being made.",
        )
    page_context = {"url": reverse("project-new"), "title": "New project", "yes": "Create project"}
    return _render_form(
        request, form, page_context | {"back": reverse("projects"), "back_words": "Projects"}
    )


@require_http_methods(["GET", "POST"])
def project_edit(request: Request, pk: int) -> HttpResponse:
    """Change the department, quota or limits of a project. Name and cluster are fixed: objects in
    the cluster are named after them.
    """
    found = _get_visible_project(request, pk)
    access.require(request.user, Verb.EDIT, Entity.PROJECTS, project_scope(pk))
    values = ProjectChangeForm.values(found)
    form = ProjectChangeForm(request.POST or None, initial=values, user=request.user, row=found)
    page_url = reverse("project", args=[pk])
    page_context: dict[str, Any] = {
        "url": reverse("project-edit", args=[pk]),
        "title": f"Edit {found.name}",
        "yes": "Save",
    }
    page_context |= {
        "back": page_url,
        "back_words": found.name,
    } | edit_conflicts.build_conflict_context(found.version, quotas.to_form_data(values))
    if request.method == "POST":
        # What was started from stays with the form until it is saved, however often it has to be
        # mended.
        page_context |= {"started_from": request.POST.get(edit_conflicts.START_FIELD, "")}
        try:
            if _save_form(form, edit_conflicts.parse_started_version(request.POST)):
                return redirect_with_message(
                    request, page_url, f"Project {found.name} is changed; its Queue follows."
                )
        except edit_conflicts.ChangedMeanwhile:
            now = _get_visible_project(request, pk)
            by, at = last_changes.find_last_change("project", pk)
            conflict = edit_conflicts.build_conflict_context(
                now.version,
                quotas.to_form_data(ProjectChangeForm.values(now)),
                sent=request.POST,
                form=form,
                changed_by=by,
                changed_at=at,
            )
            return _render_form(request, form, page_context | conflict, status=409)
    return _render_form(request, form, page_context)


@require_http_methods(["GET", "POST"])
def project_delete(request: Request, pk: int) -> HttpResponse:
    """Ask before a project is deleted, with the hindrances and effects, and delete it."""
    found = _get_visible_project(request, pk)
    access.require(request.user, Verb.DELETE, Entity.PROJECTS, project_scope(pk))
    if request.method == "POST":
        project_removal.remove_project(found, request.user)
        remove_deleted_project.enqueue(found.pk, project_saving.MAX_REMOVAL_CHECKS)
        return redirect_with_message(
            request,
            reverse("projects"),
            f"Project {found.name} is deleted; it is being removed from its cluster.",
        )
    names = project_removal.find_blockers(found)
    context = {
        "project": found,
        "hindered": project_removal.describe_blockers(found, names) if names else "",
    }
    return render_page(request, "projects/delete.html", "projects/_delete.html", context)


def _get_visible_project(request: Request, pk: int) -> Project:
    rows = (
        Project.objects.visible_to(request.user)
        .select_related("department", "cluster")
        .defer("cluster__kubeconfig")
    )
    found: Project = get_object_or_404(rows, pk=pk)
    return found


def _save_form(form: ProjectChangeForm, edited_version: int | None = None) -> Project | None:
    """Save the project and queue its provisioning; None for an invalid form. Raises
    ChangedMeanwhile.
    """
    if not form.is_valid():
        return None
    try:
        return project_saving.save_project(form, edited_version)
    except edit_conflicts.ChangedMeanwhile:
        raise
    except Clash as refusal:
        form.add_error(refusal.field, refusal.text)
        return None


def _render_form(
    request: Request, form: ProjectChangeForm, page_context: dict[str, Any], status: int = 0
) -> HttpResponse:
    datalist = ("departments", form.department_names) if form.can_make_departments else None
    context = {"form": form, "datalist": datalist} | page_context
    return render_page(
        request,
        "parts/form.html",
        "parts/_form.html",
        context,
        status=status or (422 if form.errors else 200),
    )
