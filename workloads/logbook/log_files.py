"""Opening a log for reading, wherever it is stored."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workloads.logbook import log_paths, object_store
from workloads.logbook.index import LogIndex
from workloads.logbook.line_reading import ByteSource
from workloads.models import Log

NOT_HERE = "The log's file is not on this machine."
CUT_NOTE = "The end of this log is missing: its file has {} of the {} bytes that were captured."
MOST_OPEN = 32
"""Files that one reader has open at once, however many logs it merges."""


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


class OpenFiles:
    """Keeps the files open that were read last, at most MOST_OPEN of them."""

    def __init__(self) -> None:
        self._handles: dict[str, int] = {}

    def find_handle(self, path: str) -> int | None:
        """Open a file unless it is open; None where there is none. The next call may close it."""
        handle = self._handles.pop(path, None)
        if handle is None:
            try:
                handle = os.open(path, os.O_RDONLY)
            except FileNotFoundError:
                return None
            if len(self._handles) >= MOST_OPEN:
                os.close(self._handles.pop(next(iter(self._handles))))
        self._handles[path] = handle
        return handle

    def close(self) -> None:
        while self._handles:
            os.close(self._handles.popitem()[1])


class PooledFile:
    """A file among many of which few are open."""

    def __init__(self, files: OpenFiles, path: str, find_moved: Callable[[], ByteSource]) -> None:
        self._files = files
        self._path = path
        self._find_moved = find_moved
        self._moved: ByteSource | None = None

    def size(self) -> int:
        return self._get_source().size()

    def read(self, offset: int, count: int) -> bytes:
        return self._get_source().read(offset, count)

    def _get_source(self) -> ByteSource:
        if self._moved is None:
            handle = self._files.find_handle(self._path)
            if handle is not None:
                return LogFile(handle)
            # While it was closed here it went to the object store, or was removed.
            self._moved = self._find_moved()
        return self._moved


@contextmanager
def open_logs(logs: Iterable[Log]) -> Iterator[list[OpenLog]]:
    """Open the logs' files, and close them afterwards. At most MOST_OPEN are open at once.

    Where there is no file, the log is empty and has the reason.
    """
    files = OpenFiles()
    try:
        yield [_open_sources(log, files) for log in logs]
    finally:
        files.close()


@contextmanager
def open_log(log: Log) -> Iterator[OpenLog]:
    """Open one log's file, and close it afterwards."""
    with open_logs([log]) as opened:
        yield opened[0]


def _open_sources(log: Log, files: OpenFiles) -> OpenLog:
    if log.state == Log.State.REMOVED or not log.path:
        return OpenLog(
            log, MemorySource(), LogIndex(), log.note or "Nothing of this log was captured."
        )
    path = log_paths.local_path(log.path)
    name = os.fspath(path)
    if files.find_handle(name) is not None:
        source = PooledFile(files, name, lambda: _find_stored(log) or MemorySource())
        return OpenLog(log, source, LogIndex(lambda: open_index(path)), _describe_cut(log, source))
    stored = _find_stored(log) if log.state == Log.State.COMPLETE else None
    if stored is not None:
        index = log.path.removesuffix(".log") + ".idx"
        stored_index = LogIndex(lambda: _open_stored_index(index))
        return OpenLog(log, stored, stored_index, _describe_cut(log, stored))
    return OpenLog(log, MemorySource(), LogIndex(), log.note if log.size == 0 else NOT_HERE)


def _describe_cut(log: Log, source: ByteSource) -> str:
    """Describe that an ended log is shorter than what was captured; "" where it is not.

    A machine that lost its power may have lost bytes that it had not written out, and a backup may
    have been made while the log grew.
    """
    size = source.size() if log.state == Log.State.COMPLETE else log.size
    return CUT_NOTE.format(size, log.size) if size < log.size else ""


def _find_stored(log: Log) -> ByteSource | None:
    return object_store.StoredObject(log.path) if object_store.has_file(log.path) else None


@contextmanager
def open_index(path: Path) -> Iterator[ByteSource]:
    """Open the index beside a log's file; an empty one where there is none."""
    files = OpenFiles()
    try:
        handle = files.find_handle(os.fspath(log_paths.index_path(path)))
        yield MemorySource() if handle is None else LogFile(handle)
    finally:
        files.close()


@contextmanager
def _open_stored_index(name: str) -> Iterator[ByteSource]:
    yield object_store.StoredObject(name) if object_store.has_file(name) else MemorySource()
