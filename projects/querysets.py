"""Querysets of rows that belong to a project or a scope.

`visible_to` is the only way to the rows that a user may see.
"""

import uuid
from typing import Any, Protocol, Self

from django.db import models

from projects.permissions import Entity, Permission
from projects.rights import Rights, view_permission
from projects.scopes import KeyedRow, Level, Scope

_NAME_FIELDS = frozenset({"id", "name", "username"})


class RightsHolder(Protocol):
    """A user, as far as querysets need one; the models import this module."""

    @property
    def rights(self) -> Rights: ...


class ProjectRow(KeyedRow, Protocol):
    """A project, as far as querysets need one."""

    cluster_id: uuid.UUID
    department_id: int


def list_visible_project_ids(user: RightsHolder) -> frozenset[int] | None:
    """Return the ids of the projects whose workloads the user may see; None means all."""
    return user.rights.project_ids(view_permission(Entity.WORKLOADS))


def list_fields_beside_names(model: type[models.Model], *paths: str) -> tuple[str, ...]:
    """Return the fields of related rows to `defer` where only keys and names are shown.

    `paths` are as "project" or "project__cluster" of the model.
    """
    fields: list[str] = []
    for path in paths:
        related: Any = model
        for step in path.split("__"):
            related = related._meta.get_field(step).related_model
        fields += [
            f"{path}__{each.name}"
            for each in related._meta.concrete_fields
            if not each.is_relation and each.name not in _NAME_FIELDS
        ]
    return tuple(fields)


class ProjectQuerySet(models.QuerySet[Any]):
    """Projects. A removed project keeps its row, for its history."""

    def there(self) -> Self:
        """Return the projects that were not removed."""
        return self.filter(deleted_at=None)

    def leaving(self) -> Self:
        """Return the removed projects that still exist in their cluster."""
        return self.filter(deleted_at__isnull=False, removed_at=None)

    def visible_to(self, user: RightsHolder) -> Self:
        """Return the projects that the user may view, without removed ones."""
        return self.where(user, view_permission(Entity.PROJECTS))

    def where(self, user: RightsHolder, permission: Permission) -> Self:
        """Return the projects in which the user has the permission."""
        ids = user.rights.project_ids(permission)
        return self.there() if ids is None else self.there().filter(pk__in=ids)


class DepartmentQuerySet(models.QuerySet[Any]):
    """Departments. A removed department keeps its row while removed projects name it."""

    def there(self) -> Self:
        """Return the departments that were not removed."""
        return self.filter(deleted_at=None)

    def visible_to(self, user: RightsHolder) -> Self:
        """Return the departments that the user may view, without removed ones."""
        where = user.rights.permitted_scopes(view_permission(Entity.DEPARTMENTS))
        return self.there() if where.tenant else self.there().filter(pk__in=where.departments)


class InProject(models.QuerySet[Any]):
    """Rows of a project, as workloads are, by their field `project`."""

    def visible_to(self, user: RightsHolder) -> Self:
        """Return the rows of projects whose workloads the user may view."""
        ids = list_visible_project_ids(user)
        return self if ids is None else self.filter(project__in=ids)


class PastInProject(InProject):
    """Rows of a project that outlive it, as its GPU hours do."""

    def visible_to(self, user: RightsHolder) -> Self:
        """Return the rows of projects whose workloads the user may view, or could before.

        A removed project counts to its cluster and its department still, so that sums of the past
        stay as they were.
        """
        where = user.rights.permitted_scopes(view_permission(Entity.WORKLOADS))
        if where.tenant:
            return self
        if not where.is_any:
            return self.none()
        return self.filter(
            models.Q(project__cluster__in=where.clusters)
            | models.Q(project__department__in=where.departments)
            | models.Q(project__in=where.projects)
        )


class ScopedQuerySet(models.QuerySet[Any]):
    """Rows that belong to a scope (`projects.scopes.Scoped`).

    The model's `entity` names the permission that shows them.
    """

    def visible_to(self, user: RightsHolder) -> Self:
        """Return the rows whose scope the user may view, or that lie above it.

        An asset above a project is there to be used in the project, so its members see it.
        """
        permission = view_permission(self.model.entity)
        where = user.rights.permitted_scopes(permission)
        if where.tenant:
            return self
        if not where.is_any:
            return self.none()
        places = user.rights.list_places(permission)
        return self.filter(
            models.Q(cluster=None, department=None, project=None)
            | models.Q(cluster__in=where.clusters | {place.cluster for place in places})
            | models.Q(department__in=where.departments | {place.department for place in places})
            | models.Q(project__in=[place.project for place in places])
        )

    def within(self, project: ProjectRow) -> Self:
        """Return the rows that can be used in a project.

        They are its own and those of its department, its cluster and the tenant.
        """
        return self.filter(
            models.Q(cluster=None, department=None, project=None)
            | models.Q(cluster=project.cluster_id)
            | models.Q(department=project.department_id)
            | models.Q(project=project.pk)
        )

    def with_scope(self) -> Self:
        """Load the names of the scopes with the rows, and little else of the scopes."""
        paths = [level.value for level in Level if level is not Level.TENANT]
        return self.select_related(*paths).defer(*list_fields_beside_names(self.model, *paths))

    def at(self, scope: Scope) -> Self:
        """Return the rows of exactly this scope."""
        if scope.level is Level.TENANT:
            return self.filter(cluster=None, department=None, project=None)
        return self.filter(**{f"{scope.level}_id": scope.id})


class GovernedQuerySet(ScopedQuerySet):
    """Rows that are managed and not used, as access rules and service accounts are.

    What belongs above a scope is not shown in it.
    """

    def visible_to(self, user: RightsHolder) -> Self:
        """Return the rows of the scopes in which the user may view them."""
        permission = view_permission(self.model.entity)
        where = user.rights.permitted_scopes(permission)
        if where.tenant:
            return self
        if not where.is_any:
            return self.none()
        below = models.Q(cluster__in=where.clusters) | models.Q(department__in=where.departments)
        return self.filter(below | models.Q(project__in=user.rights.project_ids(permission) or ()))
