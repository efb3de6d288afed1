"""The one clock: every time that an object carries comes from here, so a test needs to patch one
place only.
"""

from datetime import UTC, datetime


def now() -> datetime:
    """The current time, aware, in UTC."""
    return datetime.now(UTC)


def format_time(moment: datetime | None = None) -> str:
    """A metav1.Time: RFC 3339 in whole seconds, as `2026-11-21T03:00:00Z`."""
    return (moment or now()).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(moment: datetime | None = None) -> str:
    """A metav1.MicroTime: RFC 3339 with six digits, as leases and new-style events carry it."""
    return (moment or now()).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> datetime:
    """Read an RFC 3339 time of any precision and offset; nanoseconds are cut. Raises ValueError on
    anything else.
    """
    if len(text) > 40:
        raise ValueError(f"not a time: {text[:40]!r}...")
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"a time needs its offset: {text!r}")
    return moment.astimezone(UTC)
