"""What pages say of the clusters behind them."""

from typing import Any

from django.db.models import Exists, OuterRef, Q
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from clusters.models import Cluster
from projects.models import Project, User

MOST = 5
"""Banners on one page."""


def banners(request: HttpRequest) -> dict[str, Any]:
    """`clusters_in_use`: the clusters that a page has to say something about to this reader. One small query, where it is asked."""
    return {"clusters_in_use": SimpleLazyObject(lambda: _worth_saying(getattr(request, "user", None)))}


def _worth_saying(user: object) -> list[Cluster]:
    if not isinstance(user, User) or not user.is_authenticated:
        return []
    # One that was disabled is told of while there is something of it to be seen.
    disabled = Q(is_enabled=False) & Exists(Project.objects.there().filter(cluster=OuterRef("pk")))
    telling = Cluster.objects.visible_to(user).filter(Q(is_local=True) | Q(unreachable_since__isnull=False, is_enabled=True) | disabled)
    return list(telling.only("name", "is_local", "unreachable_since", "is_enabled", "disabled_at")[:MOST])
