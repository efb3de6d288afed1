"""Lists in parts that a database takes at once."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def split_chunks(items: Sequence[T], size: int = 500) -> Iterator[Sequence[T]]:
    """Yield the items in parts of at most `size`."""
    return (items[start : start + size] for start in range(0, len(items), size))
