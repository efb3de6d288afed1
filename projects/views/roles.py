"""Who has which role in a project, and its service accounts: what their administrators do on the project's page."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from console.errors import UserError
from console.http import onward, page
from projects import access, actions, people
from projects.access import Action
from projects.forms import PersonForm, RoleForm, ServiceAccountForm
from projects.http import Request
from projects.models import Membership, Project, ServiceAccount
from projects.views.projects import show


@require_POST
def person_add(request: Request, pk: int) -> HttpResponse:
    """Somebody new in the project."""
    project = _mine(request, pk)
    form = PersonForm(request.POST, auto_id="person_%s")
    if form.is_valid():
        user = form.cleaned_data["username"]
        try:
            people.give_role(project, user, form.cleaned_data["role"], request.user)
            return onward(request, _url(project.pk), f"{user} has a role in {project}.")
        except UserError as refusal:
            form.add_error(refusal.field or None, refusal.text)
    return show(request, pk, person=form, status=422)


@require_POST
def person_role(request: Request, pk: int, membership: int) -> HttpResponse:
    """Another role for somebody in the project."""
    project = _mine(request, pk)
    found = get_object_or_404(Membership.objects.select_related("user"), pk=membership, project=project, user__is_service=False)
    form = RoleForm(request.POST)
    if not form.is_valid():
        raise UserError("There is no such role. Choose one of the list.", field="role")
    people.change_role(found, form.cleaned_data["role"], request.user)
    return onward(request, _url(project.pk), f"{found.user} is a {found.get_role_display().lower()} of {project}.")


@require_POST
def person_remove(request: Request, pk: int, membership: int) -> HttpResponse:
    """Take somebody's role away."""
    project = _mine(request, pk)
    found = get_object_or_404(Membership.objects.select_related("user"), pk=membership, project=project, user__is_service=False)
    people.take_role(found, request.user)
    # Without the role the project may be out of the reader's own sight.
    seen = Project.objects.visible_to(request.user).filter(pk=project.pk).exists()
    return onward(request, _url(project.pk) if seen else reverse("projects"), f"{found.user} has no role in {project} any more.")


@never_cache
@require_POST
def account_create(request: Request, pk: int) -> HttpResponse:
    """A new service account, and its secret, shown once."""
    project = _mine(request, pk)
    form = ServiceAccountForm(request.POST, auto_id="account_%s")
    if form.is_valid():
        try:
            account, secret = actions.create_service_account(
                project, form.cleaned_data["name"], by=request.user, role=form.cleaned_data["role"]
            )
            return _secret(request, account, secret, f"Service account {account.name} is created")
        except UserError as refusal:
            form.add_error(refusal.field or None, refusal.text)
    return show(request, pk, account=form, status=422)


@never_cache
@require_POST
def account_rotate(request: Request, pk: int, account: int) -> HttpResponse:
    """A new secret, shown once; the old one ends."""
    found = get_object_or_404(ServiceAccount, pk=account, project=_mine(request, pk))
    return _secret(request, found, actions.rotate_secret(found, request.user), f"{found.name} has a new secret")


@require_POST
def account_delete(request: Request, pk: int, account: int) -> HttpResponse:
    """Its secret and its tokens end."""
    found = get_object_or_404(ServiceAccount.objects.select_related("user"), pk=account, project=_mine(request, pk))
    actions.delete_service_account(found, request.user)
    return onward(request, _url(pk), f"Service account {found.name} is deleted.")


def _mine(request: Request, pk: int) -> Project:
    project: Project = get_object_or_404(Project.objects.visible_to(request.user), pk=pk)
    access.require(request.user, Action.MANAGE, project.pk)
    return project


def _url(pk: int) -> str:
    return reverse("project", args=[pk])


def _secret(request: Request, account: ServiceAccount, secret: str, title: str) -> HttpResponse:
    context = {
        "title": title,
        "intro": "The secret is shown once. Keep it where the program finds it; a lost one can only be replaced.",
        "secrets": [("Client id", "secret-id", account.client_id), ("Client secret", "secret-secret", secret)],
        "token_url": request.build_absolute_uri("/api/v1/token"),
        "back": _url(account.project_id),
        "back_words": account.project.name,
    }
    return page(request, "parts/secret.html", "parts/_secret.html", context)
