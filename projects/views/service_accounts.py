"""The page of service accounts of all scopes."""

from django.db.models import Prefetch
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from console.errors import UserError
from console.http import build_empty_state, redirect_with_message, render_form, render_page
from console.moments import format_moment
from console.table_filters import Filter, Rows
from console.tables import Column, Table, Width, build_time_column, render_table
from console.templatetags.muster import render_time_distance
from projects import access, actions
from projects.access_forms import AccountForm
from projects.http import Request
from projects.models import AccessRule, PersonalKey, ServiceAccount
from projects.permission_explanations import find_disabled_button
from projects.permissions import Entity, Verb
from projects.views.access_rules import LEVELS, filter_by_level


def _filter_by_state(rows: Rows, value: str) -> Rows:
    if value == "disabled":
        return rows.filter(is_enabled=False)
    expired = rows.filter(expires_at__lte=timezone.now())
    if value == "expired":
        return expired
    return rows.filter(is_enabled=True).exclude(pk__in=expired.values("pk"))


TABLE = Table(
    "Service accounts",
    (
        Column("name", "Name", lambda row: row.name, order=("name",)),
        Column(
            "state",
            "State",
            lambda row: "Enabled" if row.is_enabled else "Disabled",
            "access/_enabled.html",
        ),
        Column(
            "client",
            "Client id",
            lambda row: row.client_id,
            render=lambda row: format_html(
                '<span class="mu-mono" id="client-{}">{}</span>', row.pk, row.client_id
            ),
        ),
        Column(
            "scope",
            "Scope",
            lambda row: row.scope_words,
            "access/_scope.html",
            width=Width.ONE_LINE,
        ),
        Column(
            "rules",
            "Access rules",
            lambda row: "; ".join(map(_describe_rule, row.user.rules)),
            "access/_rules_of_account.html",
        ),
        Column(
            "expires",
            "Expires",
            lambda row: format_moment(row.expires_at) or "never",
            "access/_expires.html",
        ),
        Column(
            "used",
            "Last used",
            lambda row: format_moment(row.last_used_at) or "",
            render=lambda row: (
                render_time_distance(row.last_used_at)
                if row.last_used_at
                else format_html('<span class="mu-quiet">{}</span>', "never")
            ),
        ),
        Column("by", "Created by", lambda row: row.created_by or ""),
        build_time_column("created", "Created", "created_at", is_sortable=True),
    ),
    search=("name__icontains", "client_id__icontains"),
    search_words="Search by name or client id",
    filters=(
        Filter(
            "level",
            "Scope",
            lambda _: [(str(level), words) for level, words in LEVELS],
            filter_by_level,
        ),
        Filter(
            "state",
            "State",
            lambda _: [("valid", "Valid"), ("expired", "Expired"), ("disabled", "Disabled")],
            _filter_by_state,
        ),
    ),
    actions="access/_account_actions.html",
)


def _describe_rule(rule: AccessRule) -> str:
    return f"{rule.role_label}: {rule.scope_words}"


@require_safe
def accounts(request: Request) -> HttpResponseBase:
    """Show the service accounts of the scopes in which the user may see them."""
    access.require_anywhere(request.user, Verb.VIEW, Entity.SERVICE_ACCOUNTS)
    disabled = find_disabled_button(
        request.user,
        Verb.CREATE,
        Entity.SERVICE_ACCOUNTS,
        words="New service account",
        icon="plus",
        anywhere=True,
    )
    new = "" if disabled else reverse("account-new")
    context = {
        "heading": "Service accounts",
        "about": (
            "For programs that use the REST API: a client id and a secret instead of a person's "
            "name and password."
        ),
        "new": new,
        "new_words": "New service account",
        "new_dialog": True,
        "may_not": disabled,
    } | build_empty_state(
        "bot",
        "No service account yet",
        "A program that uses the REST API, as a nightly training, gets in with one.",
        action="New service account",
        url=new,
    )
    # Whoever sees the account sees those of its rules that they may see anywhere.
    rules = AccessRule.objects.visible_to(request.user).with_scope().select_related("custom_role")
    rows = (
        _list_visible(request)
        .select_related("created_by")
        .prefetch_related(Prefetch("user__access_rules", rules, "rules"))
    )
    return render_table(request, rows, TABLE, "parts/list.html", context, file="service-accounts")


