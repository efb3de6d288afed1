"""What one user may do where: the sum of the access rules for them and their groups.

The rules are loaded once and asked often.
"""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from projects.permissions import TENANT_ONLY, Entity, Permission, Verb
from projects.scopes import Level, Scope


@dataclass(frozen=True, slots=True)
class Grant:
    """A set of permissions in a scope and everything below it."""

    permissions: frozenset[Permission]
    scope: Scope
    role: str
    """The role's label."""


@dataclass(frozen=True, slots=True)
class PermittedScopes:
    """The scopes in which a permission is given, as the rules name them.

    What is below them is permitted as well.
    """

    tenant: bool
    clusters: frozenset[uuid.UUID]
    departments: frozenset[int]
    projects: frozenset[int]

    @property
    def is_any(self) -> bool:
        return self.tenant or bool(self.clusters or self.departments or self.projects)


@dataclass(frozen=True, slots=True)
class Place:
    """The ids of a project and of the scopes above it."""

    project: int
    department: int
    cluster: uuid.UUID


FindPlaces = Callable[[PermittedScopes], Sequence[Place]]
"""Finds the projects below the scopes; it is not called for the tenant."""


class Rights:
    """What one user may do where, by the rules at the time it was made.

    Each request makes its own.
    """

    def __init__(self, grants: Sequence[Grant], find_places: FindPlaces) -> None:
        self.grants = grants
        self._find_places = find_places
        self._permitted_scopes: dict[Permission, PermittedScopes] = {}

    def permitted_scopes(self, permission: Permission) -> PermittedScopes:
        """Return the scopes in which it is permitted."""
        if permission not in self._permitted_scopes:
            self._permitted_scopes[permission] = self._find_scopes(permission)
        return self._permitted_scopes[permission]

    def _find_scopes(self, permission: Permission) -> PermittedScopes:
        scopes = [grant.scope for grant in self.grants if permission in grant.permissions]
        tenant = any(scope.level is Level.TENANT for scope in scopes)
        if tenant or permission.entity in TENANT_ONLY:
            return PermittedScopes(tenant, frozenset(), frozenset(), frozenset())
        return _collect_scopes(scopes)

    def may(self, permission: Permission, scope: Scope) -> bool:
        """Tell whether it is permitted in the scope."""
        where = self.permitted_scopes(permission)
        if where.tenant:
            return True
        if scope.level is Level.CLUSTER:
            return scope.id in where.clusters
        if scope.level is Level.DEPARTMENT:
            return scope.id in where.departments
        return scope.level is Level.PROJECT and (
            scope.id in where.projects or scope.id in self._find_places_below(where)
        )

    def may_anywhere(self, permission: Permission) -> bool:
        """Tell whether it is permitted in any scope."""
        return self.permitted_scopes(permission).is_any

    def project_ids(self, permission: Permission) -> frozenset[int] | None:
        """Return the ids of the projects in which it is permitted; None means all.

        Takes at most one query.
        """
        where = self.permitted_scopes(permission)
        if where.tenant:
            return None
        if self._names_projects_only(where):
            return where.projects
        return frozenset(self._find_places_below(where))

    def list_places(self, permission: Permission) -> Sequence[Place]:
        """Return the projects in which it is permitted, with what is above each.

        Do not call it where the tenant is permitted. Takes at most one query.
        """
        return list(
            self._find_places_below(
                self.permitted_scopes(permission), skips_named_projects=False
            ).values()
        )

    @cached_property
    def everything(self) -> frozenset[Permission]:
        """All permissions that are given in some scope."""
        return frozenset().union(*(grant.permissions for grant in self.grants))

    @cached_property
    def written(self) -> frozenset[str]:
        """All permissions that are given in some scope, as templates write them:
        "workloads:create".
        """
        return frozenset(str(each) for each in self.everything)

    def permissions_in(self, scope: Scope) -> frozenset[Permission]:
        """Return all permissions in a scope."""
        return frozenset(
            permission for permission in self.everything if self.may(permission, scope)
        )

    @staticmethod
    def _names_projects_only(where: PermittedScopes) -> bool:
        return not (where.clusters or where.departments)

    def _find_places_below(
        self, where: PermittedScopes, *, skips_named_projects: bool = True
    ) -> dict[int, Place]:
        """Return the projects below the scopes, by id.

        With `skips_named_projects`, nothing is loaded where the rules name projects only: their ids
        are known.
        """
        if not where.is_any or (skips_named_projects and self._names_projects_only(where)):
            return {}
        return {
            place.project: place
            for place in self._all_places
            if place.project in where.projects
            or place.department in where.departments
            or place.cluster in where.clusters
        }

    @cached_property
    def _all_places(self) -> Sequence[Place]:
        """The projects below all scopes of the rules, loaded once for all permissions."""
        return self._find_places(_collect_scopes([grant.scope for grant in self.grants]))


def _collect_scopes(scopes: Sequence[Scope]) -> PermittedScopes:
    clusters = frozenset(scope.id for scope in scopes if isinstance(scope.id, uuid.UUID))
    departments, projects = (
        frozenset(
            scope.id for scope in scopes if scope.level is level and isinstance(scope.id, int)
        )
        for level in (Level.DEPARTMENT, Level.PROJECT)
    )
    return PermittedScopes(False, clusters, departments, projects)


def view_permission(entity: Entity) -> Permission:
    """Return the permission to view an entity."""
    return Permission(entity, Verb.VIEW)
