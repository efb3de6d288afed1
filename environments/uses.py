"""Where assets are used, as far as somebody may see it: by workloads (a floor above says so), by
templates, by data sources.

Nothing here tells of a use that the one who asks may not see, but that there are others where an
asset cannot be deleted for them.
"""

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Count, Q, QuerySet
from django.urls import reverse
from django.utils.module_loading import import_string

from environments.models import Asset, Credential, DataSource, Link, Template
from projects.models import User
from projects.scopes import Level, Scope

MAX_USES = 20
"""Uses of a sort that are named."""


@dataclass(frozen=True, slots=True)
class Use:
    """One thing that uses an asset; `sort` is "workload", "template" or "data source"."""

    sort: str
    name: str
    url: str
    subject: Any = None
    """The workload, where it is one: a page shows its status."""

    def __str__(self) -> str:
        return f"{self.sort} {self.name}"


@dataclass(frozen=True, slots=True)
class Uses:
    """The uses that somebody sees, MOST of a sort by name and how many `more`, and how many there
    are beside.
    """

    visible: Sequence[Use]
    hidden: int
    more: int = 0

    def __bool__(self) -> bool:
        return bool(self.visible or self.hidden)

    @property
    def description(self) -> str:
        """As a refusal names them."""
        told = [", ".join(map(str, self.visible)), f"{self.more} more" if self.more else ""]
        if self.hidden:
            told.append(
                f"{self.hidden} that you may not see"
                if self.visible
                else f"{self.hidden} uses that you may not see"
            )
        return " and ".join(filter(None, told))


def list_workloads(asset: Asset, user: User) -> Sequence[Use]:
    """The workloads that were made of it and that the user sees, the newest first."""
    return [
        _build_use("workload", each) for each in _query_uses(asset, "workload", user)[:MAX_USES]
    ]


def list_templates(asset: Asset, user: User) -> Sequence[Use]:
    """The templates that name it and that the user sees."""
    return [
        _build_use("template", each) for each in _query_uses(asset, "template", user)[:MAX_USES]
    ]


def list_data_sources(asset: Asset, user: User) -> Sequence[Use]:
    """The data sources that log in with it and that the user sees."""
    return [
        _build_use("data-source", each)
        for each in _query_uses(asset, "data-source", user)[:MAX_USES]
    ]


def find_uses(asset: Asset, sorts: Sequence[str], user: User) -> Uses:
    """What of these sorts ("template", "data-source", "workload") uses it: what the user sees, and
    the number of the others.
    """
    return _collect_uses(
        [(sort, _query_uses(asset, sort, user), _query_uses(asset, sort, None)) for sort in sorts]
    )


def find_uses_outside(credential: Credential, scope: Scope, user: User) -> Uses:
    """What uses a credential and does not belong to a scope below the tenant: it would lose it
    there. Told as `holding` does.
    """
    found = []
    for sort in ("data-source", "workload", "template"):
        seen, every = (
            _query_uses(credential, sort, who).exclude(
                _build_inside_filter(scope, has_scope=sort != "workload")
            )
            for who in (user, None)
        )
        found.append((sort, seen, every))
    return _collect_uses(found)


def find_uses_of_scope(scope: Scope, user: User) -> Uses:
    """The data sources elsewhere that log in with credentials of a scope. Told as `holding`
    does.
    """
    rows = DataSource.objects.filter(credential__in=Credential.objects.at(scope)).exclude(
        _build_inside_filter(scope, has_scope=True)
    )
    mine = DataSource.objects.visible_to(user).filter(pk__in=rows.values("pk"))
    return _collect_uses([("data-source", mine.order_by("name"), rows)])


def _query_uses(asset: Asset, sort: str, user: User | None) -> QuerySet[Any]:
    """The uses of a sort: those that the user sees, or with None every one."""
    if sort == "workload":
        found: QuerySet[Any] = import_string(f"{settings.ASSET_USES}.users_of")(asset.pk, user)
        return found
    model, path = (Template, "links__asset") if sort == "template" else (DataSource, "credential")
    rows = model.objects.all() if user is None else model.objects.visible_to(user)
    return rows.filter(**{path: asset.pk}).order_by("name")


def _build_inside_filter(scope: Scope, *, has_scope: bool) -> Q:
    """The rows in a scope; without scopes of their own they are of projects."""
    if scope.level is Level.PROJECT:
        return Q(project=scope.id)
    below = Q(**{f"project__{scope.level}": scope.id})
    return below | Q(**{str(scope.level): scope.id}) if has_scope else below


def _collect_uses(found: Iterable[tuple[str, QuerySet[Any], QuerySet[Any]]]) -> Uses:
    """Of each sort what somebody sees, and every one."""
    seen, hidden, more = [], 0, 0
    for sort, mine, every in found:
        some, there = list(mine[: MAX_USES + 1]), every.count()
        visible = len(some) if len(some) <= MAX_USES else mine.count()
        seen += [_build_use(sort, each) for each in some[:MAX_USES]]
        more += max(0, visible - MAX_USES)
        hidden += max(0, there - visible)
    return Uses(seen, hidden, more)


def _build_use(sort: str, row: Any) -> Use:
    return Use(
        sort.replace("-", " "),
        row.name,
        reverse(sort, args=[row.pk]),
        row if sort == "workload" else None,
    )


def count_workloads(ids: Sequence[uuid.UUID], user: User) -> Counter[uuid.UUID]:
    """How many workloads that the user sees were made of each. One query."""
    return Counter(import_string(f"{settings.ASSET_USES}.counts")(ids, user))


def count_templates(ids: Sequence[uuid.UUID], user: User) -> Counter[uuid.UUID]:
    """How many templates that the user sees name each. One query."""
    rows = Link.objects.filter(
        asset__in=ids, template__in=Template.objects.visible_to(user)
    ).values_list("asset")
    return Counter(dict(rows.annotate(number=Count("template"))))


def count_data_sources(ids: Sequence[uuid.UUID], user: User) -> Counter[uuid.UUID]:
    """How many data sources that the user sees log in with each credential. One query."""
    rows = (
        DataSource.objects.visible_to(user)
        .order_by()
        .filter(credential__in=ids)
        .values_list("credential")
    )
    return Counter(dict(rows.annotate(number=Count("pk"))))
