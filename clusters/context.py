"""The context processor of the banners that pages show about clusters."""

from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from clusters.models import Cluster
from projects.models import Project, User

MAX_BANNERS = 5
"""Banners on one page."""


def banners(request: HttpRequest) -> dict[str, Any]:
    """Return `clusters_in_use`: the clusters about which a page shows this user a banner.

    It costs one small query, on the pages that show it, and another where a cluster is disabled.
    """
    return {
        "clusters_in_use": SimpleLazyObject(
            lambda: _list_clusters_with_banner(getattr(request, "user", None))
        )
    }


def _list_clusters_with_banner(user: object) -> list[Cluster]:
    if not isinstance(user, User) or not user.is_authenticated:
        return []
    noteworthy = Cluster.objects.visible_to(user).filter(
        Q(is_local=True) | Q(is_enabled=False) | Q(unreachable_since__isnull=False)
    )
    clusters = list(
        noteworthy.only("name", "is_local", "unreachable_since", "is_enabled", "disabled_at")
    )
    # A disabled cluster has a banner only while it still has projects.
    disabled = {each.pk for each in clusters if not (each.is_local or each.is_enabled)}
    if disabled:
        disabled -= set(
            Project.objects.there()
            .filter(cluster__in=disabled)
            .order_by()
            .values_list("cluster", flat=True)
            .distinct()
        )
    return [each for each in clusters if each.pk not in disabled][:MAX_BANNERS]
