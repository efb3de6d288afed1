"""Lines that say that a checkpoint was saved. Pure."""

import functools
from typing import Any

import re2

MOST_BYTES = 400
"""Bytes of a line that are looked at."""
_HINTS = (b"heckpoint", b"HECKPOINT", b"saved", b"Saved", b"saving", b"Saving")
_EXPRESSION = (
    r"(?i)\b(?:saved|saving|wrote|written|writing|stored|storing)\b.{0,80}\b(?:checkpoint|model|state)"
    r"|\bcheckpoint\b.{0,80}\b(?:saved|written|stored|completed?|done)\b"
)


@functools.cache
def _compile_expression() -> Any:
    return re2.compile(_EXPRESSION)


def tells_checkpoint(line: bytes) -> bool:
    """Tell whether a line says that a checkpoint was, or is being, saved."""
    begin = line[:MOST_BYTES]
    if not any(hint in begin for hint in _HINTS):
        return False
    return _compile_expression().search(begin.decode("utf-8", "replace")) is not None
