"""Durations as Go writes them, in which KAI's annotations and fields are."""

import re

UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ns|us|µs|ms|s|m|h)")
MAX_LENGTH = 40


def parse_go_duration(text: object) -> float:
    """Return the seconds of a duration like "1h30m"; 0 for what is negative or is none."""
    words = str(text or "")
    if len(words) > MAX_LENGTH or not words or PART.sub("", words):
        return 0.0
    return sum(float(number) * UNITS[unit] for number, unit in PART.findall(words))
