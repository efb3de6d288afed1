"""What pages say of the clusters behind them."""

from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from clusters.models import Cluster
from projects.models import Project, User

MAX_BANNERS = 5
"""Banners on one page."""


def banners(request: HttpRequest) -> dict[str, Any]:
    """`clusters_in_use`: the clusters that a page has to say something about to this reader.

    One small query, where it is asked, and another where a cluster is disabled.
    """
    return {
        "clusters_in_use": SimpleLazyObject(
            lambda: _list_clusters_with_banner(getattr(request, "user", None))
        )
    }


def _list_clusters_with_banner(user: object) -> list[Cluster]:
    if not isinstance(user, User) or not user.is_authenticated:
        return []
    telling = Cluster.objects.visible_to(user).filter(
        Q(is_local=True) | Q(is_enabled=False) | Q(unreachable_since__isnull=False)
    )
    found = list(telling.only("name", "is_local", "unreachable_since", "is_enabled", "disabled_at"))
    # One that was disabled is told of while there is something of it to be seen.
    silent = {each.pk for each in found if not (each.is_local or each.is_enabled)}
    if silent:
        silent -= set(
            Project.objects.there()
            .filter(cluster__in=silent)
            .order_by()
            .values_list("cluster", flat=True)
            .distinct()
        )
    return [each for each in found if each.pk not in silent][:MAX_BANNERS]
