"""Filters of the workload table: status, project, framework, submitter, age, name.

The page, its live updates and the CSV export use the same filters.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import F, Q, Subquery
from django.http import QueryDict
from django.utils import timezone

from projects.models import User
from projects.querysets import InProject
from workloads.specs import Framework
from workloads.states import Status

STANDARD = "none"
"""The value of the framework filter for standard workloads."""
AGES: Mapping[str, tuple[str, timedelta]] = {
    "1h": ("Last hour", timedelta(hours=1)),
    "24h": ("Last 24 hours", timedelta(days=1)),
    "7d": ("Last 7 days", timedelta(days=7)),
    "30d": ("Last 30 days", timedelta(days=30)),
}
FRAMEWORKS: Mapping[str, str] = {each.value: each.label for each in Framework} | {
    STANDARD: "None (Standard)"
}
MOST_VALUES = 50
"""Values of one filter."""
LONGEST_SEARCH = 63


@dataclass(frozen=True, slots=True)
class Filters:
    """The chosen filters; an empty one lets everything through.

    Unknown values are dropped when the address is parsed, so that an old link still works.
    """

    statuses: tuple[str, ...] = ()
    projects: tuple[int, ...] = ()
    frameworks: tuple[str, ...] = ()
    submitter: str = ""
    age: str = ""
    search: str = ""
    deleted: bool = False

    @classmethod
    def from_query(cls, query: QueryDict) -> "Filters":
        """Parse the filters from an address.

        Parameters: status=, project= (ids), framework=, by= (user name), age=, q=, deleted=1.
        """
        statuses = frozenset(Status)
        return cls(
            statuses=tuple(
                sorted({each for each in query.getlist("status")[:MOST_VALUES] if each in statuses})
            ),
            projects=tuple(
                sorted(
                    {int(each) for each in query.getlist("project")[:MOST_VALUES] if _is_id(each)}
                )
            ),
            frameworks=tuple(
                sorted(
                    {
                        each
                        for each in query.getlist("framework")[:MOST_VALUES]
                        if each in FRAMEWORKS
                    }
                )
            ),
            submitter=query.get("by", "").strip()[:150].replace("\x00", ""),
            age=query.get("age", "") if query.get("age") in AGES else "",
            search=query.get("q", "").strip()[:LONGEST_SEARCH].replace("\x00", ""),
            deleted=query.get("deleted") == "1",
        )

    def __bool__(self) -> bool:
        """Return whether any filter is set; `deleted` alone does not count."""
        return bool(
            self.statuses
            or self.projects
            or self.frameworks
            or self.submitter
            or self.age
            or self.search
        )

    def apply(self, workloads: InProject) -> InProject:
        """Return the workloads that pass the filters."""
        condition = Q(released_at__isnull=not self.deleted)
        if self.statuses:
            condition &= _match_any("status", self.statuses)
        if len(self.projects) == 1:
            condition &= Q(project_id=self.projects[0])
        elif self.projects:
            # The + 0 keeps planners from an index on the project: for several projects it gives
            # no order (see `queries.list_in_projects`).
            workloads = workloads.alias(of_project=F("project_id") + 0)
            condition &= Q(of_project__in=self.projects)
        if self.frameworks:
            condition &= Q(
                framework__in=["" if each == STANDARD else each for each in self.frameworks]
            )
        if self.submitter:
            # Compare with one value, so that the index on the submitter also gives the order.
            condition &= Q(
                submitted_by_id=Subquery(
                    User.objects.filter(username=self.submitter).values("pk")[:1]
                )
            )
        if self.age:
            condition &= Q(created_at__gte=timezone.now() - AGES[self.age][1])
        if self.search:
            condition &= Q(name__icontains=self.search)
        return workloads.filter(condition)

    def query_pairs(self) -> Iterator[tuple[str, Any]]:
        """Yield the parameters from which `from_query` makes an equal object."""
        yield from (("status", each) for each in self.statuses)
        yield from (("project", each) for each in self.projects)
        yield from (("framework", each) for each in self.frameworks)
        yield from (
            (name, value)
            for name, value in (("by", self.submitter), ("age", self.age), ("q", self.search))
            if value
        )
        if self.deleted:
            yield "deleted", "1"

    def to_query_string(self, *more: tuple[str, Any]) -> str:
        """Return the part of an address after "?", with more parameters at the end."""
        return urlencode([*self.query_pairs(), *(pair for pair in more if pair[1])])


def _match_any(field: str, values: tuple[Any, ...]) -> Q:
    # Compare one value by equality: an index then also gives the order.
    return Q(**{field: values[0]}) if len(values) == 1 else Q(**{f"{field}__in": values})


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10