@never_cache
@require_http_methods(["GET", "POST"])
def account_new(request: Request) -> HttpResponse:
    """Create a service account with its first role, and show its secret once."""
    access.require_anywhere(request.user, Verb.CREATE, Entity.SERVICE_ACCOUNTS)
    form = AccountForm(request.POST or None, user=request.user)
    if request.method == "POST" and form.is_valid():
        cleaned = form.cleaned_data
        try:
            account, secret = actions.create_service_account(
                cleaned["scope"],
                cleaned["name"],
                by=request.user,
                role=cleaned["role"],
                expires_at=actions.parse_expiry(cleaned["expires"]),
            )
            return render_secret(
                request,
                account,
                secret,
                f"Service account {account.name} is created",
                reverse("accounts"),
            )
        except UserError as refusal:
            form.add_error(refusal.field if refusal.field in form.fields else None, refusal.text)
    context = {
        "title": "New service account",
        "yes": "Create service account",
        "back": reverse("accounts"),
        "back_words": "Service accounts",
    }
    return render_form(request, form, context)


@never_cache
@require_POST
def account_secret(request: Request, pk: int) -> HttpResponse:
    """Replace a service account's secret and show the new one once."""
    account = _get_account(request, pk)
    return render_secret(
        request,
        account,
        actions.rotate_secret(account, request.user),
        f"{account.name} has a new secret",
        reverse("accounts"),
    )


@require_POST
def account_enabled(request: Request, pk: int) -> HttpResponse:
    """Enable or disable a service account: `enabled` is 1 or 0."""
    account = _get_account(request, pk)
    choice = request.POST.get("enabled")
    if choice not in ("0", "1"):
        raise UserError(
            f"This did not say whether {account.name} is to be enabled or disabled, so it stays as "
            "it is. Use the buttons of the list of service accounts.",
            field="enabled",
            status=400,
        )
    enabled = choice == "1"
    actions.set_enabled(account, enabled, request.user)
    words = "is enabled" if enabled else "is disabled, and its tokens have stopped"
    return redirect_with_message(
        request, reverse("accounts"), f"Service account {account.name} {words}."
    )


@require_POST
def account_delete(request: Request, pk: int) -> HttpResponse:
    """Delete a service account; its secret and tokens end."""
    account = _get_account(request, pk)
    actions.delete_service_account(account, request.user)
    return redirect_with_message(
        request, reverse("accounts"), f"Service account {account.name} is deleted."
    )


def render_secret(
    request: Request,
    account: ServiceAccount | PersonalKey,
    secret: str,
    title: str,
    back: str,
    back_words: str = "Service accounts",
) -> HttpResponse:
    """Render the page or dialog that shows a secret once; it is stored nowhere."""
    context = {
        "title": title,
        "intro": (
            "The secret is shown once. Keep it where the program finds it; a lost one can only be "
            "replaced."
        ),
        "secrets": [
            ("Client id", "secret-id", account.client_id),
            ("Client secret", "secret-secret", secret),
        ],
        "token_url": request.build_absolute_uri("/api/v1/token"),
        "back": back,
        "back_words": back_words,
    }
    return render_page(request, "parts/secret.html", "parts/_secret.html", context)


def _list_visible(request: Request) -> Rows:
    rows: Rows = ServiceAccount.objects.visible_to(request.user).with_scope().select_related("user")
    return rows


def _get_account(request: Request, pk: int) -> ServiceAccount:
    account: ServiceAccount = get_object_or_404(_list_visible(request), pk=pk)
    return account
