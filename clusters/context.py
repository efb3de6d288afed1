"""What pages say of the clusters behind them."""

from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from clusters.models import Cluster
from projects.models import User

MOST = 5
"""Banners on one page."""


def banners(request: HttpRequest) -> dict[str, Any]:
    """`clusters_in_use`: the clusters that a page has to say something about to this reader. One small query, where it is asked."""
    return {"clusters_in_use": SimpleLazyObject(lambda: _worth_saying(getattr(request, "user", None)))}


def _worth_saying(user: object) -> list[Cluster]:
    if not isinstance(user, User) or not user.is_authenticated:
        return []
    telling = Cluster.objects.visible_to(user).filter(Q(is_local=True) | Q(unreachable_since__isnull=False))
    return list(telling.only("name", "is_local", "unreachable_since")[:MOST])
