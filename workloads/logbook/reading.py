"""Opening a log to read it, wherever it lies."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workloads.logbook import places, storing
from workloads.logbook.framing import Source
from workloads.logbook.index import Index
from workloads.models import Log

NOT_HERE = "The log's file is not on this machine."


class File:
    """A file of this machine; `taken` counts the bytes that were read of it."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.taken = 0

    def size(self) -> int:
        return os.fstat(self._handle).st_size

    def read(self, offset: int, count: int) -> bytes:
        data = os.pread(self._handle, count, offset)
        self.taken += len(data)
        return data


class Memory:
    """Bytes that are here already."""

    def __init__(self, data: bytes = b"") -> None:
        self._data = data

    def size(self) -> int:
        return len(self._data)

    def read(self, offset: int, count: int) -> bytes:
        return self._data[offset : offset + count]


@dataclass(frozen=True, slots=True)
class Opened:
    """A log that can be read. `missing` says, in a sentence, why there is nothing to read, or only
    part of it; "" when all is here.
    """

    log: Log
    source: Source
    index: Index
    missing: str = ""


@contextmanager
def opened(log: Log) -> Iterator[Opened]:
    """The log's file, closed afterwards; an empty one where there is none, with the reason."""
    handles: list[int] = []
    try:
        yield _open(log, handles)
    finally:
        for handle in handles:
            os.close(handle)


def _open(log: Log, handles: list[int]) -> Opened:
    if log.state == Log.State.REMOVED or not log.path:
        return Opened(
            log, Memory(), Index(Memory()), log.note or "Nothing of this log was captured."
        )
    path = places.local(log.path)
    source = _handle(path, handles)
    if source is not None:
        return Opened(log, source, Index(_handle(places.index_of(path), handles) or Memory()))
    if log.state == Log.State.COMPLETE and storing.has(log.path):
        index = log.path.removesuffix(".log") + ".idx"
        return Opened(
            log,
            storing.Stored(log.path),
            Index(storing.Stored(index) if storing.has(index) else Memory()),
        )
    return Opened(log, Memory(), Index(Memory()), log.note if log.size == 0 else NOT_HERE)


def _handle(path: Path, handles: list[int]) -> File | None:
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    handles.append(handle)
    return File(handle)
