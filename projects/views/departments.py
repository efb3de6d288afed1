"""The pages of departments: the table, one department, and forms to edit and delete it."""

from decimal import Decimal
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_GET, require_http_methods

from console import tables
from console.errors import Clash
from console.http import build_empty_state, redirect_with_message, render_form
from console.questions import Question, render_question
from console.tables import Column, Table, build_time_column
from console.templatetags.muster import gpus, render_gpus, render_link
from console.texts import group_thousands
from projects import access, departments, durations, quotas
from projects.department_sums import (
    annotate_sums,
    effective_gpu_quota,
    gpu_quota_on_all_clusters,
    projects_gpu_quota,
)
from projects.http import Request
from projects.models import AccessRule, Department, Project
from projects.permission_explanations import find_disabled_button
from projects.permissions import Entity, Verb
from projects.quotas import DepartmentForm
from projects.row_editing import edit_row
from projects.scopes import TENANT, department_scope
from projects.views.project_table import render_ratio
from projects.views.sections import load_section


def _describe_limits(row: Any) -> str:
    limits = [
        (words, getattr(row, f"{name}_limit_seconds"))
        for name, words in (("time", "running"), ("idle", "idle"))
    ]
    return ", ".join(
        f"{durations.describe_duration(seconds)} {words}"
        for words, seconds in limits
        if seconds is not None
    )


def _format_memory(row: Any) -> str:
    return (
        ""
        if row.memory_quota is None
        else f"{quotas.format_number(quotas.bytes_to_gib(row.memory_quota))} GiB"
    )


def _format_quota(amount: Decimal | None) -> str:
    return "Unlimited" if amount is None else gpus(amount)


def _describe_gpu_quota(row: Any) -> str:
    """Return in words where a department's quota comes from, and where it holds; "" for one."""
    if row.gpu_quota is None:
        return "the sum of its projects"
    clusters = row.clusters_count or 0
    return f"on each of its {clusters} clusters" if clusters > 1 else ""


def _render_quota(row: Department) -> SafeString:
    """Render the quota, where it comes from, and the limit."""
    remark = _describe_gpu_quota(row)
    return format_html(
        "{}{}{}",
        group_thousands(_format_quota(effective_gpu_quota(row))),
        _render_remark(remark) if remark else "",
        _render_remark(f"at most {render_gpus(row.gpu_limit)}")
        if row.gpu_limit is not None
        else "",
    )


def _render_remark(words: str) -> SafeString:
    return format_html('<div class="mu-quiet">{}</div>', words)


def _format_ratio(row: Any) -> str:
    quota = gpu_quota_on_all_clusters(row)
    return f"{100 * (row.held_gpus or 0) / float(quota):.0f} %" if quota else ""


TABLE = Table(
    "Departments",
    (
        Column(
            "name",
            "Department",
            lambda row: row.name,
            order=("name",),
            render=lambda row: render_link("department", row.pk, row.name),
        ),
        Column("description", "Description", lambda row: row.description, is_extra=True),
        Column("projects", "Projects", lambda row: row.projects_count or 0, is_number=True),
        Column(
            "quota",
            "GPU quota",
            lambda row: _format_quota(effective_gpu_quota(row)),
            is_number=True,
            render=_render_quota,
        ),
        Column(
            "sum",
            "GPU quota of projects",
            lambda row: _format_quota(projects_gpu_quota(row)),
            is_number=True,
        ),
        Column("allocated", "Allocated GPUs", lambda row: gpus(row.held_gpus or 0), is_number=True),
        Column(
            "ratio",
            "GPU allocation",
            _format_ratio,
            render=lambda row: render_ratio(row, _format_ratio(row)),
        ),
        Column(
            "cpu",
            "CPU quota",
            lambda row: quotas.format_number(row.cpu_quota),
            is_number=True,
            is_extra=True,
        ),
        Column("memory", "Memory quota", _format_memory, is_number=True, is_extra=True),
        Column(
            "weight",
            "Over-quota weight",
            lambda row: quotas.format_number(row.over_quota_weight),
            is_number=True,
            is_extra=True,
        ),
        Column("limits", "Limits", _describe_limits),
        build_time_column("created", "Created", "created_at", is_sortable=True),
    ),
    search=("name__icontains", "description__icontains"),
    search_words="Search by name or description",
)


