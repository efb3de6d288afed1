"""Making and changing a project: its namespace and its Queue in the cluster follow."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from clusters.forms import ProjectForm, QuotaForm
from clusters.tasks import provision
from console.errors import Clash
from console.http import onward, page
from projects import access
from projects.http import Request
from projects.models import Department, Project


@require_http_methods(["GET", "POST"])
def project_new(request: Request) -> HttpResponse:
    """A new project, for administrators of Muster."""
    access.administrator(request.user)
    form = ProjectForm(request.POST or None)
    if request.method == "POST" and (made := _saved(form, Project())):
        return onward(
            request, reverse("project", args=[made.pk]), f"Project {made.name} is created; its namespace and Queue are being made."
        )
    way = {"url": reverse("project-new"), "title": "New project", "yes": "Create project"}
    return _shown(request, form, way | {"back": reverse("projects"), "back_words": "Projects"})


@require_http_methods(["GET", "POST"])
def project_edit(request: Request, pk: int) -> HttpResponse:
    """Another department or quota. Name and cluster stay: objects in the cluster are named after them."""
    found: Project = get_object_or_404(Project.objects.visible_to(request.user).select_related("department"), pk=pk)
    access.administrator(request.user)
    form = QuotaForm(request.POST or None, initial={"department": found.department.name, "gpu_quota": found.gpu_quota})
    page_of = reverse("project", args=[pk])
    if request.method == "POST" and _saved(form, found):
        return onward(request, page_of, f"Project {found.name} is changed; its Queue follows.")
    way = {"url": reverse("project-edit", args=[pk]), "title": f"Change {found.name}", "yes": "Save"}
    return _shown(request, form, way | {"back": page_of, "back_words": found.name})


def _saved(form: QuotaForm, project: Project) -> Project | None:
    """The project in the database, and asked for in the cluster; None where the form has to be mended."""
    if not form.is_valid():
        return None
    try:
        form.saved(project)
    except Clash as refusal:
        form.add_error(refusal.field, refusal.text)
        return None
    provision.soon(project.pk)
    return project


def _shown(request: Request, form: QuotaForm, way: dict[str, str]) -> HttpResponse:
    datalist = ("departments", list(Department.objects.values_list("name", flat=True)[:200]))
    context = {"form": form, "datalist": datalist} | way
    return page(request, "parts/form.html", "parts/_form.html", context, status=422 if form.errors else 200)
