"""The page of users, for administrators."""

from typing import Any

from django.db.models import CharField, OuterRef, Prefetch, Subquery
from django.db.models.functions import Cast
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from console.errors import Clash
from console.http import redirect_with_message, render_form, render_page
from console.table_filters import Filter, Rows
from console.tables import Column, Table, build_time_column, render_table
from console.templatetags.muster import render_label
from projects import access, granting, user_actions
from projects.audit import Event
from projects.forms import UserForm
from projects.http import Request
from projects.models import AccessRule, AuditEntry, User
from projects.permission_explanations import find_disabled_button
from projects.permissions import ROLES, SYSTEM, Entity, Verb

DEACTIVATED, TEMPORARY, ACTIVE = "Deactivated", "Temporary password", "Active"


def _filter_by_type(rows: Rows, value: str) -> Rows:
    return rows.filter(is_sso=value == "sso")


def _filter_by_state(rows: Rows, value: str) -> Rows:
    wanted = {
        "deactivated": {"is_active": False},
        "temporary": {"is_active": True, "must_change_password": True},
    }
    return rows.filter(**wanted.get(value, {"is_active": True, "must_change_password": False}))


def describe_state(user: User) -> str:
    """Describe whether the user can sign in."""
    if not user.is_active:
        return DEACTIVATED
    return TEMPORARY if user.must_change_password else ACTIVE


def _render_name(row: User) -> SafeString:
    email = format_html('<div class="mu-quiet">{}</div>', row.email) if row.email else ""
    return format_html("{}{}", row.username, email)


def _render_state(row: User) -> SafeString:
    state = describe_state(row)
    return render_label(state, {TEMPORARY: "orange", ACTIVE: "green"}.get(state, ""))


TABLE = Table(
    "Users",
    (
        Column(
            "user",
            "User",
            lambda row: row.username,
            order=("username",),
            render=_render_name,
        ),
        Column("type", "Type", lambda row: "SSO" if row.is_sso else "Local"),
        Column(
            "rules",
            "Access rules",
            lambda row: "; ".join(_list_roles(row)),
            "access/_rules_of_user.html",
        ),
        Column("state", "State", describe_state, render=_render_state),
        build_time_column("signed", "Last sign-in", "last_login"),
        Column("by", "Created by", lambda row: row.made_by or ""),
        build_time_column("created", "Created", "date_joined", is_sortable=True),
        Column("email", "Email address", lambda row: row.email, is_extra=True),
    ),
    search=("username__icontains", "email__icontains"),
    search_words="Search by name or email",
    filters=(
        Filter("type", "Type", lambda _: [("local", "Local"), ("sso", "SSO")], _filter_by_type),
        Filter(
            "state",
            "State",
            lambda _: [("active", ACTIVE), ("temporary", TEMPORARY), ("deactivated", DEACTIVATED)],
            _filter_by_state,
        ),
    ),
    sort="user",
    actions="access/_user_actions.html",
)


def _list_roles(user: Any) -> list[str]:
    rules = [
        *user.rules,
        *(rule for group in user.groups.all() for rule in group.access_rules.all()),
    ]
    first = [f"{ROLES[SYSTEM].label}: Everybody"] if user.is_superuser else []
    return [*first, *(f"{rule.role_label}: {rule.scope_words}" for rule in rules)]


def list_users() -> Rows:
    """Return the users with their rules, their groups' rules, and who created them."""
    rules = AccessRule.objects.with_scope().select_related("custom_role")
    creations = AuditEntry.objects.filter(
        event=Event.CREATE, entity="user", entity_id=Cast(OuterRef("pk"), CharField())
    ).values("subject")
    listed = user_actions.list_people().annotate(made_by=Subquery(creations[:1]))
    return listed.prefetch_related(
        Prefetch("access_rules", rules, "rules"), Prefetch("groups__access_rules", rules)
    )


@require_safe
def users(request: Request) -> HttpResponseBase:
    """Show everybody who can sign in, with their roles."""
    access.require(request.user, Verb.VIEW, Entity.USERS)
    disabled = find_disabled_button(
        request.user, Verb.CREATE, Entity.USERS, words="New user", icon="plus"
    )
    context = {
        "heading": "Users",
        "new": "" if disabled else reverse("user-new"),
        "new_words": "New user",
        "new_dialog": True,
        "may_not": disabled,
    }
    return render_table(request, list_users(), TABLE, "parts/list.html", context, file="users")


@never_cache
@require_http_methods(["GET", "POST"])
def user_new(request: Request) -> HttpResponse:
    """Create a local user and show the temporary password once."""
    access.require(request.user, Verb.CREATE, Entity.USERS)
    form = UserForm(
        request.POST or None, may_make_administrator=granting.is_system_administrator(request.user)
    )
    if request.method == "POST" and form.is_valid():
        cleaned = form.cleaned_data
        user = User(username=cleaned["username"], email=cleaned["email"])
        try:
            password = user_actions.create_user(
                user, request.user, is_administrator=cleaned.get("is_superuser", False)
            )
            return _render_password(request, user, password, f"User {user.username} is created")
        except Clash as refusal:
            form.add_error(refusal.field, refusal.text)
    context = {
        "title": "New user",
        "intro": (
            "They get a temporary password, which you hand over; they choose their own at the "
            "first sign-in."
        ),
        "yes": "Create user",
        "back": reverse("users"),
        "back_words": "Users",
    }
    return render_form(request, form, context)


@never_cache
@require_POST
def user_reset(request: Request, pk: int) -> HttpResponse:
    """Give the user a temporary password and show it once."""
    access.require(request.user, Verb.EDIT, Entity.USERS)
    user = get_object_or_404(User, pk=pk, is_service=False)
    return _render_password(
        request,
        user,
        user_actions.reset_password(user, request.user),
        f"{user.username} has a new password",
    )


@require_POST
def user_active(request: Request, pk: int) -> HttpResponse:
    """Activate or deactivate a user: `active` is 1 or 0."""
    access.require(request.user, Verb.EDIT, Entity.USERS)
    user = get_object_or_404(User, pk=pk, is_service=False)
    active = request.POST.get("active") == "1"
    user_actions.set_active(user, active, request.user)
    words = (
        "can sign in again" if active else "cannot sign in any more, and is signed out everywhere"
    )
    return redirect_with_message(request, reverse("users"), f"{user.username} {words}.")


def _render_password(request: Request, user: User, password: str, title: str) -> HttpResponse:
    context = {
        "title": title,
        "intro": (
            "This password is shown once. Hand it over now; it has to be changed at the next "
            "sign-in."
        ),
        "secrets": [
            ("User name", "secret-name", user.username),
            ("Temporary password", "secret-password", password),
        ],
        "back": reverse("users"),
        "back_words": "Users",
    }
    return render_page(request, "parts/secret.html", "parts/_secret.html", context)
