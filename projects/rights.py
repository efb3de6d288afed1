"""What one person may do where: the sum of the access rules for them and their groups. Read once,
asked often.
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
    """In words."""


@dataclass(frozen=True, slots=True)
class PermittedScopes:
    """The scopes in which something is permitted, as the rules name them: what is below is
    permitted as well.
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
    """A project and what is above it."""

    project: int
    department: int
    cluster: uuid.UUID


FindPlaces = Callable[[PermittedScopes], Sequence[Place]]
"""The projects below the scopes; for those of the tenant it is not asked."""


class Rights:
    """What one person may do where. The rules are as they were when it was made: a request makes
    its own.
    """

    def __init__(self, grants: Sequence[Grant], find_places: FindPlaces) -> None:
        self.grants = grants
        self._find_places = find_places
        self._permitted_scopes: dict[Permission, PermittedScopes] = {}

    def permitted_scopes(self, permission: Permission) -> PermittedScopes:
        """The scopes in which it is permitted."""
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
        """Whether it is permitted in this scope."""
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
        """Whether it is permitted in any scope at all."""
        return self.permitted_scopes(permission).is_any

    def project_ids(self, permission: Permission) -> frozenset[int] | None:
        """The ids of the projects in which it is permitted; None means every one. At most one
        query.
        """
        where = self.permitted_scopes(permission)
        return (
            None
            if where.tenant
            else where.projects
            if self._names_projects_only(where)
            else frozenset(self._find_places_below(where))
        )

    def list_places(self, permission: Permission) -> Sequence[Place]:
        """Those projects with what is above each; not to be asked where it is permitted in the
        tenant. At most one query.
        """
        return list(
            self._find_places_below(self.permitted_scopes(permission), known=False).values()
        )

    @cached_property
    def everything(self) -> frozenset[Permission]:
        """All that is permitted somewhere."""
        return frozenset().union(*(grant.permissions for grant in self.grants))

    @cached_property
    def written(self) -> frozenset[str]:
        """All that is permitted somewhere, as templates write it: "workloads:create"."""
        return frozenset(str(each) for each in self.everything)

    def permissions_in(self, scope: Scope) -> frozenset[Permission]:
        """All that is permitted in a scope."""
        return frozenset(
            permission for permission in self.everything if self.may(permission, scope)
        )

    @staticmethod
    def _names_projects_only(where: PermittedScopes) -> bool:
        return not (where.clusters or where.departments)

    def _find_places_below(self, where: PermittedScopes, *, known: bool = True) -> dict[int, Place]:
        """The projects below the scopes by their ids. Where the rules name projects only they are
        `known` without asking.
        """
        if not where.is_any or (known and self._names_projects_only(where)):
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
        """The projects below all scopes that the rules name: asked for once, whatever permissions
        are asked for.
        """
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
    """To view an entity."""
    return Permission(entity, Verb.VIEW)
