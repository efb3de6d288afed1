"""Querysets of clusters and node pools: which of them are in use, and which a user may see."""

from typing import Any, Self

from django.db import models

from projects.models import User
from projects.permissions import Entity
from projects.rights import view_permission


class ClusterQuerySet(models.QuerySet[Any]):
    def there(self) -> Self:
        """Return the clusters that were not removed."""
        return self.filter(removed_at=None)

    def in_use(self) -> Self:
        """Return the clusters that are asked, followed and launched in: neither removed nor
        disabled.
        """
        return self.filter(removed_at=None, is_enabled=True)

    def visible_to(self, user: User) -> Self:
        """Return the clusters that the user may view, and those of the projects where they may."""
        permission = view_permission(Entity.CLUSTERS)
        where = user.rights.permitted_scopes(permission)
        if where.tenant:
            return self.there()
        return self.there().filter(
            pk__in=where.clusters | {place.cluster for place in user.rights.list_places(permission)}
        )


class NodePoolQuerySet(models.QuerySet[Any]):
    def visible_to(self, user: User) -> Self:
        """Return the node pools that the user may view: of a cluster, or of a cluster with a
        project of theirs.
        """
        permission = view_permission(Entity.NODE_POOLS)
        where = user.rights.permitted_scopes(permission)
        if where.tenant:
            return self.filter(cluster__removed_at=None)
        clusters = where.clusters | {place.cluster for place in user.rights.list_places(permission)}
        return self.filter(cluster__removed_at=None, cluster__in=clusters)
