"""Departments: the table, one department with its projects and people, and making, changing and
deleting one.
"""

from decimal import Decimal
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from console import editing, tables
from console.errors import Clash
from console.http import onward, page
from console.tables import Column, Table, moment
from console.templatetags.muster import gpus
from projects import access, changes, departments, durations, quotas
from projects.department_sums import quota_of, sum_of, with_sums
from projects.http import Request
from projects.models import AccessRule, Department, Project
from projects.permissions import Entity, Verb
from projects.quotas import DepartmentForm
from projects.scopes import TENANT, of_department
from projects.why import may_not

MOST = 500
"""Projects and people that one page shows."""


def _limits(row: Any) -> str:
    found = [
        (words, getattr(row, f"{name}_limit_seconds"))
        for name, words in (("time", "running"), ("idle", "idle"))
    ]
    return ", ".join(
        f"{durations.words(seconds)} {words}" for words, seconds in found if seconds is not None
    )


def _memory(row: Any) -> str:
    return "" if row.memory_quota is None else f"{quotas.plain(quotas.gib(row.memory_quota))} GiB"


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
            lambda row: _told(quota_of(row)),
            "projects/_department_quota.html",
            is_number=True,
        ),
        Column("sum", "GPU quota of projects", lambda row: _told(sum_of(row)), is_number=True),
        Column("allocated", "Allocated GPUs", lambda row: gpus(row.held_gpus or 0), is_number=True),
        Column(
            "ratio", "GPU allocation", lambda row: _ratio(row), "projects/_department_ratio.html"
        ),
        Column(
            "cpu",
            "CPU quota",
            lambda row: quotas.plain(row.cpu_quota),
            is_number=True,
            is_extra=True,
        ),
        Column("memory", "Memory quota", _memory, is_number=True, is_extra=True),
        Column(
            "weight",
            "Over-quota weight",
            lambda row: quotas.plain(row.over_quota_weight),
            is_number=True,
            is_extra=True,
        ),
        Column("limits", "Limits", _limits),
        moment("created", "Created", "created_at", sorts=True),
    ),
    search=("name__icontains", "description__icontains"),
    search_words="Search by name or description",
)


def _told(amount: Decimal | None) -> str:
    return "Unlimited" if amount is None else gpus(amount)


def _sum(row: Any) -> Decimal | None:
    return None if row.projects_unlimited else Decimal(row.projects_gpus or 0)


def _ratio(row: Any) -> str:
    quota = quota_of(row)
    return f"{100 * (row.held_gpus or 0) / float(quota):.0f} %" if quota else ""


@require_GET
def departments_table(request: Request) -> HttpResponse:
    """The departments that one may see."""
    may_create = access.may(request.user, Verb.CREATE, Entity.DEPARTMENTS)
    context = {
        "heading": "Departments",
        "about": "Projects that share a quota, limits and people.",
        "new": reverse("department-new") if may_create else "",
        "may_not": may_not(
            request.user, Verb.CREATE, Entity.DEPARTMENTS, words="New department", icon="plus"
        ),
        "new_words": "New department",
        "new_dialog": True,
        "empty": "projects/_no_departments.html",
    }
    rows = with_sums(Department.objects.visible_to(request.user))
    return tables.answer(request, rows, TABLE, "parts/list.html", context, file="departments")


@require_GET
def department(request: Request, pk: int) -> HttpResponse:
    """One department with what it has, its projects, and who has a role in it."""
    found = _seen(request, pk)
    scope = of_department(found)
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
    listed = list(projects.order_by("name")[: MOST + 1])
    context = {
        "department": found,
        "quota": quota_of(found),
        "limits": _limits(found),
        "memory": _memory(found),
        "ratio": _ratio(found),
        "projects": listed[:MOST],
        "more": len(listed) > MOST,
        "most": MOST,
        "shows_people": shows_people,
        "rules": list(rules[:MOST]) if shows_people else [],
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
            return onward(
                request,
                reverse("department", args=[made.pk]),
                f"Department {made.name} is created.",
            )
        except Clash as refusal:
            form.add_error(refusal.field, refusal.text)
    way = {"url": reverse("department-new"), "title": "New department", "yes": "Create department"}
    return _shown(
        request, form, way | {"back": reverse("departments"), "back_words": "Departments"}
    )


@require_http_methods(["GET", "POST"])
def department_edit(request: Request, pk: int) -> HttpResponse:
    """Another name, quota or limits. What was submitted before keeps the limits of then."""
    found = _seen(request, pk)
    access.require(request.user, Verb.EDIT, Entity.DEPARTMENTS, of_department(pk))
    values = DepartmentForm.values(found)
    form = DepartmentForm(request.POST or None, initial=values, row=found)
    way: dict[str, Any] = {
        "url": reverse("department-edit", args=[pk]),
        "title": f"Edit {found.name}",
        "yes": "Save",
    }
    way |= {"back": reverse("department", args=[pk]), "back_words": found.name}
    way |= editing.fields(found.version, quotas.as_typed(values))
    if request.method == "POST":
        # What was started from stays with the form until it is saved, however often it has to be
        # mended.
        way |= {"started_from": request.POST.get(editing.FIELD, "")}
        if form.is_valid():
            try:
                changed = departments.change(
                    found, form, request.user, editing.started_version(request.POST)
                )
                return onward(
                    request,
                    reverse("department", args=[pk]),
                    f"Department {changed.name} is changed; its Queues follow.",
                )
            except editing.ChangedMeanwhile:
                return _late(request, form, way, pk)
            except Clash as refusal:
                form.add_error(refusal.field, refusal.text)
    return _shown(request, form, way)


@require_http_methods(["GET", "POST"])
def department_delete(request: Request, pk: int) -> HttpResponse:
    """The question before a department is deleted, with what stands against it, and then the
    deletion.
    """
    found = _seen(request, pk)
    access.require(request.user, Verb.DELETE, Entity.DEPARTMENTS, of_department(pk))
    if request.method == "POST":
        departments.delete(found, request.user)
        return onward(request, reverse("departments"), f"Department {found.name} is deleted.")
    context = {"department": found, "hindered": departments.hindrances(found, request.user)}
    return page(
        request, "projects/department_delete.html", "projects/_department_delete.html", context
    )


def _seen(request: Request, pk: int) -> Department:
    """The department with its sums, if the reader may see it. Raises Http404."""
    found: Department = get_object_or_404(
        with_sums(Department.objects.visible_to(request.user)), pk=pk
    )
    return found


def _late(request: Request, form: DepartmentForm, way: dict[str, Any], pk: int) -> HttpResponse:
    now = _seen(request, pk)
    by, at = changes.last("department", pk)
    seen = editing.fields(
        now.version,
        quotas.as_typed(DepartmentForm.values(now)),
        sent=request.POST,
        form=form,
        by=by,
        at=at,
    )
    return _shown(request, form, way | seen, status=409)


def _shown(
    request: Request, form: DepartmentForm, way: dict[str, Any], status: int = 0
) -> HttpResponse:
    context = {"form": form} | way
    return page(
        request,
        "parts/form.html",
        "parts/_form.html",
        context,
        status=status or (422 if form.errors else 200),
    )
