"""One project's page with its people and service accounts. Making one is done a floor above."""

from django.conf import settings
from django.db.models import Prefetch, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.module_loading import import_string
from django.views.decorators.http import require_safe

from projects import access
from projects.forms import PersonForm, ServiceAccountForm, list_project_role_choices
from projects.http import Request
from projects.models import AccessRule, Project, ServiceAccount
from projects.permission_explanations import find_disabled_button
from projects.permissions import L1, Entity, Verb
from projects.scopes import project_scope


@require_safe
def project(request: Request, pk: int) -> HttpResponse:
    """One project: how it stands now, what it is in the cluster, who may do what, and its programs'
    ways in.
    """
    return render_project(request, pk)


def render_project(
    request: Request,
    pk: int,
    *,
    person: PersonForm | None = None,
    account: ServiceAccountForm | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page, perhaps with a form that has to be mended. People and programs are shown to who may
    view them.
    """
    rules = AccessRule.objects.visible_to(request.user).select_related("custom_role")
    persons = rules.filter(user__is_service=False).select_related("user").order_by("user__username")
    people = Prefetch("access_rules", persons, to_attr="people")
    # Whoever sees the account sees those of its rules that they may see anywhere.
    of_account = Prefetch("user__access_rules", rules.with_scope(), "rules")
    accounts = (
        ServiceAccount.objects.visible_to(request.user)
        .select_related("created_by", "user")
        .prefetch_related(of_account)
    )
    programs = Prefetch("service_accounts", accounts, to_attr="programs")
    found = get_object_or_404(
        _list_visible(request).prefetch_related(people, programs, "node_pools"), pk=pk
    )
    refusal = access.Refusal(request.user, project_scope(found))
    context = {
        "project": found,
        "shows_people": access.may(
            request.user, Verb.VIEW, Entity.ACCESS_RULES, project_scope(found)
        ),
        "shows_accounts": access.may(
            request.user, Verb.VIEW, Entity.SERVICE_ACCOUNTS, project_scope(found)
        ),
        "may_manage": access.may(
            request.user, Verb.CREATE, Entity.ACCESS_RULES, project_scope(found)
        ),
        "may_manage_accounts": access.may(
            request.user, Verb.CREATE, Entity.SERVICE_ACCOUNTS, project_scope(found)
        ),
        "may_edit": access.may(request.user, Verb.EDIT, Entity.PROJECTS, project_scope(found)),
        "may_not_edit": find_disabled_button(
            request.user, Verb.EDIT, Entity.PROJECTS, refusal, words="Edit", icon="pencil"
        ),
        "may_not_delete": find_disabled_button(
            request.user, Verb.DELETE, Entity.PROJECTS, refusal, words="Delete", icon="trash-2"
        ),
        "may_delete": access.may(request.user, Verb.DELETE, Entity.PROJECTS, project_scope(found)),
        "person": person or PersonForm(auto_id="person_%s", initial={"role": L1}),
        "account": account or ServiceAccountForm(auto_id="account_%s"),
        "roles": list_project_role_choices(),
        "page": {
            name: import_string(f"{settings.PROJECT_PAGE}.{name}")
            for name in ("TEMPLATE", "CHART", "STYLES", "SCRIPTS")
        },
    }
    context |= import_string(f"{settings.PROJECT_PAGE}.now")(found, request.user)
    return render(request, "projects/project.html", context, status=status)


def _list_visible(request: Request) -> "QuerySet[Project]":
    """The projects that the reader sees, with what pages say of where they are."""
    seen: QuerySet[Project] = Project.objects.visible_to(request.user)
    return seen.select_related("department", "cluster").defer("cluster__kubeconfig")
