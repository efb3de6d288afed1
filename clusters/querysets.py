"""Whose clusters: those on which one has a project."""

from typing import Any, Self

from django.db import models

from projects.models import Project, User


class ClusterQuerySet(models.QuerySet[Any]):
    def visible_to(self, user: User) -> Self:
        """The clusters of the projects in which the user has a role; all of them for an administrator."""
        if user.is_superuser:
            return self
        return self.filter(pk__in=Project.objects.visible_to(user).values("cluster_id"))
