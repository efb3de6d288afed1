"""One project's page with its people and service accounts.

Projects are created by the pages of clusters.
"""

from django.db.models import Prefetch, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from projects import access, seams
from projects.api.projects import build_project_calls
from projects.forms import PersonForm, ServiceAccountForm, list_project_role_choices
from projects.http import Request
from projects.models import AccessRule, Project, ServiceAccount
from projects.permission_explanations import find_disabled_button
from projects.permissions import L1, Entity, Verb
from projects.scopes import project_scope
from projects.views.sections import Section, load_section


@require_safe
def project(request: Request, pk: int) -> HttpResponse:
    """Show a project: its state, its cluster, its people and its service accounts."""
    return render_project(request, pk)


def render_project(
    request: Request,
    pk: int,
    *,
    person: PersonForm | None = None,
    account: ServiceAccountForm | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render the page of a project, perhaps with a form that has errors.

    People and service accounts are shown to those who may view them.
    """
    shown_project = get_object_or_404(_list_visible(request).prefetch_related("node_pools"), pk=pk)
    refusal = access.Refusal(request.user, project_scope(shown_project))
    overview = seams.PROJECT_OVERVIEW.get()
    context = {
        "project": shown_project,
        "people": _load_people(request, shown_project),
        "programs": _load_programs(request, shown_project),
        "shows_people": access.is_permitted(
            request.user, Verb.VIEW, Entity.ACCESS_RULES, project_scope(shown_project)
        ),
        "shows_accounts": access.is_permitted(
            request.user, Verb.VIEW, Entity.SERVICE_ACCOUNTS, project_scope(shown_project)
        ),
        "may_manage": access.is_permitted(
            request.user, Verb.CREATE, Entity.ACCESS_RULES, project_scope(shown_project)
        ),
        "may_manage_accounts": access.is_permitted(
            request.user, Verb.CREATE, Entity.SERVICE_ACCOUNTS, project_scope(shown_project)
        ),
        "may_edit": access.is_permitted(
            request.user, Verb.EDIT, Entity.PROJECTS, project_scope(shown_project)
        ),
        "may_not_edit": find_disabled_button(
            request.user, Verb.EDIT, Entity.PROJECTS, refusal, words="Edit", icon="pencil"
        ),
        "may_not_delete": find_disabled_button(
            request.user, Verb.DELETE, Entity.PROJECTS, refusal, words="Delete", icon="trash-2"
        ),
        "may_delete": access.is_permitted(
            request.user, Verb.DELETE, Entity.PROJECTS, project_scope(shown_project)
        ),
        "person": person or PersonForm(auto_id="person_%s", initial={"role": L1}),
        "account": account or ServiceAccountForm(auto_id="account_%s"),
        "roles": list_project_role_choices(),
        "calls": build_project_calls(shown_project),
        "overview": overview,
        **overview.build_context(shown_project, request.user),
    }
    return render(request, "projects/project.html", context, status=status)


def _load_people(request: Request, shown_project: Project) -> Section:
    """Load a page of the rules of people in the project, as far as the reader may see them."""
    rules = AccessRule.objects.visible_to(request.user).filter(
        project=shown_project, user__is_service=False
    )
    return load_section(
        request, "people", rules.select_related("custom_role", "user"), ["user__username"]
    )


def _load_programs(request: Request, shown_project: Project) -> Section:
    """Load a page of the project's service accounts, each with its rules.

    Whoever sees the account sees those of its rules that they may see anywhere.
    """
    rules = AccessRule.objects.visible_to(request.user).select_related("custom_role")
    accounts = (
        ServiceAccount.objects.visible_to(request.user)
        .filter(project=shown_project)
        .select_related("created_by", "user")
        .prefetch_related(Prefetch("user__access_rules", rules.with_scope(), "rules"))
    )
    return load_section(request, "accounts", accounts, ["name"])


def _list_visible(request: Request) -> "QuerySet[Project]":
    """Return the projects that the user may see, with the names of their department and cluster."""
    visible: QuerySet[Project] = Project.objects.visible_to(request.user)
    return visible.select_related("department", "cluster").defer("cluster__kubeconfig")
