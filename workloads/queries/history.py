"""The event history of a workload: changes of status, what people did, and the cluster's events, in
one order of time.
"""

from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from console import pagination
from workloads.models import Event, Workload

NEWEST = pagination.SortOrder("-at", ("-at", "-id"))
PAGE = 100


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """Which events are looked at; nothing chosen means all."""

    kinds: tuple[str, ...] = ()
    warnings: bool = False
    attempt: int | None = None
    subject: str = ""

    @classmethod
    def from_query(cls, query: QueryDict) -> "HistoryFilter":
        """From an address: kind=, warnings=1, attempt=, pod= (the name of an object)."""
        attempt = query.get("attempt", "")
        return cls(
            kinds=tuple(
                sorted({each for each in query.getlist("kind")[:10] if each in Event.Kind.values})
            ),
            warnings=query.get("warnings") == "1",
            attempt=int(attempt)
            if attempt.isascii() and attempt.isdigit() and len(attempt) < 7
            else None,
            subject=query.get("pod", "")[:253].replace("\x00", ""),
        )

    def __bool__(self) -> bool:
        return bool(self.kinds or self.warnings or self.attempt is not None or self.subject)

    def query_pairs(self) -> list[tuple[str, Any]]:
        chosen = [("kind", kind) for kind in self.kinds]
        named = (
            ("warnings", "1" if self.warnings else ""),
            ("attempt", self.attempt),
            ("pod", self.subject),
        )
        return chosen + [(name, str(value)) for name, value in named if value]


def load_history(
    workload: Workload, wanted: HistoryFilter, cursor: str = "", size: int = PAGE
) -> "pagination.Page[Event]":
    """Events, the newest first, a page at a cursor of `NEWEST`."""
    events = Event.objects.filter(workload=workload).select_related("by")
    if wanted.kinds:
        events = events.filter(kind__in=wanted.kinds)
    if wanted.warnings:
        events = events.filter(is_warning=True)
    if wanted.attempt is not None:
        events = events.filter(attempt=wanted.attempt)
    if wanted.subject:
        events = events.filter(subject=wanted.subject)
    return pagination.load_page(events, NEWEST, cursor, size)
