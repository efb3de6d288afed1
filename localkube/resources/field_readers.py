"""Readers of the fields that field selectors may name.

Each gives text, as a real server compares it. Name and namespace are not here: every kind can be
selected by them.
"""

from collections.abc import Callable
from typing import Any

from localkube.metadata import Object

FieldReader = Callable[[Object], str]


def find_value(obj: Object, path: tuple[str, ...]) -> Any:
    """Return the value at a path of keys, or None where it ends early."""
    value: Any = obj
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text_reader(*path: str) -> FieldReader:
    return lambda obj: str(find_value(obj, path) or "")


def boolean_reader(*path: str) -> FieldReader:
    """Build the reader of a boolean, which is false when it is left out."""
    return lambda obj: "true" if find_value(obj, path) else "false"


def number_reader(*path: str) -> FieldReader:
    return lambda obj: str(find_value(obj, path) or 0)
