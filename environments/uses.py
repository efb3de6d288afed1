"""Where assets are used: by workloads (the app above says so), templates and data sources.

Nothing here reveals a use that the user may not see, except that hidden ones are counted where an
asset cannot be deleted for them.
"""

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.urls import reverse

from environments import seams
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
    """The uses that a user may see, and the number of hidden ones.

    `visible` has MAX_USES of a sort by name, `more` is how many further ones are visible.
    """

    visible: Sequence[Use]
    hidden: int
    more: int = 0

    def __bool__(self) -> bool:
        return bool(self.visible or self.hidden)

    @property
    def description(self) -> str:
        """The uses in words, as a refusal names them."""
        parts = [", ".join(map(str, self.visible)), f"{self.more} more" if self.more else ""]
        if self.hidden:
            parts.append(
                f"{self.hidden} that you may not see"
                if self.visible
                else f"{self.hidden} uses that you may not see"
            )
        return " and ".join(filter(None, parts))


def list_workloads(asset: Asset, user: User) -> Sequence[Use]:
    """Return the visible workloads that were made of the asset, newest first."""
    return [
        _build_use("workload", each) for each in _query_uses(asset, "workload", user)[:MAX_USES]
    ]


def list_templates(asset: Asset, user: User) -> Sequence[Use]:
    """Return the visible templates that name the asset."""
    return [
        _build_use("template", each) for each in _query_uses(asset, "template", user)[:MAX_USES]
    ]


def list_data_sources(asset: Asset, user: User) -> Sequence[Use]:
    """Return the visible data sources that log in with the asset."""
    return [
        _build_use("data-source", each)
        for each in _query_uses(asset, "data-source", user)[:MAX_USES]
    ]


def find_uses(asset: Asset, sorts: Sequence[str], user: User) -> Uses:
    """Return the uses of these sorts ("template", "data-source", "workload").

    Those the user sees, and the number of the others.
    """
    return _collect_uses(
        [(sort, _query_uses(asset, sort, user), _query_uses(asset, sort, None)) for sort in sorts]
    )


def find_uses_outside(credential: Credential, scope: Scope, user: User) -> Uses:
    """Return the uses of a credential outside a scope below the tenant.

    They would lose it if it were for that scope only. As `find_uses` counts them.
    """
    queries = []
    for sort in ("data-source", "workload", "template"):
        visible, every = (
            _query_uses(credential, sort, viewer).exclude(
                _build_inside_filter(scope, has_scope=sort != "workload")
            )
            for viewer in (user, None)
        )
        queries.append((sort, visible, every))
    return _collect_uses(queries)


def find_uses_of_scope(scope: Scope, user: User) -> Uses:
    """Return the data sources elsewhere that log in with credentials of a scope.

    As `find_uses` counts them.
    """
    rows = DataSource.objects.filter(credential__in=Credential.objects.at(scope)).exclude(
        _build_inside_filter(scope, has_scope=True)
    )
    visible = DataSource.objects.visible_to(user).filter(pk__in=rows.values("pk"))
    return _collect_uses([("data-source", visible.order_by("name"), rows)])


def _query_uses(asset: Asset, sort: str, user: User | None) -> QuerySet[Any]:
    """Return the uses of a sort: those that the user sees, or every one for None."""
    if sort == "workload":
        return seams.ASSET_USES.get().list_workloads_using(asset.pk, user)
    model, path = (Template, "links__asset") if sort == "template" else (DataSource, "credential")
    rows = model.objects.all() if user is None else model.objects.visible_to(user)
    return rows.filter(**{path: asset.pk}).order_by("name")


def _build_inside_filter(scope: Scope, *, has_scope: bool) -> Q:
    """Build the filter for rows in a scope.

    Rows without a scope of their own belong to projects.
    """
    if scope.level is Level.PROJECT:
        return Q(project=scope.id)
    below = Q(**{f"project__{scope.level}": scope.id})
    return below | Q(**{str(scope.level): scope.id}) if has_scope else below


def _collect_uses(queries: Iterable[tuple[str, QuerySet[Any], QuerySet[Any]]]) -> Uses:
    """Collect the uses of each sort: (sort, rows the user sees, all rows)."""
    visible, hidden, more = [], 0, 0
    for sort, visible_rows, all_rows in queries:
        first_rows, total = list(visible_rows[: MAX_USES + 1]), all_rows.count()
        visible_count = len(first_rows) if len(first_rows) <= MAX_USES else visible_rows.count()
        visible += [_build_use(sort, each) for each in first_rows[:MAX_USES]]
        more += max(0, visible_count - MAX_USES)
        hidden += max(0, total - visible_count)
    return Uses(visible, hidden, more)


def _build_use(sort: str, row: Any) -> Use:
    return Use(
        sort.replace("-", " "),
        row.name,
        reverse(sort, args=[row.pk]),
        row if sort == "workload" else None,
    )


def count_workloads(ids: Sequence[uuid.UUID], user: User) -> Counter[uuid.UUID]:
    """Count the visible workloads that were made of each asset. One query."""
    return Counter(seams.ASSET_USES.get().count_workloads(ids, user))


def count_templates(ids: Sequence[uuid.UUID], user: User) -> Counter[uuid.UUID]:
    """Count the visible templates that name each asset. One query."""
    rows = Link.objects.filter(
        asset__in=ids, template__in=Template.objects.visible_to(user)
    ).values_list("asset")
    return Counter(dict(rows.annotate(number=Count("template"))))


def count_data_sources(ids: Sequence[uuid.UUID], user: User) -> Counter[uuid.UUID]:
    """Count the visible data sources that log in with each credential. One query."""
    rows = (
        DataSource.objects.visible_to(user)
        .order_by()
        .filter(credential__in=ids)
        .values_list("credential")
    )
    return Counter(dict(rows.annotate(number=Count("pk"))))
