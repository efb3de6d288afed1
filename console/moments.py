"""Moments as text for programs: REST answers, files of CSV, requests to clusters."""

from datetime import UTC, datetime
from typing import overload


@overload
def format_moment(moment: datetime) -> str: ...
@overload
def format_moment(moment: datetime | None) -> str | None: ...
def format_moment(moment: datetime | None) -> str | None:
    """Return a moment as RFC 3339 text in UTC, which ends in `Z`; None for none."""
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
