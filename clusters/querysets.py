"""Whose clusters: those on which one has a project. And which of them are worked with."""

from typing import Any, Self

from django.db import models

from projects.models import User
from projects.permissions import Entity
from projects.rights import view_permission


class ClusterQuerySet(models.QuerySet[Any]):
    def there(self) -> Self:
        """Those that were not removed."""
        return self.filter(removed_at=None)

    def in_use(self) -> Self:
        """Those that are asked and followed, and where things are launched: neither removed nor
        disabled.
        """
        return self.filter(removed_at=None, is_enabled=True)

    def visible_to(self, user: User) -> Self:
        """The clusters that the user may view, and those of the projects where they may."""
        permission = view_permission(Entity.CLUSTERS)
        where = user.rights.permitted_scopes(permission)
        if where.tenant:
            return self.there()
        return self.there().filter(
            pk__in=where.clusters | {place.cluster for place in user.rights.list_places(permission)}
        )


class NodePoolQuerySet(models.QuerySet[Any]):
    def visible_to(self, user: User) -> Self:
        """The node pools of the clusters where the user may view them, or has a project where they
        may.
        """
        permission = view_permission(Entity.NODE_POOLS)
        where = user.rights.permitted_scopes(permission)
        if where.tenant:
            return self.filter(cluster__removed_at=None)
        clusters = where.clusters | {place.cluster for place in user.rights.list_places(permission)}
        return self.filter(cluster__removed_at=None, cluster__in=clusters)
