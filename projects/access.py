"""The one door: what is not yours is not there (404), what you see but may not change is refused
(403, with why and who can help).
"""

from collections.abc import Sequence
from functools import cached_property

from django.db import models
from django.http import Http404
from django.urls import reverse
from django.utils.http import urlencode

from console.errors import NotAllowed
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

MAX_NAMED = 3


def may(user: User, verb: Verb, entity: Entity, scope: Scope = TENANT) -> bool:
    """Whether the user may do this in the scope."""
    return user.rights.may(Permission(entity, verb), scope)


def require(user: User, verb: Verb, entity: Entity, scope: Scope = TENANT) -> None:
    """Raises Http404 where the user sees nothing of the entity in the scope, and NotAllowed where
    they see it and may not do this.
    """
    permission = Permission(entity, verb)
    if user.rights.may(permission, scope):
        return
    if scope.level is not Level.TENANT and not can_see(user, entity, scope):
        raise Http404("There is nothing here that you may see.")
    raise NotAllowed(
        describe_refusal(user, permission, scope), why=explanation_url(permission, scope)
    )


def require_anywhere(user: User, verb: Verb, entity: Entity) -> None:
    """Raises NotAllowed where the user may do this in no scope at all: for the page that asks which
    scope it shall be.
    """
    permission = Permission(entity, verb)
    if not user.rights.may_anywhere(permission):
        raise NotAllowed(
            describe_refusal(user, permission, TENANT), why=explanation_url(permission, TENANT)
        )


def list_permitted_projects(user: User, verb: Verb, entity: Entity) -> models.QuerySet[Project]:
    """The projects in which the user may do this."""
    found: models.QuerySet[Project] = Project.objects.where(user, Permission(entity, verb))
    return found


def explanation_url(permission: Permission, scope: Scope) -> str:
    """The address of the page that says why one may, or may not."""
    return f"{reverse('why')}?{urlencode({'permission': str(permission), 'scope': str(scope)})}"


def describe_refusal(user: User, permission: Permission, scope: Scope) -> str:
    """Why not, in words: see `Refusal`."""
    return Refusal(user, scope).describe(permission)


class Refusal:
    """Why somebody may not do something in a scope: what is missing, what they are there, which
    role has it, who can give it.

    For several permissions it asks the database once.
    """

    def __init__(self, user: User, scope: Scope) -> None:
        self.user = user
        self.scope = scope

    def describe(self, permission: Permission) -> str:
        have = (
            f"You are {join_words(self.roles, 'and')} there"
            if self.roles
            else "You have no role there"
        )
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
        """What the user is in the scope."""
        return sorted(
            {
                grant.role
                for grant in self.user.rights.grants
                if grant.scope in self.enclosing_scopes
            }
        )

    @cached_property
    def role_givers(self) -> Sequence[str]:
        """Some who can give a role in the scope, those nearest to it first."""
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
        """The scope and those above it."""
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
        """The scope in words."""
        if self._project is not None:
            return f"project {self._project.name}"
        if self.scope.level is Level.DEPARTMENT:
            names = Department.objects.values_list("name", flat=True)
            return f"department {names.filter(pk=_row_id(self.scope)).first()}"
        return "Muster as a whole" if self.scope.level is Level.TENANT else "this cluster"


def can_see(user: User, entity: Entity, scope: Scope) -> bool:
    """Whether they may view it there, or something that lies in it."""
    seen = view_permission(entity)
    if user.rights.may(seen, scope):
        return True
    if scope.level is Level.PROJECT:
        return user.rights.may(view_permission(Entity.PROJECTS), scope)
    places = user.rights.list_places(seen)
    return scope.id in {
        place.cluster if scope.level is Level.CLUSTER else place.department for place in places
    }


def _row_id(scope: Scope) -> int:
    """The id of a project or a department."""
    assert isinstance(scope.id, int)
    return scope.id


def join_words(names: Sequence[str], conjunction: str) -> str:
    """As in a sentence: "one, two and three"."""
    return f" {conjunction} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
