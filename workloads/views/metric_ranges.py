"""The times that pages of metrics offer, and the one that a request asks for."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone

from console.texts import parse_number
from workloads.metrics.reading import Span

RANGES: Final[Mapping[str, tuple[str, timedelta | None]]] = {
    "1h": ("1 h", timedelta(hours=1)),
    "6h": ("6 h", timedelta(hours=6)),
    "24h": ("24 h", timedelta(days=1)),
    "7d": ("7 d", timedelta(days=7)),
    "30d": ("30 d", timedelta(days=30)),
    "all": ("All", None),
}
"""The words of each time, and its length; None: from the first figure on."""
DEFAULT_RANGE: Final = "1h"
LONGEST_SPAN: Final = timedelta(days=366)
SHORTEST_SECONDS: Final = 300
"""The least time that charts show."""


def list_ranges(*, with_all: bool = True) -> list[tuple[str, str]]:
    """Return the keys and words of the times that can be chosen."""
    return [
        (key, title) for key, (title, length) in RANGES.items() if with_all or length is not None
    ]


def parse_after(query: Mapping[str, str]) -> int | None:
    """Return the moment up to which who asks has the figures; None where it has none."""
    return parse_number(query.get("after", ""), 13)


def parse_span(
    query: Mapping[str, str], begun_at: datetime | None = None, ended_at: datetime | None = None
) -> Span:
    """Return the time that is asked for: from `since` to `until`, or a range that ends now.

    What has ended has no figures after its end: its ranges end with it.
    """
    since, until = (parse_number(query.get(name, ""), 13) for name in ("since", "until"))
    # Nothing is of later than now.
    until = None if until is None else min(until, int(timezone.now().timestamp()) + 60)
    longest = int(LONGEST_SPAN.total_seconds())
    if since is not None and until is not None and since < until:
        return Span(max(since, until - longest), until)
    length = RANGES.get(query.get("range", ""), RANGES[DEFAULT_RANGE])[1]
    until = int((ended_at or timezone.now()).timestamp()) + 1
    since = until - (longest if length is None else int(length.total_seconds()))
    if begun_at is not None:
        # Before its submission there is nothing: the figures of a young one get the whole width.
        since = max(since, min(int(begun_at.timestamp()), until - SHORTEST_SECONDS))
    return Span(since, until)
