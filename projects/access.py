"""Access checks for pages and the API.

What the user may not see does not exist for them (404); what they see but may not change is refused
(403) with the reason and the people who can help.
"""

from collections.abc import Sequence
from functools import cached_property

from django.db import models
from django.http import Http404
from django.urls import reverse
from django.utils.http import urlencode

from console.errors import NotAllowed
from console.texts import join_words
from projects.models import AccessRule, Department, Project, User
from projects.permissions import (
    ROLES,
    SYSTEM,
    TENANT_ONLY,
    Entity,
    Permission,
    Verb,
    list_roles_permitting,
)
from projects.rights import view_permission
from projects.scopes import TENANT, Level, Scope, cluster_scope, department_scope

NOT_THERE = "There is nothing here that you may see."
"""What is said of what does not exist, and of what is not the reader's to see."""
MAX_NAMED = 3
"""Roles or people that a refusal names."""


def is_permitted(user: User, verb: Verb, entity: Entity, scope: Scope = TENANT) -> bool:
    """Tell whether the user may do this in the scope."""
    return user.rights.may(Permission(entity, verb), scope)


def require(user: User, verb: Verb, entity: Entity, scope: Scope = TENANT) -> None:
    """Check that the user may do this in the scope.

    Raises Http404 where the user sees nothing of the entity in the scope, and NotAllowed where they
    see it but may not do this.
    """
    permission = Permission(entity, verb)
    if user.rights.may(permission, scope):
        return
    if scope.level is not Level.TENANT and not can_see(user, entity, scope):
        raise Http404(NOT_THERE)
    raise NotAllowed(
        describe_refusal(user, permission, scope), why=explanation_url(permission, scope)
    )


def require_anywhere(user: User, verb: Verb, entity: Entity) -> None:
    """Check that the user may do this in at least one scope.

    For pages that let the user choose the scope. Raises NotAllowed where no scope permits it.
    """
    permission = Permission(entity, verb)
    if not user.rights.may_anywhere(permission):
        raise NotAllowed(
            describe_refusal(user, permission, TENANT), why=explanation_url(permission, TENANT)
        )


def list_permitted_projects(user: User, verb: Verb, entity: Entity) -> models.QuerySet[Project]:
    """Return the projects in which the user may do this."""
    projects: models.QuerySet[Project] = Project.objects.where(user, Permission(entity, verb))
    return projects


def explanation_url(permission: Permission, scope: Scope) -> str:
    """Return the address of the page that explains this permission in the scope."""
    return f"{reverse('why')}?{urlencode({'permission': str(permission), 'scope': str(scope)})}"


def describe_refusal(user: User, permission: Permission, scope: Scope) -> str:
    """Describe why the user may not do this; see `Refusal`."""
    return Refusal(user, scope).describe(permission)


class Refusal:
    """Explain why a user may not do something in a scope.

    Names the missing permission, the user's roles there, the roles that permit it, and people who
    can give one. Several permissions share one database query.
    """

    def __init__(self, user: User, scope: Scope) -> None:
        self.user = user
        self.scope = scope

    def describe(self, permission: Permission) -> str:
        """Describe the refusal of one permission in sentences for the user."""
        have = f"You are {join_words(self.roles)} there" if self.roles else "You have no role there"
        enough = [
            role.label
            for role in list_roles_permitting(permission)
            if not role.tenant_only or permission.entity in TENANT_ONLY
        ]
        wanted = join_words(enough[:MAX_NAMED], "or") or ROLES[SYSTEM].label
        ask = join_words(self.role_givers, "or") or "a system administrator"
        return (
            f"You may not {permission.words} in {self.scope_name}. {have}; it takes {wanted}. Ask "
            f"{ask}."
        )

    @cached_property
    def roles(self) -> Sequence[str]:
        """Return the user's roles in the scope and above it, sorted."""
        return sorted(
            {
                grant.role
                for grant in self.user.rights.grants
                if grant.scope in self.enclosing_scopes
            }
        )

    @cached_property
    def role_givers(self) -> Sequence[str]:
        """Return names of people who can give a role in the scope, nearest first.

        At most MAX_NAMED names.
        """
        able = [
            key
            for key, role in ROLES.items()
            if role.permits(Permission(Entity.ACCESS_RULES, Verb.CREATE))
        ]
        near = models.Q()
        for scope in self.enclosing_scopes:
            near |= models.Q(**scope.columns)
        rules = AccessRule.objects.filter(
            near, role__in=able, user__is_active=True, user__is_service=False
        )
        order = (
            models.F("project").desc(nulls_last=True),
            models.F("department").desc(nulls_last=True),
            "user__username",
        )
        # One person may have several rules there: more names are loaded than are shown.
        names = list(
            rules.order_by(*order).values_list("user__username", flat=True)[: 4 * MAX_NAMED]
        )
        names += (
            User.objects.filter(is_superuser=True, is_active=True)
            .order_by("username")
            .values_list("username", flat=True)[:MAX_NAMED]
        )
        return list(dict.fromkeys(names))[:MAX_NAMED]

    @cached_property
    def _project(self) -> Project | None:
        return (
            Project.objects.filter(pk=_row_id(self.scope)).first()
            if self.scope.level is Level.PROJECT
            else None
        )

    @cached_property
    def enclosing_scopes(self) -> Sequence[Scope]:
        """Return the scope and the scopes above it."""
        if self._project is None:
            return list({self.scope, TENANT})
        return [
            self.scope,
            department_scope(self._project.department_id),
            cluster_scope(self._project.cluster_id),
            TENANT,
        ]

    @cached_property
    def scope_name(self) -> str:
        """Return the scope's name for a sentence."""
        if self._project is not None:
            return f"project {self._project.name}"
        if self.scope.level is Level.DEPARTMENT:
            names = Department.objects.values_list("name", flat=True)
            return f"department {names.filter(pk=_row_id(self.scope)).first()}"
        return "the whole installation" if self.scope.level is Level.TENANT else "this cluster"


def can_see(user: User, entity: Entity, scope: Scope) -> bool:
    """Tell whether the user may view the entity in the scope or in something below it."""
    permission = view_permission(entity)
    if user.rights.may(permission, scope):
        return True
    if scope.level is Level.PROJECT:
        return user.rights.may(view_permission(Entity.PROJECTS), scope)
    places = user.rights.list_places(permission)
    return scope.id in {
        place.cluster if scope.level is Level.CLUSTER else place.department for place in places
    }


def _row_id(scope: Scope) -> int:
    """Return the row id of a project's or department's scope."""
    assert isinstance(scope.id, int)
    return scope.id
