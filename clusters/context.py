"""What pages say of the clusters behind them."""

import itertools
from typing import Any

from django.db.models import Q
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from clusters.models import Cluster
from projects.models import Project, User

MOST = 5
"""Banners on one page."""


def banners(request: HttpRequest) -> dict[str, Any]:
    """`clusters_in_use`: the clusters that a page has to say something about to this reader.

    One small query, where it is asked, and one for each cluster that was disabled.
    """
    return {"clusters_in_use": SimpleLazyObject(lambda: _worth_saying(getattr(request, "user", None)))}


def _worth_saying(user: object) -> list[Cluster]:
    if not isinstance(user, User) or not user.is_authenticated:
        return []
    telling = Cluster.objects.visible_to(user).filter(Q(is_local=True) | Q(is_enabled=False) | Q(unreachable_since__isnull=False))
    found = telling.only("name", "is_local", "unreachable_since", "is_enabled", "disabled_at")
    return list(itertools.islice(filter(_has_something, found), MOST))


def _has_something(cluster: Cluster) -> bool:
    """One that was disabled is told of while there is something of it to be seen."""
    return cluster.is_local or cluster.is_enabled or Project.objects.there().filter(cluster=cluster).exists()
