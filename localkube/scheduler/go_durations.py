"""Durations as Go writes them, in which KAI's annotations and fields are."""

import re
from decimal import Decimal

NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
"""By unit; a micro sign and a Greek letter mean the same."""

PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
DURATION = re.compile(rf"([-+]?)(0|(?:{PART.pattern})+)")
MAX_LENGTH = 40
MAX_NANOSECONDS = 2**63 - 1
"""What Go's own type can hold."""


def parse_go_duration(text: object) -> float | None:
    """Return the seconds of a duration like "-1h30m"; None for what is none.

    Takes what Go's `time.ParseDuration` takes, up to MAX_LENGTH characters.
    """
    words = str(text or "")
    match = DURATION.fullmatch(words) if len(words) <= MAX_LENGTH else None
    if match is None:
        return None
    total = sum(int(Decimal(number) * NANOSECONDS[unit]) for number, unit in PART.findall(match[2]))
    if total > MAX_NANOSECONDS:
        return None
    return (-total if match[1] == "-" else total) / 10**9


def parse_waiting_time(text: object) -> float:
    """Return the seconds of a duration; 0 for what is negative or is none."""
    return max(parse_go_duration(text) or 0.0, 0.0)
