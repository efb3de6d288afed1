"""Where assets are used, as far as somebody may see it: by workloads (a floor above says so), by templates, by data sources.

Nothing here tells of a use that the one who asks may not see, but that there are others where an asset cannot be deleted for them.
"""

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Count
from django.urls import reverse
from django.utils.module_loading import import_string

from environments.models import Asset, DataSource, Link, Template
from projects.models import User

MOST = 20
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
    """The uses that somebody sees, and how many there are beside."""

    seen: Sequence[Use]
    hidden: int

    def __bool__(self) -> bool:
        return bool(self.seen or self.hidden)

    @property
    def words(self) -> str:
        """As a refusal names them."""
        shown = [str(use) for use in self.seen]
        more = f"{self.hidden} that you may not see" if shown else f"{self.hidden} uses that you may not see"
        return " and ".join(filter(None, (", ".join(shown), more if self.hidden else "")))


def workloads(asset: Asset, user: User) -> Sequence[Use]:
    """The workloads that were made of it and that the user sees, the newest first."""
    found = import_string(f"{settings.ASSET_USES}.users_of")(asset.pk, user)[:MOST]
    return [Use("workload", each.name, reverse("workload", args=[each.pk]), each) for each in found]


def templates(asset: Asset, user: User) -> Sequence[Use]:
    """The templates that name it and that the user sees."""
    rows = Template.objects.visible_to(user).filter(links__asset=asset.pk).order_by("name")[:MOST]
    return [Use("template", each.name, reverse("template", args=[each.pk])) for each in rows]


def data_sources(asset: Asset, user: User) -> Sequence[Use]:
    """The data sources that log in with it and that the user sees."""
    rows = DataSource.objects.visible_to(user).filter(credential=asset.pk).order_by("name")[:MOST]
    return [Use("data source", each.name, reverse("data-source", args=[each.pk])) for each in rows]


def holding(asset: Asset, sorts: Sequence[str], user: User) -> Uses:
    """What of these sorts ("template", "data-source", "workload") uses it: what the user sees, and the number of the others."""
    find = {"workload": workloads, "template": templates, "data-source": data_sources}
    seen = [use for sort in sorts for use in find[sort](asset, user)]
    total = sum(_total(asset, sort) for sort in sorts)
    return Uses(seen, max(0, total - len(seen)))


def _total(asset: Asset, sort: str) -> int:
    if sort == "workload":
        return int(import_string(f"{settings.ASSET_USES}.counts")([asset.pk]).get(asset.pk, 0))
    if sort == "template":
        return Link.objects.filter(asset=asset.pk).count()
    return DataSource.objects.filter(credential=asset.pk).count()


def workload_counts(ids: Sequence[uuid.UUID], user: User) -> Counter[uuid.UUID]:
    """How many workloads that the user sees were made of each. One query."""
    return Counter(import_string(f"{settings.ASSET_USES}.counts")(ids, user))


def template_counts(ids: Sequence[uuid.UUID], user: User) -> Counter[uuid.UUID]:
    """How many templates that the user sees name each. One query."""
    rows = Link.objects.filter(asset__in=ids, template__in=Template.objects.visible_to(user)).values_list("asset")
    return Counter(dict(rows.annotate(number=Count("template"))))


def source_counts(ids: Sequence[uuid.UUID], user: User) -> Counter[uuid.UUID]:
    """How many data sources that the user sees log in with each credential. One query."""
    rows = DataSource.objects.visible_to(user).order_by().filter(credential__in=ids).values_list("credential")
    return Counter(dict(rows.annotate(number=Count("pk"))))
