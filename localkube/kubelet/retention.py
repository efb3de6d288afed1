"""How long the logs of finished pods stay on disk: the pods' objects stay as long as somebody wants
them, their bytes do not.
"""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

MAX_AGE_SECONDS = 7 * 24 * 3600.0
MAX_BYTES = 2 << 30
"""What finished pods may keep, in age and in bytes together; the oldest go first."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """The directory of a finished pod: when it was last changed, which is the pod's end, and what
    it takes.
    """

    directory: Path
    changed_at: float
    size: int


def find_leftovers(root: Path, finished: Iterable[str]) -> Sequence[Leftover]:
    """The directories of the finished pods with these uids; walks them."""
    found = []
    for uid in finished:
        directory = root / uid
        try:
            changed_at = directory.stat().st_mtime
        except FileNotFoundError:
            continue
        found.append(Leftover(directory, changed_at, _directory_size(directory)))
    return found


def select_surplus(
    leftovers: Iterable[Leftover],
    *,
    now: float,
    seconds: float = MAX_AGE_SECONDS,
    size: int = MAX_BYTES,
) -> Sequence[Path]:
    """What is to go: all that is older than `seconds`, and the oldest of the rest until it fits in
    `size` bytes.
    """
    gone: list[Path] = []
    total = 0
    for leftover in sorted(leftovers, key=lambda leftover: leftover.changed_at, reverse=True):
        total += leftover.size
        if now - leftover.changed_at > seconds or total > size:
            gone.append(leftover.directory)
    return gone


def list_overdue(root: Path, finished: Iterable[str]) -> Sequence[Path]:
    """The directories of finished pods that are to be removed now."""
    return select_surplus(find_leftovers(root, finished), now=time.time())


def _directory_size(directory: Path) -> int:
    """Bytes on disk of a directory; files that go meanwhile count nothing."""
    total = 0
    for path, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return total
