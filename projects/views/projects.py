"""Projects: the list, and one project's page with its people and service accounts. Making one is done a floor above."""

from django.db.models import Count, Prefetch
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from projects import access
from projects.access import Action
from projects.forms import PersonForm, RoleForm, ServiceAccountForm
from projects.http import Request
from projects.models import Membership, Project, Role, ServiceAccount

MOST = 500
"""Projects, people and service accounts that one page shows."""


def projects(request: Request) -> HttpResponse:
    """The projects in which one has a role."""
    mine = {each.project_id: each for each in request.user.memberships.all()}
    found = list(Project.objects.visible_to(request.user).select_related("department", "cluster")[: MOST + 1])
    people = Membership.objects.filter(project__in=[each.pk for each in found], user__is_service=False)
    counts = dict(people.values_list("project_id").annotate(Count("id")))
    rows = [(project, mine.get(project.pk), counts.get(project.pk, 0)) for project in found[:MOST]]
    return render(request, "projects/projects.html", {"rows": rows, "more": len(found) > MOST, "most": MOST})


def project(request: Request, pk: int) -> HttpResponse:
    """One project: what it is in the cluster, who may do what, and its programs' ways in."""
    return show(request, pk)


def show(
    request: Request, pk: int, *, person: PersonForm | None = None, account: ServiceAccountForm | None = None, status: int = 200
) -> HttpResponse:
    """The page, perhaps with a form that has to be mended."""
    people = Prefetch("memberships", Membership.objects.filter(user__is_service=False).select_related("user").order_by("user__username"))
    programs = Prefetch(
        "service_accounts", ServiceAccount.objects.select_related("created_by", "user").prefetch_related("user__memberships")
    )
    found = get_object_or_404(
        Project.objects.visible_to(request.user).select_related("department", "cluster").prefetch_related(people, programs), pk=pk
    )
    context = {
        "project": found,
        "may_manage": access.may(request.user, Action.MANAGE, found.pk),
        "person": person or PersonForm(auto_id="person_%s", initial={"role": Role.MEMBER}),
        "account": account or ServiceAccountForm(auto_id="account_%s"),
        "role_form": RoleForm(),
        "roles": Role,
    }
    return render(request, "projects/project.html", context, status=status)
