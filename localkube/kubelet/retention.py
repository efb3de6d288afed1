"""Retention of finished pods' logs: the objects stay as long as somebody wants them, their bytes do
not.
"""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

MAX_AGE_SECONDS = 7 * 24 * 3600.0
MAX_BYTES = 2 << 30
"""The most bytes that finished pods may keep together, for MAX_AGE_SECONDS at most; the oldest go
first.
"""


@dataclass(frozen=True, slots=True)
class Leftover:
    """The directory of a finished pod, when it was last changed, and its bytes.

    The last change is the pod's end.
    """

    directory: Path
    changed_at: float
    size: int


def find_leftovers(root: Path, finished: Iterable[str]) -> Sequence[Leftover]:
    """Return the directories of the finished pods with these uids; walks them."""
    leftovers = []
    for uid in finished:
        directory = root / uid
        try:
            changed_at = directory.stat().st_mtime
        except FileNotFoundError:
            continue
        leftovers.append(Leftover(directory, changed_at, _directory_size(directory)))
    return leftovers


def select_surplus(
    leftovers: Iterable[Leftover],
    *,
    now: float,
    seconds: float = MAX_AGE_SECONDS,
    size: int = MAX_BYTES,
) -> Sequence[Path]:
    """Return what must go: all older than `seconds`, and the oldest beyond `size` bytes."""
    surplus: list[Path] = []
    total = 0
    for leftover in sorted(leftovers, key=lambda leftover: leftover.changed_at, reverse=True):
        total += leftover.size
        if now - leftover.changed_at > seconds or total > size:
            surplus.append(leftover.directory)
    return surplus


def list_overdue(root: Path, finished: Iterable[str]) -> Sequence[Path]:
    """Return the directories of finished pods that must be removed now."""
    return select_surplus(find_leftovers(root, finished), now=time.time())


def _directory_size(directory: Path) -> int:
    """Return a directory's bytes on disk; files that vanish meanwhile count nothing."""
    total = 0
    for path, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return total
