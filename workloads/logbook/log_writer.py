"""Writing the log of one run: whole lines only, by one writer at a time.

A kill therefore loses nothing that is not read again.
"""

import fcntl
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from workloads.logbook import log_paths, stamps
from workloads.logbook.index import ENTRY_FORMAT, ENTRY_SPACING, NO_TIME, START_ENTRY, Entry
from workloads.logbook.line_reading import find_last_line_end, read_forward
from workloads.logbook.log_files import LogFile

WriteFunction = Callable[[int, bytes], int]


class Busy(Exception):
    """Another process is writing this log."""


class LogWriter:
    """One log and its index, open for appending.

    Opening cuts off what a kill left half written, and rebuilds the end of the index. Raises
    OSError as the disk does, with the file left at its last complete line; Busy when another
    process has it open.
    """

    def __init__(self, path: Path, write: WriteFunction = os.write) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._write = write
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._index = -1
        try:
            try:
                # The kernel drops this lock with the process, so that no kill leaves it behind.
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Busy(str(path)) from None
            self._index = os.open(
                log_paths.index_path(path), os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600
            )
            self._recover()
        except BaseException:
            self.close()
            raise

    size: int
    lines: int
    first_ns: int | None
    """The time of the first line that has one, in nanoseconds since 1970."""
    latest_ns: int
    """The greatest time so far, NO_TIME before the first."""
    last_ns: int | None
    """The time of the last line that has one."""
    _indexed_size: int

    def append(self, lines: Sequence[bytes]) -> None:
        """Append whole lines, given without their newlines: all of them, or none.

        Raises OSError when none was written.
        """
        if not lines:
            return
        before = (
            self.size,
            self.lines,
            self.first_ns,
            self.latest_ns,
            self.last_ns,
            self._indexed_size,
        )
        entries = []
        for line in lines:
            if self.size - self._indexed_size >= ENTRY_SPACING:
                entries.append((self.size, self.lines, self.latest_ns))
                self._indexed_size = self.size
            self._count_line(line)
        try:
            self._write_all(
                self._file, b"".join([part for line in lines for part in (line, b"\n")]), before[0]
            )
        except OSError:
            (
                self.size,
                self.lines,
                self.first_ns,
                self.latest_ns,
                self.last_ns,
                self._indexed_size,
            ) = before
            raise
        self._write_entries(entries)

    @property
    def handle(self) -> int:
        """Return the open file's descriptor, for reading what is stored."""
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

    def _count_line(self, line: bytes) -> None:
        self.size += len(line) + 1
        self.lines += 1
        time, _ = stamps.parse_stamp(line)
        if time is not None:
            self.first_ns = time if self.first_ns is None else self.first_ns
            self.last_ns, self.latest_ns = time, max(time, self.latest_ns)

    def _write_all(self, handle: int, data: bytes, size: int) -> None:
        """Write all of the data, or restore the file's size and raise OSError."""
        view = memoryview(data)
        try:
            while view:
                view = view[self._write(handle, view[: 1 << 20].tobytes()) :]
        except OSError:
            os.ftruncate(handle, size)
            raise

    def _write_entries(self, entries: Sequence[Entry]) -> None:
        # An index that lacks entries is only slower, and the next start writes them.
        if entries:
            data = b"".join(ENTRY_FORMAT.pack(*entry) for entry in entries)
            try:
                self._write_all(self._index, data, os.fstat(self._index).st_size)
            except OSError:
                self._indexed_size = self.size

    def _recover(self) -> None:
        source = LogFile(self._file)
        end = find_last_line_end(source)
        if end < source.size():
            os.ftruncate(self._file, end)
        self.size, self.lines, self.latest_ns = self._read_last_entry(end)
        self._indexed_size = self.size
        self.first_ns = next(
            (
                time
                for _, line in read_forward(source, 0, min(end, ENTRY_SPACING))
                if (time := stamps.parse_stamp(line)[0]) is not None
            ),
            None,
        )
        self.last_ns = None
        entries = []
        for offset, line in read_forward(source, self.size, end):
            if offset - self._indexed_size >= ENTRY_SPACING:
                entries.append((offset, self.lines, self.latest_ns))
                self._indexed_size = offset
            self._count_line(line)
        self.last_ns = (
            self.last_ns
            if self.last_ns is not None or self.latest_ns == NO_TIME
            else self.latest_ns
        )
        self._write_entries(entries)

    def _read_last_entry(self, end: int) -> Entry:
        """Return the last index entry that the log's size confirms; cut off those after it."""
        size = os.fstat(self._index).st_size
        count = size // ENTRY_FORMAT.size
        entry = START_ENTRY
        while (
            count
            and (
                entry := ENTRY_FORMAT.unpack(
                    os.pread(self._index, ENTRY_FORMAT.size, (count - 1) * ENTRY_FORMAT.size)
                )
            )[0]
            > end
        ):
            count, entry = count - 1, START_ENTRY
        if count * ENTRY_FORMAT.size != size:
            os.ftruncate(self._index, count * ENTRY_FORMAT.size)
        return entry
