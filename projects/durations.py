"""Durations: parsed as people type them ("2h", "1d12h") and formatted for forms and pages."""

import re

_UNITS = (("d", "d", 86400), ("h", "h", 3600), ("m", "min", 60), ("s", "s", 1))
"""Each unit as typed, in words, and in seconds."""
_SECONDS = {typed: seconds for typed, _, seconds in _UNITS}
_PART = re.compile(r"([0-9]{1,9})\s*(d|h|m|s)[a-z]*")
MAX_SECONDS = 366 * 86400
"""The longest duration that can be typed: 366 days."""


def parse_duration(text: str) -> int:
    """Return the seconds of "2h", "90m", "7d" or "1d 12h".

    Raises ValueError for anything else, and for more than MAX_SECONDS.
    """
    typed = text.strip().lower()
    seconds, position = 0, 0
    while position < len(typed):
        match = _PART.match(typed, position)
        if match is None:
            raise ValueError(text)
        seconds += int(match[1]) * _SECONDS[match[2]]
        position = match.end()
        while position < len(typed) and typed[position] == " ":
            position += 1
    if not typed or seconds > MAX_SECONDS:
        raise ValueError(text)
    return seconds


def format_duration(seconds: int | None) -> str:
    """Format seconds as they would be typed; "" for None."""
    return (
        ""
        if seconds is None
        else "".join(f"{count}{unit}" for count, unit, _ in _split_units(seconds)) or "0s"
    )


def describe_duration(seconds: float) -> str:
    """Describe seconds for a sentence: "2 h", "1 h 30 min"."""
    return " ".join(f"{count} {word}" for count, _, word in _split_units(int(seconds))) or "0 s"


def _split_units(seconds: int) -> list[tuple[int, str, str]]:
    remaining, parts = max(0, seconds), []
    for unit, word, size in _UNITS:
        count, remaining = divmod(remaining, size)
        if count:
            parts.append((count, unit, word))
    return parts
