"""The context processor of the banners that pages show about clusters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from clusters.models import UNFOLLOWED_AFTER, Cluster
from projects.models import Project, User

MAX_BANNERS = 2
"""Clusters that have a banner of their own on one page."""


@dataclass(frozen=True, slots=True)
class ClusterBanners:
    """The clusters with a banner of their own, and how many others something is to be said of."""

    shown: Sequence[Cluster] = ()
    more: int = 0


def banners(request: HttpRequest) -> dict[str, Any]:
    """Return `clusters_in_use`: the clusters about which a page shows this user a banner.

    It costs one small query, on the pages that show it, and another where a cluster is disabled.
    """
    return {
        "clusters_in_use": SimpleLazyObject(
            lambda: _find_clusters_with_banner(getattr(request, "user", None))
        )
    }


def _find_clusters_with_banner(user: object) -> ClusterBanners:
    if not isinstance(user, User) or not user.is_authenticated:
        return ClusterBanners()
    noteworthy = Cluster.objects.visible_to(user).filter(
        Q(is_local=True)
        | Q(is_enabled=False)
        | Q(unreachable_since__isnull=False)
        | Q(followed_until__lt=timezone.now() - UNFOLLOWED_AFTER)
    )
    clusters = list(
        noteworthy.only(
            "name", "is_local", "unreachable_since", "followed_until", "is_enabled", "disabled_at"
        )
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
    noted = [each for each in clusters if each.pk not in disabled]
    # The embedded one first: what it says is nowhere else.
    noted.sort(key=lambda each: not each.is_local)
    return ClusterBanners(noted[:MAX_BANNERS], len(noted[MAX_BANNERS:]))
