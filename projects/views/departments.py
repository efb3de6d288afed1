"""Departments: the table, one department with its projects and people, and making, changing and
deleting one.
"""

from decimal import Decimal
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from console import edit_conflicts, tables
from console.errors import Clash
from console.http import redirect_with_message, render_page
from console.tables import Column, Table, build_time_column
from console.templatetags.muster import gpus
from projects import access, departments, durations, last_changes, quotas
from projects.department_sums import annotate_sums, effective_gpu_quota, projects_gpu_quota
from projects.http import Request
from projects.models import AccessRule, Department, Project
from projects.permission_explanations import find_disabled_button
from projects.permissions import Entity, Verb
from projects.quotas import DepartmentForm
from projects.scopes import TENANT, department_scope

MAX_ROWS = 500
"""Projects and people that one page shows."""


def _describe_limits(row: Any) -> str:
    found = [
        (words, getattr(row, f"{name}_limit_seconds"))
        for name, words in (("time", "running"), ("idle", "idle"))
    ]
    return ", ".join(
        f"{durations.describe_duration(seconds)} {words}"
        for words, seconds in found
        if seconds is not None
    )


def _format_memory(row: Any) -> str:
    return (
        ""
        if row.memory_quota is None
        else f"{quotas.format_number(quotas.bytes_to_gib(row.memory_quota))} GiB"
    )


