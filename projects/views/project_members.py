"""Roles of people in a project and its service accounts, edited on the project's page."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from console.errors import UserError
from console.http import redirect_with_message
from projects import access, actions, user_actions
from projects.forms import PersonForm, RoleForm, ServiceAccountForm
from projects.http import Request
from projects.models import AccessRule, Project, ServiceAccount
from projects.permissions import Entity, Verb
from projects.scopes import project_scope
from projects.views.projects import render_project
from projects.views.service_accounts import render_secret


@require_POST
def person_add(request: Request, pk: int) -> HttpResponse:
    """Give a person their first role in the project."""
    project = _get_project(request, pk, Verb.CREATE)
    form = PersonForm(request.POST, auto_id="person_%s")
    if form.is_valid():
        user = form.cleaned_data["username"]
        try:
            user_actions.give_project_role(project, user, form.cleaned_data["role"], request.user)
            return redirect_with_message(
                request, _project_url(project.pk), f"{user} has a role in {project}."
            )
        except UserError as refusal:
            form.add_error(refusal.field or None, refusal.text)
    return render_project(request, pk, person=form, status=422)


@require_POST
def person_role(request: Request, pk: int, membership: int) -> HttpResponse:
    """Give a person another role in the project."""
    project = _get_project(request, pk, Verb.CREATE)
    rule_before = _get_rule(project, membership)
    form = RoleForm(request.POST)
    if not form.is_valid():
        raise UserError("There is no such role. Choose one of the list.", field="role")
    rule = user_actions.change_role(rule_before, form.cleaned_data["role"], request.user)
    return redirect_with_message(
        request, _project_url(project.pk), f"{rule_before.user} is {rule.role_label} of {project}."
    )


@require_POST
def person_remove(request: Request, pk: int, membership: int) -> HttpResponse:
    """Take a person's role away."""
    project = _get_project(request, pk, Verb.DELETE)
    rule = _get_rule(project, membership)
    user_actions.remove_role(rule, request.user)
    # Cached on the user; the rule that is gone may have been the user's own.
    del request.user.rights
    # Without the role the project may be out of the reader's own sight.
    can_see_project = Project.objects.visible_to(request.user).filter(pk=project.pk).exists()
    return redirect_with_message(
        request,
        _project_url(project.pk) if can_see_project else reverse("projects"),
        f"{rule.user} has no role in {project} any more.",
    )


@never_cache
@require_POST
def account_create(request: Request, pk: int) -> HttpResponse:
    """Create a service account and show its secret once."""
    project = _get_project(request, pk, Verb.CREATE, Entity.SERVICE_ACCOUNTS)
    form = ServiceAccountForm(request.POST, auto_id="account_%s")
    if form.is_valid():
        try:
            account, secret = actions.create_service_account(
                project,
                form.cleaned_data["name"],
                by=request.user,
                role=form.cleaned_data["role"],
                expires_at=actions.parse_expiry(form.cleaned_data["expires"]),
            )
            return render_secret(
                request,
                account,
                secret,
                f"Service account {account.name} is created",
                _project_url(pk),
                project.name,
            )
        except UserError as refusal:
            form.add_error(refusal.field or None, refusal.text)
    return render_project(request, pk, account=form, status=422)


@never_cache
@require_POST
def account_rotate(request: Request, pk: int, account: int) -> HttpResponse:
    """Replace a service account's secret and show the new one once."""
    project = _get_project(request, pk, Verb.EDIT, Entity.SERVICE_ACCOUNTS)
    service_account = get_object_or_404(
        ServiceAccount.objects.select_related("user"), pk=account, project=project
    )
    secret = actions.rotate_secret(service_account, request.user)
    return render_secret(
        request,
        service_account,
        secret,
        f"{service_account.name} has a new secret",
        _project_url(pk),
        project.name,
    )


@require_POST
def account_delete(request: Request, pk: int, account: int) -> HttpResponse:
    """Delete a service account; its secret and tokens end."""
    service_account = get_object_or_404(
        ServiceAccount.objects.select_related("user"),
        pk=account,
        project=_get_project(request, pk, Verb.DELETE, Entity.SERVICE_ACCOUNTS),
    )
    actions.delete_service_account(service_account, request.user)
    return redirect_with_message(
        request, _project_url(pk), f"Service account {service_account.name} is deleted."
    )


def _get_rule(project: Project, pk: int) -> AccessRule:
    rules = AccessRule.objects.select_related("user", "custom_role")
    rule: AccessRule = get_object_or_404(rules, pk=pk, project=project, user__is_service=False)
    return rule


def _get_project(
    request: Request, pk: int, verb: Verb, entity: Entity = Entity.ACCESS_RULES
) -> Project:
    project: Project = get_object_or_404(Project.objects.visible_to(request.user), pk=pk)
    access.require(request.user, verb, entity, project_scope(project))
    return project


def _project_url(pk: int) -> str:
    return reverse("project", args=[pk])
