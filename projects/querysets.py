"""What a person sees: `visible_to` is the only way to rows that belong to somebody."""

from typing import TYPE_CHECKING, Any, Self

from django.db import models

from projects.permissions import Entity
from projects.rights import view_permission
from projects.scopes import Level, Scope

if TYPE_CHECKING:
    from projects.models import Project, User
    from projects.permissions import Permission

_NAME_FIELDS = frozenset({"id", "name", "username"})


def list_visible_project_ids(user: "User") -> frozenset[int] | None:
    """The ids of the projects whose workloads a user sees; None means every one."""
    return user.rights.project_ids(view_permission(Entity.WORKLOADS))


def list_fields_beside_names(model: type[models.Model], *paths: str) -> tuple[str, ...]:
    """What to `defer` of related rows of which keys and names are shown: "project", or
    "project__cluster", of a model.
    """
    found: list[str] = []
    for path in paths:
        related: Any = model
        for step in path.split("__"):
            related = related._meta.get_field(step).related_model
        found += [
            f"{path}__{each.name}"
            for each in related._meta.concrete_fields
            if not each.is_relation and each.name not in _NAME_FIELDS
        ]
    return tuple(found)


class ProjectQuerySet(models.QuerySet[Any]):
    def there(self) -> Self:
        """Those that have not left."""
        return self.filter(left_at=None)

    def leaving(self) -> Self:
        """Those that have left and are still somewhere in their cluster."""
        return self.filter(left_at__isnull=False, removed_at=None)

    def visible_to(self, user: "User") -> Self:
        """The projects that the user may view. Those that have left are nobody's."""
        return self.where(user, view_permission(Entity.PROJECTS))

    def where(self, user: "User", permission: "Permission") -> Self:
        """The projects in which this is permitted to the user."""
        ids = user.rights.project_ids(permission)
        return self.there() if ids is None else self.there().filter(pk__in=ids)


class DepartmentQuerySet(models.QuerySet[Any]):
    def there(self) -> Self:
        """Those that have not left."""
        return self.filter(left_at=None)

    def visible_to(self, user: "User") -> Self:
        """The departments that the user may view. Those that have left are nobody's."""
        where = user.rights.permitted_scopes(view_permission(Entity.DEPARTMENTS))
        return self.there() if where.tenant else self.there().filter(pk__in=where.departments)


class InProject(models.QuerySet[Any]):
    """Workloads: rows that belong to one project, by their field `project`."""

    def visible_to(self, user: "User") -> Self:
        """Those of the projects whose workloads the user may view."""
        ids = list_visible_project_ids(user)
        return self if ids is None else self.filter(project__in=ids)


class ScopedQuerySet(models.QuerySet[Any]):
    """Rows that belong to a scope (`projects.scopes.Scoped`); the model's `entity` says which
    permission shows them.
    """

    def visible_to(self, user: "User") -> Self:
        """Those whose scope the user may view, and those above a project that they may view: what
        belongs there is for use there.
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

    def within(self, project: "Project") -> Self:
        """Those that are for use in a project: its own, and those of its department, its cluster
        and the tenant.
        """
        return self.filter(
            models.Q(cluster=None, department=None, project=None)
            | models.Q(cluster=project.cluster_id)
            | models.Q(department=project.department_id)
            | models.Q(project=project.pk)
        )

    def with_scope(self) -> Self:
        """With what their scopes are called, and little else of them: a table has three beside each
        row.
        """
        paths = [level.value for level in Level if level is not Level.TENANT]
        return self.select_related(*paths).defer(*list_fields_beside_names(self.model, *paths))

    def at(self, scope: Scope) -> Self:
        """Those of exactly this scope."""
        if scope.level is Level.TENANT:
            return self.filter(cluster=None, department=None, project=None)
        return self.filter(**{f"{scope.level}_id": scope.id})


class GovernedQuerySet(ScopedQuerySet):
    """Rows that are managed and not used (access rules, service accounts): what belongs above a
    scope is not shown in it.
    """

    def visible_to(self, user: "User") -> Self:
        """Those of the scopes in which the user may view them."""
        permission = view_permission(self.model.entity)
        where = user.rights.permitted_scopes(permission)
        if where.tenant:
            return self
        if not where.is_any:
            return self.none()
        below = models.Q(cluster__in=where.clusters) | models.Q(department__in=where.departments)
        return self.filter(below | models.Q(project__in=user.rights.project_ids(permission) or ()))