TABLE = Table(
    "Departments",
    (
        Column(
            "name", "Department", lambda row: row.name, "projects/_department_name.html", ("name",)
        ),
        Column("description", "Description", lambda row: row.description, is_extra=True),
        Column("projects", "Projects", lambda row: row.projects_count or 0, is_number=True),
        Column(
            "quota",
            "GPU quota",
            lambda row: _format_quota(effective_gpu_quota(row)),
            "projects/_department_quota.html",
            is_number=True,
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
            lambda row: _format_ratio(row),
            "projects/_department_ratio.html",
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


def _format_quota(amount: Decimal | None) -> str:
    return "Unlimited" if amount is None else gpus(amount)


def _sum(row: Any) -> Decimal | None:
    return None if row.projects_unlimited else Decimal(row.projects_gpus or 0)


def _format_ratio(row: Any) -> str:
    quota = effective_gpu_quota(row)
    return f"{100 * (row.held_gpus or 0) / float(quota):.0f} %" if quota else ""


@require_GET
def departments_table(request: Request) -> HttpResponse:
    """The departments that one may see."""
    may_create = access.may(request.user, Verb.CREATE, Entity.DEPARTMENTS)
    context = {
        "heading": "Departments",
        "about": "Projects that share a quota, limits and people.",
        "new": reverse("department-new") if may_create else "",
        "may_not": find_disabled_button(
            request.user, Verb.CREATE, Entity.DEPARTMENTS, words="New department", icon="plus"
        ),
        "new_words": "New department",
        "new_dialog": True,
        "empty": "projects/_no_departments.html",
    }
    rows = annotate_sums(Department.objects.visible_to(request.user))
    return tables.render_table(request, rows, TABLE, "parts/list.html", context, file="departments")


@require_GET
def department(request: Request, pk: int) -> HttpResponse:
    """One department with what it has, its projects, and who has a role in it."""
    found = _get_department(request, pk)
    scope = department_scope(found)
    projects = (
        found.projects.there()
        .select_related("cluster")
        .defer("cluster__kubeconfig", "cluster__permissions")
    )
    if not access.may(request.user, Verb.VIEW, Entity.PROJECTS, scope):
        projects = projects.filter(pk__in=Project.objects.visible_to(request.user).values("pk"))
    shows_people = access.may(request.user, Verb.VIEW, Entity.ACCESS_RULES, scope)
    rules = (
        AccessRule.objects.filter(department=found)
        .select_related("user", "group", "custom_role")
        .order_by("user__username", "pk")
    )
    listed = list(projects.order_by("name")[: MAX_ROWS + 1])
    context = {
        "department": found,
        "quota": effective_gpu_quota(found),
        "limits": _describe_limits(found),
        "memory": _format_memory(found),
        "ratio": _format_ratio(found),
        "projects": listed[:MAX_ROWS],
        "more": len(listed) > MAX_ROWS,
        "most": MAX_ROWS,
        "shows_people": shows_people,
        "rules": list(rules[:MAX_ROWS]) if shows_people else [],
        "may_edit": access.may(request.user, Verb.EDIT, Entity.DEPARTMENTS, scope),
        "may_delete": access.may(request.user, Verb.DELETE, Entity.DEPARTMENTS, scope),
    }
    return render(request, "projects/department.html", context)


@require_http_methods(["GET", "POST"])
def department_new(request: Request) -> HttpResponse:
    """A new department."""
    access.require(request.user, Verb.CREATE, Entity.DEPARTMENTS, TENANT)
    form = DepartmentForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = departments.create(form, request.user)
            return redirect_with_message(
                request,
                reverse("department", args=[made.pk]),
                f"Department {made.name} is created.",
            )
        except Clash as refusal:
            form.add_error(refusal.field, refusal.text)
    way = {"url": reverse("department-new"), "title": "New department", "yes": "Create department"}
    return _render_form(
        request, form, way | {"back": reverse("departments"), "back_words": "Departments"}
    )


@require_http_methods(["GET", "POST"])
def department_edit(request: Request, pk: int) -> HttpResponse:
    """Another name, quota or limits. What was submitted before keeps the limits of then."""
    found = _get_department(request, pk)
    access.require(request.user, Verb.EDIT, Entity.DEPARTMENTS, department_scope(pk))
    values = DepartmentForm.values(found)
    form = DepartmentForm(request.POST or None, initial=values, row=found)
    way: dict[str, Any] = {
        "url": reverse("department-edit", args=[pk]),
        "title": f"Edit {found.name}",
        "yes": "Save",
    }
    way |= {"back": reverse("department", args=[pk]), "back_words": found.name}
    way |= edit_conflicts.build_conflict_context(found.version, quotas.to_form_data(values))
    if request.method == "POST":
        # What was started from stays with the form until it is saved, however often it has to be
        # mended.
        way |= {"started_from": request.POST.get(edit_conflicts.START_FIELD, "")}
        if form.is_valid():
            try:
                changed = departments.change(
                    found, form, request.user, edit_conflicts.parse_started_version(request.POST)
                )
                return redirect_with_message(
                    request,
                    reverse("department", args=[pk]),
                    f"Department {changed.name} is changed; its Queues follow.",
                )
            except edit_conflicts.ChangedMeanwhile:
                return _render_conflict(request, form, way, pk)
            except Clash as refusal:
                form.add_error(refusal.field, refusal.text)
    return _render_form(request, form, way)


@require_http_methods(["GET", "POST"])
def department_delete(request: Request, pk: int) -> HttpResponse:
    """The question before a department is deleted, with what stands against it, and then the
    deletion.
    """
    found = _get_department(request, pk)
    access.require(request.user, Verb.DELETE, Entity.DEPARTMENTS, department_scope(pk))
    if request.method == "POST":
        departments.delete(found, request.user)
        return redirect_with_message(
            request, reverse("departments"), f"Department {found.name} is deleted."
        )
    context = {"department": found, "hindered": departments.describe_blockers(found, request.user)}
    return render_page(
        request, "projects/department_delete.html", "projects/_department_delete.html", context
    )


def _get_department(request: Request, pk: int) -> Department:
    """The department with its sums, if the reader may see it. Raises Http404."""
    found: Department = get_object_or_404(
        annotate_sums(Department.objects.visible_to(request.user)), pk=pk
    )
    return found


def _render_conflict(
    request: Request, form: DepartmentForm, extra_context: dict[str, Any], pk: int
) -> HttpResponse:
    now = _get_department(request, pk)
    by, at = last_changes.find_last_change("department", pk)
    seen = edit_conflicts.build_conflict_context(
        now.version,
        quotas.to_form_data(DepartmentForm.values(now)),
        sent=request.POST,
        form=form,
        changed_by=by,
        changed_at=at,
    )
    return _render_form(request, form, extra_context | seen, status=409)


def _render_form(
    request: Request, form: DepartmentForm, extra_context: dict[str, Any], status: int = 0
) -> HttpResponse:
    context = {"form": form} | extra_context
    return render_page(
        request,
        "parts/form.html",
        "parts/_form.html",
        context,
        status=status or (422 if form.errors else 200),
    )
