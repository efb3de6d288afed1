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

from workloads.logbook import log_paths
from workloads.models import Log

log = logging.getLogger(__name__)

ALIAS = "logs"
BATCH_SIZE = 100


class StoredObject:
    """An object in the store, read by ranges; `taken` counts the bytes that were read of it."""

    def __init__(self, name: str) -> None:
        self._object: Any = _get_storage().bucket.Object(_object_key(name))
        self._size: int = self._object.content_length
        self.bytes_read = 0

    def size(self) -> int:
        return self._size

    def read(self, offset: int, count: int) -> bytes:
        last = min(offset + count, self._size) - 1
        if last < offset:
            return b""
        data: bytes = self._object.get(Range=f"bytes={offset}-{last}")["Body"].read()
        self.bytes_read += len(data)
        return data


def is_configured() -> bool:
    """Whether ended logs go to an object store."""
    return ALIAS in settings.STORAGES


def has_file(path: str) -> bool:
    """Whether the store has this file."""
    return is_configured() and _get_storage().exists(path)


def move_log(row: Log) -> bool:
    """Put an ended log and its index into the store, then remove the files here. False where there
    was nothing to move.
    """
    path = log_paths.local_path(row.path)
    if not path.exists():
        return False
    for each in (log_paths.index_path(path), path):
        name = os.fspath(each.relative_to(log_paths.logs_root()))
        if each.exists():
            with each.open("rb") as file:
                _get_storage().save(name, DjangoFile(file))
    for each in (path, log_paths.index_path(path)):
        each.unlink(missing_ok=True)
    return True


def remove_log(path: str) -> None:
    """Remove a log and its index from the store, where they are there."""
    if is_configured():
        _get_storage().delete(path)
        _get_storage().delete(path.removesuffix(".log") + ".idx")


def list_folders() -> list[str]:
    """The names of the folders in the store: the ids of workloads."""
    return list(_get_storage().listdir("")[0]) if is_configured() else []


def remove_folder(name: str) -> None:
    """Remove everything that the store holds of a workload."""
    if is_configured():
        _get_storage().bucket.objects.filter(Prefix=f"{_object_key(name)}/").delete()


def move_ended_logs() -> int:
    """Move what has ended and is still here; gives how many logs were moved."""
    if not is_configured():
        return 0
    moved = 0
    ended = Q(state=Log.State.COMPLETE) & ~Q(path="")
    for folder in sorted(log_paths.logs_root().glob("*/*")):
        for file in sorted(folder.glob("*.log"))[:BATCH_SIZE]:
            row = Log.objects.filter(
                ended, path=os.fspath(file.relative_to(log_paths.logs_root()))
            ).first()
            moved += row is not None and move_log(row)
    return moved


def _get_storage() -> Any:
    return storages[ALIAS]


def _object_key(name: str) -> str:
    store = _get_storage()
    key: str = store._normalize_name(name)
    return key
