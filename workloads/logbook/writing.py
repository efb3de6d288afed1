"""Writing the log of one run: whole lines only, by one writer at a time, so that a kill costs
nothing that is not read again.
"""

import fcntl
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from workloads.logbook import places, stamps
from workloads.logbook.framing import forward, whole_end
from workloads.logbook.index import ENTRY, EVERY, NEVER, START, Entry
from workloads.logbook.reading import File

Write = Callable[[int, bytes], int]


class Busy(Exception):
    """Another process writes this log."""


class Writer:
    """One log and its index, open for appending. What a kill left half written is cut off, and the
    index's tail made anew.

    Raises OSError as the disk does, with the file left at its last whole line; Busy when another
    process has it open.
    """

    def __init__(self, path: Path, write: Write = os.write) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._write = write
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._index = -1
        try:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Busy(str(path)) from None
            self._index = os.open(
                places.index_of(path), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600
            )
            self._recover()
        except BaseException:
            self.close()
            raise

    size: int
    lines: int
    first: int | None
    """The time of the first line that has one, in nanoseconds."""
    latest: int
    """The greatest time so far, NEVER before the first."""
    last: int | None
    """The time of the last line that has one."""
    _indexed: int

    def append(self, lines: Sequence[bytes]) -> None:
        """Add whole lines, given without their newlines. Either all of them are there afterwards,
        or OSError says why none is.
        """
        if not lines:
            return
        before = (self.size, self.lines, self.first, self.latest, self.last, self._indexed)
        entries = []
        for line in lines:
            if self.size - self._indexed >= EVERY:
                entries.append((self.size, self.lines, self.latest))
                self._indexed = self.size
            self._count(line)
        try:
            self._put(
                self._file, b"".join([part for line in lines for part in (line, b"\n")]), before[0]
            )
        except OSError:
            self.size, self.lines, self.first, self.latest, self.last, self._indexed = before
            raise
        self._put_entries(entries)

    @property
    def handle(self) -> int:
        """The open file, for reading what is held."""
        return self._file

    def close(self) -> None:
        for handle in (self._file, self._index):
            if handle >= 0:
                os.close(handle)
        self._file = self._index = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _count(self, line: bytes) -> None:
        self.size += len(line) + 1
        self.lines += 1
        time, _ = stamps.read(line)
        if time is not None:
            self.first = time if self.first is None else self.first
            self.last, self.latest = time, max(time, self.latest)

    def _put(self, handle: int, data: bytes, size: int) -> None:
        """All of the data, or an OSError and a file of the size it had."""
        view = memoryview(data)
        try:
            while view:
                view = view[self._write(handle, view[: 1 << 20].tobytes()) :]
        except OSError:
            os.ftruncate(handle, size)
            raise

    def _put_entries(self, entries: Sequence[Entry]) -> None:
        # An index that lacks entries is only slower, and the next start writes them.
        if entries:
            data = b"".join(ENTRY.pack(*entry) for entry in entries)
            try:
                self._put(self._index, data, os.fstat(self._index).st_size)
            except OSError:
                self._indexed = self.size

    def _recover(self) -> None:
        source = File(self._file)
        end = whole_end(source)
        if end < source.size():
            os.ftruncate(self._file, end)
        self.size, self.lines, self.latest = self._last_entry(end)
        self._indexed = self.size
        self.first = next(
            (
                time
                for _, line in forward(source, 0, min(end, EVERY))
                if (time := stamps.read(line)[0]) is not None
            ),
            None,
        )
        self.last = None
        entries = []
        for offset, line in forward(source, self.size, end):
            if offset - self._indexed >= EVERY:
                entries.append((offset, self.lines, self.latest))
                self._indexed = offset
            self._count(line)
        self.last = self.last if self.last is not None or self.latest == NEVER else self.latest
        self._put_entries(entries)

    def _last_entry(self, end: int) -> Entry:
        """The last entry that the log's size bears out; those after it, and half of one, are cut
        off.
        """
        size = os.fstat(self._index).st_size
        count = size // ENTRY.size
        entry = START
        while (
            count
            and (
                entry := ENTRY.unpack(os.pread(self._index, ENTRY.size, (count - 1) * ENTRY.size))
            )[0]
            > end
        ):
            count, entry = count - 1, START
        if count * ENTRY.size != size:
            os.ftruncate(self._index, count * ENTRY.size)
        return entry
