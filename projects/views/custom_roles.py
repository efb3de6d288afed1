"""The page of roles: what the predefined ones permit, and the custom ones."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from django.db.models import Count, QuerySet
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods, require_safe

from console import edit_conflicts
from console.errors import Clash, UserError
from console.http import build_empty_state, redirect_with_message
from console.questions import Question, render_question
from console.tables import Column, Table, build_time_column, render_table
from projects import access, custom_roles, granting
from projects.access_forms import GROUPS, VERBS, CustomRoleForm
from projects.http import Request
from projects.models import AccessRule, AuditEntry, CustomRole
from projects.permission_explanations import find_disabled_button
from projects.permissions import ROLES, Entity, Permission, Role, Verb, parse_permissions
from projects.rights import view_permission


def abbreviate_permissions(role: CustomRole) -> str:
    """Abbreviate the role's permissions: "workloads VCE, projects V"."""
    permitted = parse_permissions(role.permissions)
    entities = {permission.entity for permission in permitted}
    rows = (
        (entity.label, [verb for verb in VERBS if Permission(entity, verb) in permitted])
        for entity in Entity
        if entity in entities
    )
    return ", ".join(
        f"{label} {''.join(verb.value[0].upper() for verb in verbs)}" for label, verbs in rows
    )


TABLE = Table(
    "Custom roles",
    (
        Column("name", "Role", lambda row: row.name, order=("name",)),
        Column("description", "Description", lambda row: row.description),
        Column("permits", "Permits", abbreviate_permissions),
        Column("rules", "Access rules", lambda row: row.uses, is_number=True),
        Column("by", "Created by", lambda row: row.created_by or ""),
        build_time_column("created", "Created", "created_at", is_sortable=True),
        build_time_column("updated", "Last updated", "updated_at", is_sortable=True, is_extra=True),
    ),
    search_words="Search custom roles",
    actions="access/_role_actions.html",
)


@require_safe
def roles(request: Request) -> HttpResponseBase:
    """Show what each role permits.

    Custom roles are shown to those who may see roles or access rules.
    """
    user = request.user
    may_see = any(
        user.rights.may_anywhere(view_permission(entity))
        for entity in (Entity.ROLES, Entity.ACCESS_RULES)
    )
    disabled = (
        find_disabled_button(user, Verb.CREATE, Entity.ROLES, words="New role", icon="plus")
        if may_see
        else None
    )
    new = "" if disabled or not may_see else reverse("role-new")
    context = {
        "matrix": _render_matrix(),
        "roles": ROLES.values(),
        "sees_custom": may_see,
        "may_not": disabled,
        "new": new,
    } | build_empty_state(
        "key-round",
        "No custom role yet",
        "Where none of the roles above fits, put one together from the same permissions, or start "
        "from a copy of one.",
        action="New role",
        url=new,
    )
    custom: QuerySet[CustomRole] = CustomRole.objects.select_related("created_by")
    return render_table(
        request,
        custom if may_see else custom.none(),
        TABLE,
        "access/roles.html",
        context,
        file="custom-roles",
        prepare=_count_rules,
    )


def _count_rules(roles: Sequence[CustomRole]) -> None:
    """Set `uses` on each role to the number of its access rules. One query."""
    role_counts = (
        AccessRule.objects.filter(custom_role__in=roles)
        .order_by()
        .values_list("custom_role")
        .annotate(Count("id"))
    )
    counts = dict(role_counts)
    for role in roles:
        role.uses = counts.get(role.pk, 0)  # type: ignore[attr-defined]


@cache
def _render_matrix() -> SafeString:
    """Render what the predefined roles permit, once for the life of the process."""
    groups = [
        (
            title,
            [
                (entity, [_list_verbs(role, entity) for role in ROLES.values()])
                for entity in entities
            ],
        )
        for title, entities in GROUPS
    ]
    return render_to_string("access/_matrix.html", {"groups": groups, "roles": ROLES.values()})


def _list_verbs(role: Role, entity: Entity) -> list[tuple[Verb, bool]]:
    return [(verb, role.permits(Permission(entity, verb))) for verb in VERBS]


