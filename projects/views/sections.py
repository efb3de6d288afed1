"""Lists beside what a page is about: a page of each, with a search by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from console import pagination
from projects.http import Request

PAGE = 25
"""Rows that a page shows of each list; a row of people may have its own selection of roles."""
LONGEST_SEARCH = 150


@dataclass(frozen=True, slots=True)
class Section:
    """A page of a list, searched by name; its parameters are `name` and `name`-page."""

    name: str
    search: str
    page: pagination.Page[Any]
    count: int
    """Rows that fit the search."""

    @property
    def is_searchable(self) -> bool:
        return bool(self.search or self.page.next or self.page.previous)


def load_section(
    request: Request,
    name: str,
    rows: "QuerySet[Any]",
    searched: Sequence[str],
    *,
    order: Sequence[str] = (),
) -> Section:
    """Load the page of a list that the address asks for.

    `searched` are the fields with names; the list is in their order where `order` has no other.
    """
    search = request.GET.get(name, "").replace("\x00", "").strip()[:LONGEST_SEARCH]
    if search:
        matches = Q()
        for each in searched:
            matches |= Q((f"{each}__icontains", search))
        rows = rows.filter(matches)
    page = pagination.load_page(
        rows,
        pagination.SortOrder(name, (*(order or searched), "id")),
        request.GET.get(f"{name}-page", ""),
        PAGE,
    )
    has_more = page.next or page.previous
    return Section(name, search, page, rows.count() if has_more else len(page.rows))
