"""The event history of a workload: changes of status, people's actions, and cluster events."""

from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from console import pagination
from console.texts import parse_number
from workloads.models import Event, Workload

NEWEST = pagination.SortOrder("-at", ("-at", "-id"))
PAGE = 100


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """The chosen events; an empty filter lets everything through."""

    kinds: tuple[str, ...] = ()
    warnings: bool = False
    attempt: int | None = None
    subject: str = ""

    @classmethod
    def from_query(cls, query: QueryDict) -> "HistoryFilter":
        """Parse it from an address: kind=, warnings=1, attempt=, pod= (the name of an object)."""
        return cls(
            kinds=tuple(
                sorted({each for each in query.getlist("kind")[:10] if each in Event.Kind.values})
            ),
            warnings=query.get("warnings") == "1",
            attempt=parse_number(query.get("attempt"), 6),
            subject=query.get("pod", "")[:253].replace("\x00", ""),
        )

    def __bool__(self) -> bool:
        return bool(self.kinds or self.warnings or self.attempt is not None or self.subject)

    def query_pairs(self) -> list[tuple[str, Any]]:
        kind_pairs = [("kind", kind) for kind in self.kinds]
        other_pairs = (
            ("warnings", "1" if self.warnings else ""),
            ("attempt", self.attempt),
            ("pod", self.subject),
        )
        return kind_pairs + [(name, str(value)) for name, value in other_pairs if value]


def load_history(
    workload: Workload, event_filter: HistoryFilter, cursor: str = "", size: int = PAGE
) -> "pagination.Page[Event]":
    """Load a page of events, newest first, at a cursor of `NEWEST`."""
    events = Event.objects.filter(workload=workload).select_related("by")
    if event_filter.kinds:
        events = events.filter(kind__in=event_filter.kinds)
    if event_filter.warnings:
        events = events.filter(is_warning=True)
    if event_filter.attempt is not None:
        events = events.filter(attempt=event_filter.attempt)
    if event_filter.subject:
        events = events.filter(subject=event_filter.subject)
    return pagination.load_page(events, NEWEST, cursor, size)