@require_http_methods(["GET", "POST"])
def role_new(request: Request) -> HttpResponse:
    """Create a custom role, perhaps as a copy: `copy` is the key of another role."""
    access.require(request.user, Verb.CREATE, Entity.ROLES)
    initial = _copy_role_values(request.GET["copy"]) if "copy" in request.GET else {}
    form = CustomRoleForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            role = custom_roles.create(**form.cleaned_data, by=request.user)
            return redirect_with_message(request, reverse("roles"), f"Role {role.name} is created.")
        except UserError as refusal:
            form.add_error(refusal.field or None, refusal.text)
    return _render_form(
        request, form, "New role", reverse("role-new"), "Create role", 422 if form.errors else 200
    )


@require_http_methods(["GET", "POST"])
def role_edit(request: Request, pk: int) -> HttpResponse:
    """Change a custom role for everybody who has it."""
    access.require(request.user, Verb.EDIT, Entity.ROLES)
    role = get_object_or_404(CustomRole, pk=pk)
    form = CustomRoleForm(request.POST or None, initial=dict(custom_roles.editable_values(role)))
    conflict: dict[str, Any] = {}
    status = 200
    if request.method == "POST" and form.is_valid():
        try:
            changed = custom_roles.edit(
                pk,
                **form.cleaned_data,
                by=request.user,
                version=edit_conflicts.parse_started_version(request.POST),
            )
            return redirect_with_message(
                request,
                reverse("roles"),
                f"Role {changed.name} is changed, for everybody who has it.",
            )
        except edit_conflicts.ChangedMeanwhile:
            role.refresh_from_db()
            last = AuditEntry.objects.filter(entity="role", entity_id=str(pk)).first()
            conflict = {
                "sent": request.POST,
                "form": form,
                "changed_by": last.subject if last else "",
                "changed_at": role.updated_at,
            }
            status = 409
        except UserError as refusal:
            form.add_error(refusal.field or None, refusal.text)
    fields = edit_conflicts.build_conflict_context(role.version, _list_form_data(role), **conflict)
    status = 422 if form.errors else status
    return _render_form(
        request, form, f"Edit {role.name}", reverse("role-edit", args=[pk]), "Save", status, fields
    )


@require_http_methods(["GET", "POST"])
def role_delete(request: Request, pk: int) -> HttpResponse:
    """Ask before a custom role is deleted, then delete it; refused while it is in use."""
    access.require(request.user, Verb.DELETE, Entity.ROLES)
    role = get_object_or_404(CustomRole, pk=pk)
    blockers = custom_roles.describe_uses(role)
    if request.method == "POST":
        if blockers:
            raise Clash(blockers)
        custom_roles.delete(role, request.user)
        return redirect_with_message(request, reverse("roles"), f"Role {role.name} is deleted.")
    question = Question(
        title=f"Delete {role.name}",
        button="Delete role",
        crumbs=[(reverse("roles"), "Roles")],
        effects=["Nobody has this role. It cannot be given any more."],
        blocked_title="It is in use",
        blocked_text=blockers,
    )
    return render_question(request, question)


def _render_form(
    request: Request,
    form: CustomRoleForm,
    title: str,
    url: str,
    yes: str,
    status: int,
    fields: dict[str, Any] | None = None,
) -> HttpResponse:
    context = {
        "form": form,
        "title": title,
        "url": url,
        "yes": yes,
        "rows": form.rows(request.user),
        "verbs": VERBS,
    } | (fields or {})
    return render(request, "access/role_form.html", context, status=status)


def _copy_role_values(key: str) -> dict[str, Any]:
    role = granting.get_role(key)
    return {
        "name": f"{role.label} (copy)"[:63],
        "description": role.about[:250],
        "permissions": [str(each) for each in sorted(role.permissions)],
    }


def _list_form_data(role: CustomRole) -> dict[str, list[str]]:
    return {
        "name": [role.name],
        "description": [role.description],
        "permissions": list(role.permissions),
    }
