"""The page of access rules: who has which role where."""

from django.db.models import Q
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from console.errors import UserError
from console.http import build_empty_state, redirect_with_message, render_form
from console.table_filters import Filter, Rows
from console.tables import Column, Table, Width, build_time_column, render_table
from projects import access, granting, subjects
from projects.access_forms import RuleForm
from projects.forms import list_role_choices
from projects.http import Request
from projects.models import AccessRule
from projects.permission_explanations import find_disabled_button
from projects.permissions import Entity, Verb
from projects.rights import view_permission
from projects.scopes import Level


def _filter_by_kind(rows: Rows, kind: str) -> Rows:
    return (
        rows.filter(group__isnull=False)
        if kind == subjects.GROUP
        else rows.filter(user__is_service=kind == subjects.SERVICE_ACCOUNT)
    )


def _filter_by_role(rows: Rows, key: str) -> Rows:
    return (
        rows.filter(custom_role=key.partition(":")[2])
        if key.startswith("custom:")
        else rows.filter(role=key)
    )


def filter_by_level(rows: Rows, level: str) -> Rows:
    """Return the rows that belong to a scope of this level."""
    if level == Level.TENANT:
        return rows.filter(cluster=None, department=None, project=None)
    return rows.filter(Q((f"{level}__isnull", False)))


LEVELS = [
    (Level.TENANT, "Everybody"),
    (Level.CLUSTER, "Cluster"),
    (Level.DEPARTMENT, "Department"),
    (Level.PROJECT, "Project"),
]
TABLE = Table(
    "Access rules",
    (
        Column("subject", "Subject", lambda row: str(row.subject), "access/_subject.html"),
        Column("type", "Type", lambda row: subjects.KINDS[subjects.kind_of(row.subject)]),
        Column("role", "Role", lambda row: row.role_label, order=("role",)),
        Column(
            "scope",
            "Scope",
            lambda row: row.scope_words,
            "access/_scope.html",
            width=Width.ONE_LINE,
        ),
        Column("authorized", "Authorized by", lambda row: row.created_by or ""),
        build_time_column("created", "Created", "created_at", is_sortable=True),
    ),
    search=("user__username__icontains", "group__name__icontains"),
    search_words="Search by subject",
    filters=(
        Filter("type", "Type", lambda _: list(subjects.KINDS.items()), _filter_by_kind),
        Filter("role", "Role", lambda _: list_role_choices(), _filter_by_role),
        Filter(
            "level",
            "Scope",
            lambda _: [(str(level), words) for level, words in LEVELS],
            filter_by_level,
        ),
    ),
    sort="-created",
    actions="access/_rule_actions.html",
)


@require_safe
def rules(request: Request) -> HttpResponseBase:
    """Show the rules of the scopes in which the user may see them."""
    access.require_anywhere(request.user, Verb.VIEW, Entity.ACCESS_RULES)
    disabled = find_disabled_button(
        request.user,
        Verb.CREATE,
        Entity.ACCESS_RULES,
        words="New access rule",
        icon="plus",
        anywhere=True,
    )
    new = "" if disabled else reverse("access-rule-new")
    context = {
        "heading": "Access rules",
        "about": (
            "A rule gives a subject a role in a scope and everything below it. It is not changed: "
            "delete it, and make another one."
        ),
        "new": new,
        "new_words": "New access rule",
        "new_dialog": True,
        "may_not": disabled,
    } | build_empty_state(
        "key-round",
        "No access rule yet",
        "Who has none sees nothing. Give somebody a role in a project, or in everything.",
        action="New access rule",
        url=new,
    )
    return render_table(
        request, _list_visible(request), TABLE, "parts/list.html", context, file="access-rules"
    )


@require_http_methods(["GET", "POST"])
def rule_new(request: Request) -> HttpResponse:
    """Create the same rule for one or several subjects."""
    access.require_anywhere(request.user, Verb.CREATE, Entity.ACCESS_RULES)
    form = RuleForm(request.POST or None, user=request.user)
    if request.method == "POST" and form.is_valid():
        cleaned = form.cleaned_data
        try:
            rule_subjects = subjects.parse_subjects(
                cleaned["kind"], cleaned["subjects"], request.user
            )
            rules = granting.grant_role_to_all(
                cleaned["role"], to=rule_subjects, scope=cleaned["scope"], by=request.user
            )
            subject_text = (
                f"{rules[0].subject} is" if len(rules) == 1 else f"{len(rules)} subjects are"
            )
            return redirect_with_message(
                request, reverse("access-rules"), f"{subject_text} {rules[0].role_label} now."
            )
        except UserError as refusal:
            form.add_error(refusal.field if refusal.field in form.fields else None, refusal.text)
    context = {
        "title": "New access rule",
        "yes": "Create access rule",
        "back": reverse("access-rules"),
        "back_words": "Access rules",
    }
    return render_form(request, form, context)


@require_POST
def rule_delete(request: Request, pk: int) -> HttpResponse:
    """Delete a rule; the subject loses the role there."""
    rule = get_object_or_404(_list_visible(request), pk=pk)
    granting.revoke_rule(rule, request.user)
    # Cached on the user; the rule that is gone may have been the user's own.
    del request.user.rights
    # Without this rule the page may be out of the reader's own sight.
    back = "access-rules" if request.user.rights.may_anywhere(_VIEW) else "workloads"
    return redirect_with_message(
        request, reverse(back), f"{rule.subject} is not {rule.role_label} there any more."
    )


_VIEW = view_permission(Entity.ACCESS_RULES)


def _list_visible(request: Request) -> Rows:
    rules: Rows = AccessRule.objects.visible_to(request.user).with_subject()
    return rules
