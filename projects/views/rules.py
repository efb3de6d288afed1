"""Access rules: who has which role where."""

from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from console.errors import UserError
from console.http import onward, page
from console.tables import Column, Filter, Rows, Table, answer, moment
from projects import access, granting, subjects
from projects.access_forms import RuleForm
from projects.forms import role_choices
from projects.http import Request
from projects.models import AccessRule
from projects.permissions import Entity, Verb
from projects.rights import view
from projects.scopes import Level
from projects.why import may_not


def _of_kind(rows: Rows, kind: str) -> Rows:
    return (
        rows.filter(group__isnull=False)
        if kind == subjects.GROUP
        else rows.filter(user__is_service=kind == subjects.SERVICE_ACCOUNT)
    )


def _of_role(rows: Rows, key: str) -> Rows:
    return (
        rows.filter(custom_role=key.partition(":")[2])
        if key.startswith("custom:")
        else rows.filter(role=key)
    )


def of_level(rows: Rows, level: str) -> Rows:
    """Those that belong to a scope of this level."""
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
        Column("scope", "Scope", lambda row: row.scope_words, "access/_scope.html"),
        Column("authorized", "Authorized by", lambda row: row.created_by or ""),
        moment("created", "Created", "created_at", sorts=True),
    ),
    search=("user__username__icontains", "group__name__icontains"),
    search_words="Search by subject",
    filters=(
        Filter("type", "Type", lambda _: list(subjects.KINDS.items()), _of_kind),
        Filter("role", "Role", lambda _: role_choices(), _of_role),
        Filter(
            "level", "Scope", lambda _: [(str(level), words) for level, words in LEVELS], of_level
        ),
    ),
    sort="-created",
    actions="access/_rule_actions.html",
)


@require_safe
def rules(request: Request) -> HttpResponse:
    """The rules of the scopes in which one may see them."""
    access.anywhere(request.user, Verb.VIEW, Entity.ACCESS_RULES)
    refused = may_not(
        request.user,
        Verb.CREATE,
        Entity.ACCESS_RULES,
        words="New access rule",
        icon="plus",
        anywhere=True,
    )
    context = {
        "heading": "Access rules",
        "about": (
            "A rule gives a subject a role in a scope and everything below it. It is not changed: "
            "delete it, and make another one."
        ),
        "new": "" if refused else reverse("access-rule-new"),
        "new_words": "New access rule",
        "new_dialog": True,
        "may_not": refused,
        "empty": "access/_no_rules.html",
    }
    return answer(request, _seen(request), TABLE, "parts/list.html", context, file="access-rules")


@require_http_methods(["GET", "POST"])
def rule_new(request: Request) -> HttpResponse:
    """The same rule for one subject or several."""
    access.anywhere(request.user, Verb.CREATE, Entity.ACCESS_RULES)
    form = RuleForm(request.POST or None, user=request.user)
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            found = subjects.read(given["kind"], given["subjects"], request.user)
            made = granting.give_all(given["role"], to=found, scope=given["scope"], by=request.user)
            told = f"{made[0].subject} is" if len(made) == 1 else f"{len(made)} subjects are"
            return onward(request, reverse("access-rules"), f"{told} {made[0].role_label} now.")
        except UserError as refusal:
            form.add_error(refusal.field if refusal.field in form.fields else None, refusal.text)
    context = {
        "form": form,
        "title": "New access rule",
        "url": reverse("access-rule-new"),
        "yes": "Create access rule",
        "back": reverse("access-rules"),
        "back_words": "Access rules",
    }
    return page(
        request, "parts/form.html", "parts/_form.html", context, status=422 if form.errors else 200
    )


@require_POST
def rule_delete(request: Request, pk: int) -> HttpResponse:
    """The subject has the role there no more."""
    found = get_object_or_404(_seen(request), pk=pk)
    granting.take(found, request.user)
    del request.user.rights
    # Without this rule the page may be out of the reader's own sight.
    back = "access-rules" if request.user.rights.anywhere(_VIEW) else "workloads"
    return onward(
        request, reverse(back), f"{found.subject} is not {found.role_label} there any more."
    )


_VIEW = view(Entity.ACCESS_RULES)


def _seen(request: Request) -> Rows:
    found: Rows = AccessRule.objects.visible_to(request.user).with_subject()
    return found
