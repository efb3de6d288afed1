"""Opening a log for reading, wherever it is stored."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workloads.logbook import log_paths, object_store
from workloads.logbook.index import LogIndex
from workloads.logbook.line_reading import ByteSource
from workloads.models import Log

NOT_HERE = "The log's file is not on this machine."


class LogFile:
    """A file of this machine; `bytes_read` counts the bytes that were read of it."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.bytes_read = 0

    def size(self) -> int:
        return os.fstat(self._handle).st_size

    def read(self, offset: int, count: int) -> bytes:
        data = os.pread(self._handle, count, offset)
        self.bytes_read += len(data)
        return data


class MemorySource:
    """Bytes that are in memory."""

    def __init__(self, data: bytes = b"") -> None:
        self._data = data

    def size(self) -> int:
        return len(self._data)

    def read(self, offset: int, count: int) -> bytes:
        return self._data[offset : offset + count]


@dataclass(frozen=True, slots=True)
class OpenLog:
    """A log that can be read.

    `missing_note` says, in a sentence, why nothing or only a part can be read; "" when all is here.
    """

    log: Log
    source: ByteSource
    index: LogIndex
    missing_note: str = ""


@contextmanager
def open_log(log: Log) -> Iterator[OpenLog]:
    """Open the log's file, and close it afterwards.

    Where there is none, the log is empty and has the reason.
    """
    handles: list[int] = []
    try:
        yield _open_sources(log, handles)
    finally:
        for handle in handles:
            os.close(handle)


def _open_sources(log: Log, handles: list[int]) -> OpenLog:
    if log.state == Log.State.REMOVED or not log.path:
        return OpenLog(
            log,
            MemorySource(),
            LogIndex(MemorySource()),
            log.note or "Nothing of this log was captured.",
        )
    path = log_paths.local_path(log.path)
    source = _open_file(path, handles)
    if source is not None:
        return OpenLog(
            log, source, LogIndex(_open_file(log_paths.index_path(path), handles) or MemorySource())
        )
    if log.state == Log.State.COMPLETE and object_store.has_file(log.path):
        index = log.path.removesuffix(".log") + ".idx"
        return OpenLog(
            log,
            object_store.StoredObject(log.path),
            LogIndex(
                object_store.StoredObject(index) if object_store.has_file(index) else MemorySource()
            ),
        )
    return OpenLog(
        log, MemorySource(), LogIndex(MemorySource()), log.note if log.size == 0 else NOT_HERE
    )


def _open_file(path: Path, handles: list[int]) -> LogFile | None:
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    handles.append(handle)
    return LogFile(handle)
