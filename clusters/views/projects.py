"""The pages to make, change and delete a project; its cluster follows."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from clusters import project_saving
from clusters.forms import ProjectChangeForm, ProjectForm
from clusters.tasks import remove_deleted_project
from console.errors import Clash
from console.http import redirect_with_message, render_form
from console.questions import Question, render_question
from projects import access, project_removal
from projects.http import Request
from projects.models import Project
from projects.permissions import Entity, Verb
from projects.row_editing import edit_row
from projects.scopes import project_scope


@require_http_methods(["GET", "POST"])
def project_new(request: Request) -> HttpResponse:
    """Make a project, for users who may make one somewhere; the form says where."""
    access.require_anywhere(request.user, Verb.CREATE, Entity.PROJECTS)
    form = ProjectForm(request.POST or None, user=request.user)
    if request.method == "POST" and form.is_valid():
        try:
            project = project_saving.save_project(form)
            return redirect_with_message(
                request,
                reverse("project", args=[project.pk]),
                f"Project {project.name} is created; its namespace and Queue are being made.",
            )
        except Clash as refusal:
            form.add_error(refusal.field, refusal.text)
    context = _build_form_context(form) | {
        "title": "New project",
        "yes": "Create project",
        "back": reverse("projects"),
        "back_words": "Projects",
    }
    return render_form(request, form, context)


@require_http_methods(["GET", "POST"])
def project_edit(request: Request, pk: int) -> HttpResponse:
    """Change the department, quota or limits of a project. Name and cluster are fixed: objects in
    the cluster are named after them.
    """
    project = _get_visible_project(request, pk)
    access.require(request.user, Verb.EDIT, Entity.PROJECTS, project_scope(pk))
    form = ProjectChangeForm(
        request.POST or None,
        initial=ProjectChangeForm.values(project),
        user=request.user,
        row=project,
    )

    def save(version: int) -> str:
        project_saving.save_project(form, version)
        return f"Project {project.name} is changed; its Queue follows."

    return edit_row(
        request,
        form,
        project,
        entity="project",
        back=reverse("project", args=[pk]),
        values=ProjectChangeForm.values,
        reload=lambda: _get_visible_project(request, pk),
        save=save,
        context=_build_form_context(form),
    )


@require_http_methods(["GET", "POST"])
def project_delete(request: Request, pk: int) -> HttpResponse:
    """Ask before a project is deleted, with the hindrances and effects, and delete it."""
    project = _get_visible_project(request, pk)
    access.require(request.user, Verb.DELETE, Entity.PROJECTS, project_scope(pk))
    if request.method == "POST":
        project_removal.remove_project(project, request.user)
        remove_deleted_project.enqueue(project.pk, project_saving.MAX_REMOVAL_CHECKS)
        return redirect_with_message(
            request,
            reverse("projects"),
            f"Project {project.name} is deleted; it is being removed from its cluster.",
        )
    names = project_removal.find_blockers(project)
    question = Question(
        title=f"Delete {project.name}",
        button="Delete project",
        crumbs=[
            (reverse("projects"), "Projects"),
            (reverse("project", args=[pk]), project.name),
        ],
        template="projects/_leaves.html",
        blocked_text=project_removal.describe_blockers(project, names) if names else "",
    )
    return render_question(request, question, {"project": project})


def _get_visible_project(request: Request, pk: int) -> Project:
    rows = (
        Project.objects.visible_to(request.user)
        .select_related("department", "cluster")
        .defer("cluster__kubeconfig")
    )
    project: Project = get_object_or_404(rows, pk=pk)
    return project


def _build_form_context(form: ProjectChangeForm) -> dict[str, Any]:
    return {
        "datalist": ("departments", form.department_names) if form.can_make_departments else None
    }