@require_GET
def departments_table(request: Request) -> HttpResponseBase:
    """Show the departments that the user may see."""
    may_create = access.is_permitted(request.user, Verb.CREATE, Entity.DEPARTMENTS)
    new = reverse("department-new")
    context = {
        "heading": "Departments",
        "about": "Projects that share a quota, limits and people.",
        "new": new if may_create else "",
        "may_not": find_disabled_button(
            request.user, Verb.CREATE, Entity.DEPARTMENTS, words="New department", icon="plus"
        ),
        "new_words": "New department",
        "new_dialog": True,
    }
    if may_create:
        context |= build_empty_state(
            "network",
            "No department yet",
            "A department is several projects that share a quota, limits and people.",
            action="New department",
            url=new,
            in_dialog=True,
        )
    else:
        context |= build_empty_state(
            "network",
            "There is no department that you may see",
            "Administrators of a department, and of Muster, see departments. Your projects are on "
            "the page Projects.",
        )
    rows = annotate_sums(Department.objects.visible_to(request.user))
    return tables.render_table(
        request, rows, TABLE, "projects/departments.html", context, file="departments"
    )


@require_GET
def department(request: Request, pk: int) -> HttpResponse:
    """Show a department with its quota, projects and people."""
    shown_department = _get_department(request, pk)
    scope = department_scope(shown_department)
    projects = (
        shown_department.projects.there()
        .select_related("cluster")
        .defer("cluster__kubeconfig", "cluster__permissions")
    )
    if not access.is_permitted(request.user, Verb.VIEW, Entity.PROJECTS, scope):
        projects = projects.filter(pk__in=Project.objects.visible_to(request.user).values("pk"))
    shows_people = access.is_permitted(request.user, Verb.VIEW, Entity.ACCESS_RULES, scope)
    rules = AccessRule.objects.filter(department=shown_department).select_related(
        "user", "group", "custom_role"
    )
    context = {
        "department": shown_department,
        "quota": effective_gpu_quota(shown_department),
        "quota_words": _describe_gpu_quota(shown_department),
        "limits": _describe_limits(shown_department),
        "memory": _format_memory(shown_department),
        "ratio": _format_ratio(shown_department),
        "projects": load_section(request, "projects", projects, ["name"]),
        "people": load_section(
            request,
            "people",
            rules if shows_people else rules.none(),
            ["user__username", "group__name"],
            order=["created_at"],
        ),
        "shows_people": shows_people,
        "may_edit": access.is_permitted(request.user, Verb.EDIT, Entity.DEPARTMENTS, scope),
        "may_delete": access.is_permitted(request.user, Verb.DELETE, Entity.DEPARTMENTS, scope),
    }
    return render(request, "projects/department.html", context)


@require_http_methods(["GET", "POST"])
def department_new(request: Request) -> HttpResponse:
    """Create a department."""
    access.require(request.user, Verb.CREATE, Entity.DEPARTMENTS, TENANT)
    form = DepartmentForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            created = departments.create(form, request.user)
            return redirect_with_message(
                request,
                reverse("department", args=[created.pk]),
                f"Department {created.name} is created.",
            )
        except Clash as refusal:
            form.add_error(refusal.field, refusal.text)
    context = {
        "title": "New department",
        "yes": "Create department",
        "back": reverse("departments"),
        "back_words": "Departments",
    }
    return render_form(request, form, context)


@require_http_methods(["GET", "POST"])
def department_edit(request: Request, pk: int) -> HttpResponse:
    """Change a department. Workloads submitted before keep the limits of then."""
    present = _get_department(request, pk)
    access.require(request.user, Verb.EDIT, Entity.DEPARTMENTS, department_scope(pk))
    form = DepartmentForm(request.POST or None, initial=DepartmentForm.values(present), row=present)

    def save(version: int) -> str:
        changed = departments.change(present, form, request.user, version)
        return f"Department {changed.name} is changed; its Queues follow."

    return edit_row(
        request,
        form,
        present,
        entity="department",
        back=reverse("department", args=[pk]),
        values=DepartmentForm.values,
        reload=lambda: _get_department(request, pk),
        save=save,
    )


@require_http_methods(["GET", "POST"])
def department_delete(request: Request, pk: int) -> HttpResponse:
    """Ask before a department is deleted, naming what prevents it, then delete it."""
    present = _get_department(request, pk)
    access.require(request.user, Verb.DELETE, Entity.DEPARTMENTS, department_scope(pk))
    if request.method == "POST":
        departments.delete(present, request.user)
        return redirect_with_message(
            request, reverse("departments"), f"Department {present.name} is deleted."
        )
    question = Question(
        title=f"Delete {present.name}",
        button="Delete department",
        crumbs=[
            (reverse("departments"), "Departments"),
            (reverse("department", args=[pk]), present.name),
        ],
        effects=[
            "The department is not there any more: its access rules, its service accounts, its "
            "policies, and the environments and other assets that are its own are deleted now. "
            "Its Queue is removed from each cluster.",
            "The history of projects that were in it stays. Its name is free.",
        ],
        blocked_text=departments.describe_blockers(present, request.user),
    )
    return render_question(request, question)


def _get_department(request: Request, pk: int) -> Department:
    """Return the department with its sums. Raises Http404 where the user may not see it."""
    row: Department = get_object_or_404(
        annotate_sums(Department.objects.visible_to(request.user)), pk=pk
    )
    return row
