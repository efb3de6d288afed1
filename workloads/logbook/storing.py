"""Ended logs in an object store, where one is set: written once, whole, and read by ranges. The
alias is STORAGES["logs"].
"""

import logging
import os
from typing import Any

from django.conf import settings
from django.core.files import File as DjangoFile
from django.core.files.storage import storages
from django.db.models import Q

from workloads.logbook import places
from workloads.models import Log

log = logging.getLogger(__name__)

ALIAS = "logs"
AT_ONCE = 100


class Stored:
    """An object in the store, read by ranges; `taken` counts the bytes that were read of it."""

    def __init__(self, name: str) -> None:
        self._object: Any = _store().bucket.Object(_key(name))
        self._size: int = self._object.content_length
        self.taken = 0

    def size(self) -> int:
        return self._size

    def read(self, offset: int, count: int) -> bytes:
        last = min(offset + count, self._size) - 1
        if last < offset:
            return b""
        data: bytes = self._object.get(Range=f"bytes={offset}-{last}")["Body"].read()
        self.taken += len(data)
        return data


def is_set() -> bool:
    """Whether ended logs go to an object store."""
    return ALIAS in settings.STORAGES


def has(path: str) -> bool:
    """Whether the store has this file."""
    return is_set() and _store().exists(path)


def move(row: Log) -> bool:
    """Put an ended log and its index into the store, then remove the files here. False where there
    was nothing to move.
    """
    path = places.local(row.path)
    if not path.exists():
        return False
    for each in (places.index_of(path), path):
        name = os.fspath(each.relative_to(places.root()))
        if each.exists():
            with each.open("rb") as file:
                _store().save(name, DjangoFile(file))
    for each in (path, places.index_of(path)):
        each.unlink(missing_ok=True)
    return True


def remove(path: str) -> None:
    """Remove a log and its index from the store, where they are there."""
    if is_set():
        _store().delete(path)
        _store().delete(path.removesuffix(".log") + ".idx")


def folders() -> list[str]:
    """The names of the folders in the store: the ids of workloads."""
    return list(_store().listdir("")[0]) if is_set() else []


def remove_folder(name: str) -> None:
    """Remove everything that the store holds of a workload."""
    if is_set():
        _store().bucket.objects.filter(Prefix=f"{_key(name)}/").delete()


def sweep() -> int:
    """Move what has ended and is still here; gives how many logs were moved."""
    if not is_set():
        return 0
    moved = 0
    ended = Q(state=Log.State.COMPLETE) & ~Q(path="")
    for folder in sorted(places.root().glob("*/*")):
        for file in sorted(folder.glob("*.log"))[:AT_ONCE]:
            row = Log.objects.filter(ended, path=os.fspath(file.relative_to(places.root()))).first()
            moved += row is not None and move(row)
    return moved


def _store() -> Any:
    return storages[ALIAS]


def _key(name: str) -> str:
    store = _store()
    key: str = store._normalize_name(name)
    return key
