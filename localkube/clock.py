"""The clock: every time that an object carries comes from here, so a test patches one place."""

from datetime import UTC, datetime, timedelta

MAX_SECONDS = 10**9
"""Thirty years: the longest time that is computed with."""


def current_time() -> datetime:
    """Return the current time, aware, in UTC."""
    return datetime.now(UTC)


def format_time(moment: datetime | None = None) -> str:
    """Format a metav1.Time: RFC 3339 in whole seconds, as `2026-11-21T03:00:00Z`."""
    return (moment or current_time()).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(moment: datetime | None = None) -> str:
    """Format a metav1.MicroTime: RFC 3339 with six digits.

    Leases and new-style events carry it.
    """
    return (moment or current_time()).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> datetime:
    """Parse an RFC 3339 time of any precision and offset; nanoseconds are cut.

    Raises ValueError for anything else.
    """
    if len(text) > 40:
        raise ValueError(f"not a time: {text[:40]!r}...")
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"a time needs its offset: {text!r}")
    return moment.astimezone(UTC)


def bound_seconds(seconds: int) -> timedelta:
    """Return a number of seconds as a time; more than MAX_SECONDS are MAX_SECONDS.

    An int64 of seconds is more than any date can have.
    """
    return timedelta(seconds=max(-MAX_SECONDS, min(int(seconds), MAX_SECONDS)))
