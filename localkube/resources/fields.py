"""Readers of the fields that field selectors may name: each gives text, as a real server compares
it.

Name and namespace are not here: every kind can be selected by them.
"""

from collections.abc import Callable
from typing import Any

from localkube.metadata import Object

Field = Callable[[Object], str]


def find(obj: Object, path: tuple[str, ...]) -> Any:
    """The value at a path of keys, or None where it ends early."""
    found: Any = obj
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def text(*path: str) -> Field:
    return lambda obj: str(find(obj, path) or "")


def flag(*path: str) -> Field:
    """A boolean, which is false when it is left out."""
    return lambda obj: "true" if find(obj, path) else "false"


def number(*path: str) -> Field:
    return lambda obj: str(find(obj, path) or 0)
