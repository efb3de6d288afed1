"""The time in front of a line: RFC 3339, to the nanosecond.

A cluster writes it with timestamps=true.
"""

import functools
import re
from datetime import UTC, datetime

SECOND = 1_000_000_000
_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)(?: |\Z)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_stamp(line: bytes) -> tuple[int | None, int]:
    """Return a line's time in nanoseconds since 1970, and where its text begins.

    (None, 0) for a line that does not begin with a time.
    """
    match = _STAMP.match(line)
    if match is None:
        return None, 0
    seconds = _parse_seconds(match[1], match[3])
    if seconds is None:
        return None, 0
    return seconds * SECOND + int((match[2] or b"0").ljust(9, b"0")), match.end()


def parse_time(text: str) -> int | None:
    """Parse a time by itself into nanoseconds since 1970; None if it is none."""
    return parse_stamp(text.encode("ascii", "replace"))[0]


def format_time(ns: int) -> str:
    """Format a time as RFC 3339 in UTC with nine digits."""
    return f"{to_datetime(ns):%Y-%m-%dT%H:%M:%S}.{ns % SECOND:09d}Z"


def format_second(ns: int) -> str:
    """Format the second that contains a time: every API server understands that alike."""
    return f"{to_datetime(ns):%Y-%m-%dT%H:%M:%S}Z"


def to_datetime(ns: int) -> datetime:
    """Convert nanoseconds since 1970 to a datetime, which has microseconds."""
    return datetime.fromtimestamp(ns // SECOND, UTC).replace(microsecond=ns % SECOND // 1000)


def to_nanoseconds(at: datetime) -> int:
    """Convert a datetime to nanoseconds since 1970."""
    since = at - _EPOCH
    return (since.days * 86400 + since.seconds) * SECOND + since.microseconds * 1000


@functools.lru_cache(4096)
def _parse_seconds(time: bytes, zone: bytes) -> int | None:
    try:
        at = datetime.fromisoformat((time + (b"+00:00" if zone == b"Z" else zone)).decode())
        return int((at - _EPOCH).total_seconds())
    except (ValueError, OverflowError):
        return None
