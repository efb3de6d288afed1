"""Durations as people type them, "2h" or "1d12h", in seconds; and as pages say them. Pure."""

import re

_UNITS = (("d", "d", 86400), ("h", "h", 3600), ("m", "min", 60), ("s", "s", 1))
"""As typed, in words, and in seconds."""
_SECONDS = {typed: seconds for typed, _, seconds in _UNITS}
_PART = re.compile(r"([0-9]{1,9})\s*(d|h|m|s)[a-z]*")
MAX_SECONDS = 366 * 86400


def parse_duration(text: str) -> int:
    """Seconds of "2h", "90m", "7d" or "1d 12h". Raises ValueError for anything else, and for more
    than LONGEST.
    """
    asked = text.strip().lower()
    found, at = 0, 0
    while at < len(asked):
        match = _PART.match(asked, at)
        if match is None:
            raise ValueError(text)
        found += int(match[1]) * _SECONDS[match[2]]
        at = match.end()
        while at < len(asked) and asked[at] == " ":
            at += 1
    if not asked or found > MAX_SECONDS:
        raise ValueError(text)
    return found


def format_duration(seconds: int | None) -> str:
    """As it would be typed; "" for none."""
    return (
        ""
        if seconds is None
        else "".join(f"{count}{unit}" for count, unit, _ in _split_units(seconds)) or "0s"
    )


def describe_duration(seconds: float) -> str:
    """As a sentence has it: "2 h", "1 h 30 min"."""
    return " ".join(f"{count} {word}" for count, _, word in _split_units(int(seconds))) or "0 s"


def _split_units(seconds: int) -> list[tuple[int, str, str]]:
    left, found = max(0, seconds), []
    for unit, word, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            found.append((count, unit, word))
    return found
