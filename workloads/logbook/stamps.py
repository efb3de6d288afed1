"""The time in front of a line, as a cluster writes it with timestamps=true: RFC 3339, to the
nanosecond.
"""

import functools
import re
from datetime import UTC, datetime

SECOND = 1_000_000_000
_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)(?: |\Z)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_stamp(line: bytes) -> tuple[int | None, int]:
    """Nanoseconds since 1970 and where the text begins; (None, 0) for a line that does not begin
    with a time.
    """
    found = _STAMP.match(line)
    if found is None:
        return None, 0
    seconds = _parse_seconds(found[1], found[3])
    if seconds is None:
        return None, 0
    return seconds * SECOND + int((found[2] or b"0").ljust(9, b"0")), found.end()


def parse_time(text: str) -> int | None:
    """The same for a time by itself; None for what is none."""
    return parse_stamp(text.encode("ascii", "replace"))[0]


def format_time(ns: int) -> str:
    """As RFC 3339 in UTC with nine digits."""
    return f"{to_datetime(ns):%Y-%m-%dT%H:%M:%S}.{ns % SECOND:09d}Z"


def format_second(ns: int) -> str:
    """The whole second it lies in: what every API server understands alike."""
    return f"{to_datetime(ns):%Y-%m-%dT%H:%M:%S}Z"


def to_datetime(ns: int) -> datetime:
    """As a datetime, to the microsecond."""
    return datetime.fromtimestamp(ns // SECOND, UTC).replace(microsecond=ns % SECOND // 1000)


def to_nanoseconds(at: datetime) -> int:
    """The other way round."""
    since = at - _EPOCH
    return (since.days * 86400 + since.seconds) * SECOND + since.microseconds * 1000


@functools.lru_cache(4096)
def _parse_seconds(time: bytes, zone: bytes) -> int | None:
    try:
        at = datetime.fromisoformat((time + (b"+00:00" if zone == b"Z" else zone)).decode())
        return int((at - _EPOCH).total_seconds())
    except (ValueError, OverflowError):
        return None
