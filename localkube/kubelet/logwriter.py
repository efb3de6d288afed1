"""Writing a container's output to its log: stamped lines in rotated files, without blocking the
container.

A line is `2026-11-21T03:00:00.123456789Z F text`; `P` in place of `F` says that the text goes on in
the next line: parts of a line over 16 KiB, or a last one that was never ended (the format of the
container runtimes, CRI). All lines that came with one read have one time, and times never fall. A
file is named by the position of its first byte in the whole log, so a reader knows what follows and
how much was rotated away. Standard library only, because every supervisor imports it.
"""

import errno
import os
import time
from collections.abc import Iterator

PART_BYTES = 16 * 1024
STAMP_BYTES = 30
HEAD_BYTES = STAMP_BYTES + 3
SUFFIX = ".log"
_WINDOW = PART_BYTES // 2
"""A line longer than PART_BYTES covers at least one whole aligned window of this size."""


def file_name(position: int) -> str:
    """Return the name of the log file that begins at this position; names sort as positions do."""
    return f"{position:020d}{SUFFIX}"


def list_positions(directory: str) -> list[int]:
    """Return where the log files of a run begin, in order; empty before the first output."""
    try:
        names = os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(
        int(name[: -len(SUFFIX)])
        for name in names
        if name.endswith(SUFFIX) and name[: -len(SUFFIX)].isdigit()
    )


def format_stamp(nanoseconds: int) -> bytes:
    """Format a time as RFC 3339 in UTC with nine digits.

    Always STAMP_BYTES long, so that stamps compare as text.
    """
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return b"%s.%09dZ" % (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)).encode(), rest)


class LogWriter:
    """The one writer of a run's log.

    What the disk refuses is dropped and counted, and a marker line says so once the disk takes
    bytes again: nothing here blocks or raises for a full disk. At most one unended line of
    PART_BYTES is held back in memory.
    """

    def __init__(self, directory: str, max_bytes: int, max_files: int) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._file_begin = self._end_position = 0
        self._handle = -1
        self._unended_line = b""
        self._dropped_bytes = 0
        self._refusal = b""
        self._last_time = 0

    def write_output(self, data: bytes) -> None:
        """Log bytes that the container wrote; they may be cut anywhere."""
        self._last_time = max(self._last_time, time.time_ns())
        data = self._unended_line + data
        lines_end = data.rfind(b"\n") + 1
        unended = data[lines_end:]
        parts_end = max(len(unended) - 1, 0) // PART_BYTES * PART_BYTES
        self._unended_line = unended[parts_end:]
        self._store_entries(
            self._format_lines(data[:lines_end]) + self._format_parts(unended[:parts_end])
        )

    def close(self) -> None:
        """Write what was held back, and the marker if bytes are missing: the output has ended."""
        self._last_time = max(self._last_time, time.time_ns())
        self._store_entries(self._format_parts(self._unended_line))
        self._unended_line = b""
        self._close_file()

    def _format_lines(self, data: bytes) -> bytes:
        """Format ended lines as entries. Only lines that are too long are handled one by one."""
        head = format_stamp(self._last_time) + b" F "
        pieces = []
        position = 0
        for begin, end in _find_long_lines(data):
            if begin > position:
                pieces += [head, data[position : begin - 1].replace(b"\n", b"\n" + head), b"\n"]
            last = begin + (end - begin - 1) // PART_BYTES * PART_BYTES
            pieces += [self._format_parts(data[begin:last]), head, data[last : end + 1]]
            position = end + 1
        if position < len(data):
            pieces += [head, data[position:-1].replace(b"\n", b"\n" + head), b"\n"]
        return b"".join(pieces)

    def _format_parts(self, text: bytes) -> bytes:
        head = format_stamp(self._last_time) + b" P "
        return b"".join(
            head + text[i : i + PART_BYTES] + b"\n" for i in range(0, len(text), PART_BYTES)
        )

    def _store_entries(self, entries: bytes) -> None:
        """Write all entries, or count as dropped what the disk refused of them."""
        before = self._end_position
        try:
            if self._dropped_bytes:
                marker = b"[localkube: %d bytes of log were dropped: %s]\n" % (
                    self._dropped_bytes,
                    self._refusal,
                )
                self._put_entries(format_stamp(self._last_time) + b" F " + marker, 0)
                self._dropped_bytes = 0
                before = self._end_position
            while self._end_position - before < len(entries):
                self._put_entries(entries, self._end_position - before)
        except OSError as error:
            self._dropped_bytes += len(entries) - (self._end_position - before)
            self._refusal = os.strerror(error.errno or errno.EIO).lower().encode()

    def _put_entries(self, entries: bytes, begin: int) -> None:
        """Write as many entries as the file has room for, or rotate it.

        An entry larger than a whole file gets a file of its own.
        """
        room = self._max_bytes - (self._end_position - self._file_begin)
        end = entries.rfind(b"\n", begin, begin + max(room, 0)) + 1
        if end:
            self._write_entries(memoryview(entries)[begin:end])
        elif self._end_position > self._file_begin:
            self._close_file()
            self._file_begin = self._end_position
        else:
            self._write_entries(memoryview(entries)[begin : entries.index(b"\n", begin) + 1])

    def _write_entries(self, entries: memoryview) -> None:
        if self._handle < 0:
            self._open_file()
        written = 0
        try:
            while written < len(entries):
                written += os.write(self._handle, entries[written:])
        except OSError:
            # Cut off a half-written entry; readers take only whole entries and do not notice.
            written = bytes(entries[:written]).rfind(b"\n") + 1
            os.ftruncate(self._handle, self._end_position - self._file_begin + written)
            raise
        finally:
            self._end_position += written

    def _open_file(self) -> None:
        """Begin the next file; the oldest makes room first."""
        for position in list_positions(self._directory)[: -(self._max_files - 1) or None]:
            os.unlink(os.path.join(self._directory, file_name(position)))
        path = os.path.join(self._directory, file_name(self._file_begin))
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def _close_file(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _find_long_lines(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each line over PART_BYTES in `data`, which ends with a newline.

    The end is the place of the line's newline. A newline is searched in every window, so the cost
    does not depend on the number of lines.
    """
    i = 0
    while i + _WINDOW <= len(data):
        if data.find(b"\n", i, i + _WINDOW) >= 0:
            i += _WINDOW
            continue
        begin = data.rfind(b"\n", 0, i) + 1
        end = data.index(b"\n", i)
        if end - begin > PART_BYTES:
            yield begin, end
        i = (end // _WINDOW + 1) * _WINDOW
