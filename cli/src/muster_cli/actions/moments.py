"""Moments and durations, as REST and people write them."""

import re
from datetime import UTC, datetime, timedelta

from muster_cli.errors import UsageProblem

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
NANOSECONDS = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STAMP = re.compile(
    r"(?P<second>\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(?P<fraction>\d{1,9}))?"
    r"(?P<zone>[Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)
_DURATION = re.compile(r"(?:\d+[smhdw])+", re.ASCII)


def parse_duration(text: str) -> int:
    """Return the seconds of a duration as 90s, 15m, 2h30m or 7d. Raises UsageProblem."""
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    if len(text) > 30 or not _DURATION.fullmatch(text):
        raise UsageProblem(f"{text} is not a duration.", "It is as 90s, 15m, 2h30m or 7d.")
    return sum(int(each[:-1]) * _UNITS[each[-1]] for each in re.findall(r"\d+[smhdw]", text))


def parse_nanoseconds(text: str) -> int | None:
    """Return the nanoseconds from 1970 to a moment of RFC 3339; None for anything else.

    Stamps of logs have nine digits after the point and the offset of their node.
    """
    match = _STAMP.fullmatch(text)
    if match is None:
        return None
    zone = "+00:00" if match["zone"] in "Zz" else match["zone"]
    try:
        moment = datetime.fromisoformat(match["second"] + zone)
    except ValueError:
        return None
    seconds = (moment - _EPOCH) // timedelta(seconds=1)
    return seconds * NANOSECONDS + int((match["fraction"] or "").ljust(9, "0"))


def format_second(seconds: int) -> str:
    """Return a moment in whole seconds from 1970 on, in UTC, as REST writes it."""
    return f"{_EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def parse_moment(text: str | None) -> datetime | None:
    """Return the moment of REST's text; None where there is none."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def format_moment(text: str | None) -> str:
    """Return a moment of REST without parts of a second; other text as it is."""
    match = _STAMP.fullmatch(text or "")
    return f"{match['second']}{match['zone']}" if match else text or ""


def format_ago(seconds: int, now: float) -> str:
    """Return the moment so many seconds before now, as REST writes it; none is before 1970."""
    return format_second(max(0, int(now) - seconds))


def compute_age(text: str | None, until: str | None = None) -> float | None:
    """Return the seconds from a moment to now, or to another one."""
    start, end = parse_moment(text), parse_moment(until)
    if start is None:
        return None
    return max(0.0, ((end or datetime.now(UTC)) - start).total_seconds())


def describe_duration(seconds: float | None) -> str:
    """Return a duration in its two largest units: "3h12m"."""
    if seconds is None:
        return ""
    remainder = int(seconds)
    parts: list[tuple[int, str]] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        if remainder >= size or parts:
            parts.append((remainder // size, unit))
            remainder %= size
        if len(parts) == 2:
            break
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"
