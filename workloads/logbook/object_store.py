"""Ended logs in an object store: written once, whole, and read by ranges.

The alias is STORAGES["logs"].
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.files import File as DjangoFile
from django.core.files.storage import storages
from django.db.models import Q

from console import log_storage
from console.errors import UserError
from workloads.logbook import log_paths
from workloads.models import Log

log = logging.getLogger(__name__)

MOST_FAILURES = 3
"""Logs in a row that cannot be moved: then the store is taken to be away until the next time."""

ALIAS = "logs"
BATCH_SIZE = 100


class StoreFailed(UserError):
    """The object store did not answer, or refused: nobody knows what it has."""

    status = 503

    def __init__(self, answer_status: int = 0) -> None:
        self.answer_status = answer_status
        """The HTTP status of the store's answer; 0 where none came."""
        super().__init__(
            "The object store that has ended logs does not answer as it should. Try again in a "
            "moment; if it goes on, an administrator finds the cause in what the console's "
            "processes say."
        )

    @property
    def is_away(self) -> bool:
        """Whether any other request would fail as well, and wait as long for that."""
        return self.answer_status == 0 or self.answer_status >= 500


class StoredObject:
    """An object in the store, read by ranges. `bytes_read` counts what was read of it.

    It is empty once it was removed. Raises StoreFailed.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._object: Any = _get_storage().bucket.Object(_object_key(name))
        self._size = 0
        with self._handle_removal():
            self._size = self._object.content_length
        self.bytes_read = 0

    def size(self) -> int:
        return self._size

    def read(self, offset: int, count: int) -> bytes:
        last = min(offset + count, self._size) - 1
        if last < offset:
            return b""
        data: bytes = b""
        with self._handle_removal():
            data = self._object.get(Range=f"bytes={offset}-{last}")["Body"].read()
        self.bytes_read += len(data)
        return data

    @contextmanager
    def _handle_removal(self) -> Iterator[None]:
        """Make the object empty where the store has it no more: its retention may end any time."""
        try:
            with _explain_failures(self._name):
                yield
        except StoreFailed as failure:
            if failure.answer_status != HTTPStatus.NOT_FOUND:
                raise
            self._size = 0


def is_configured() -> bool:
    """Return whether ended logs go to an object store."""
    return ALIAS in settings.STORAGES


def has_file(path: str) -> bool:
    """Return whether the store has this file. Raises StoreFailed."""
    if not is_configured():
        return False
    with _explain_failures(path):
        return bool(_get_storage().exists(path))


def move_log(row: Log) -> bool:
    """Move an ended log and its index into the store. Return False if there was no file."""
    path = log_paths.local_path(row.path)
    if not path.exists():
        return False
    # The log comes last, because readers look for it: once it is there, so is its index.
    for file_path in (log_paths.index_path(path), path):
        name = os.fspath(file_path.relative_to(log_paths.logs_root()))
        if file_path.exists():
            with file_path.open("rb") as file:
                _get_storage().save(name, DjangoFile(file))
    for file_path in (path, log_paths.index_path(path)):
        file_path.unlink(missing_ok=True)
    return True


def remove_log(path: str) -> None:
    """Remove a log and its index from the store, where they exist. Raises StoreFailed."""
    if is_configured():
        with _explain_failures(path):
            _get_storage().delete(path)
            _get_storage().delete(path.removesuffix(".log") + ".idx")


def list_folders() -> list[str]:
    """List the folders in the store: the ids of workloads. Raises StoreFailed."""
    if not is_configured():
        return []
    with _explain_failures("its list of folders"):
        return list(_get_storage().listdir("")[0])


def remove_folder(name: str) -> None:
    """Remove everything that the store has of a workload. Raises StoreFailed."""
    if is_configured():
        with _explain_failures(name):
            _get_storage().bucket.objects.filter(Prefix=f"{_object_key(name)}/").delete()


def move_ended_logs() -> int:
    """Move the ended logs that are still here. Return how many."""
    if not is_configured():
        return 0
    moved = failed = 0
    ended = Q(state=Log.State.COMPLETE) & ~Q(path="")
    for folder in sorted(log_paths.logs_root().glob("*/*")):
        for file in sorted(folder.glob("*.log"))[:BATCH_SIZE]:
            row = Log.objects.filter(
                ended, path=os.fspath(file.relative_to(log_paths.logs_root()))
            ).first()
            try:
                moved += row is not None and move_log(row)
                failed = 0
            except Exception:
                # One that cannot be moved keeps no other one here.
                log.exception("the log %s cannot be moved to the object store", file)
                failed += 1
            if failed >= MOST_FAILURES:
                return moved
    return moved


@contextmanager
def _explain_failures(name: str) -> Iterator[None]:
    """Turn an error of the client library into StoreFailed, and log what it says."""
    try:
        yield
    except log_storage.load_error_types() as error:
        log.warning("the object store failed with %s: %s", name, error)
        raise StoreFailed(_get_answer_status(error)) from error


def _get_answer_status(error: Exception) -> int:
    """Return the HTTP status of the store's answer; 0 where none came."""
    answer = getattr(error, "response", None) or {}
    return int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _get_storage() -> Any:
    return storages[ALIAS]


def _object_key(name: str) -> str:
    store = _get_storage()
    key: str = store._normalize_name(name)
    return key
