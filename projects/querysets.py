"""What a person sees: `visible_to` is the only way to the rows of a project."""

from typing import TYPE_CHECKING, Any, Self

from django.db import models

if TYPE_CHECKING:
    from projects.models import User


def visible_projects(user: "User") -> frozenset[int] | None:
    """The ids of the projects that a user sees; None means every one."""
    if user.is_superuser:
        return None
    return frozenset(user.memberships.values_list("project_id", flat=True))


class ProjectQuerySet(models.QuerySet[Any]):
    def visible_to(self, user: "User") -> Self:
        """The projects in which the user has a role; all of them for an administrator."""
        return self if user.is_superuser else self.filter(memberships__user=user)


class InProject(models.QuerySet[Any]):
    """Rows that belong to one project, by their field `project`."""

    def visible_to(self, user: "User") -> Self:
        """Those of the projects in which the user has a role."""
        return self if user.is_superuser else self.filter(project__in=user.memberships.values("project_id"))


class InProjectOrAll(models.QuerySet[Any]):
    """Rows that belong to one project or, where `project` is null, to everybody."""

    def visible_to(self, user: "User") -> Self:
        """Everybody's, and those of the projects in which the user has a role."""
        if user.is_superuser:
            return self
        return self.filter(models.Q(project=None) | models.Q(project__in=user.memberships.values("project_id")))
