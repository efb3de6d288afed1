"""Reading a run's log for pods/log, while its supervisor may still write and rotate it.

Positions count bytes of the whole log from its first byte on; each file's name says where it begins
(see `logwriter`). Files are read in blocks that end with an entry, so memory does not depend on a
log's size.
"""

import asyncio
import bisect
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC
from pathlib import Path

from localkube.kubelet import logwriter
from localkube.machine import LogOptions

BLOCK_BYTES = 64 * 1024
"""At least three times the longest entry, so that a block always holds a whole one."""

QUICK_POLL_SECONDS = 0.01
SLOW_POLL_SECONDS = 0.05
"""The longest pause of a follower; while lines come it looks every QUICK_POLL_SECONDS."""

_FULL_HEAD = re.compile(rb"\n.{30} F ")
_FULL_TAG = re.compile(rb"\n(.{30} )F ")
_PART_HEAD = re.compile(rb"\n.{30} P ")
_FULL_ENTRY = re.compile(rb"(?m)^.{30} F [^\n]*\n")
_ENTRY = re.compile(rb"(?m)^(.{30}) [FP] [^\n]*\n")


async def read_log(
    directory: Path, options: LogOptions, is_running: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Yield the log in chunks of at most BLOCK_BYTES, from where `options` say.

    Without `follow` it ends with what is there now; with it, once `is_running()` is false and
    everything is read. `is_running` is asked up to a hundred times a second. A line that was stored
    in parts comes whole. Where files are rotated away faster than they are read, a line says how
    many bytes are missing.
    """
    place = str(directory)
    cursor = _LogCursor(place, await _find_first_position(place, options))
    stop_at = sys.maxsize if options.follow else _end_position(place)
    decoder = _EntryDecoder(options.timestamps)
    budget = sys.maxsize if options.limit_bytes is None else options.limit_bytes
    nap = QUICK_POLL_SECONDS
    try:
        while budget > 0:
            over = not (
                options.follow and is_running()
            )  # asked before reading: what ended before has written everything
            entries = cursor.next_entries(stop_at)
            for chunk in (decoder.describe_gap(cursor.pop_lost_bytes()), decoder.decode(entries)):
                if chunk and budget > 0:
                    yield chunk[:budget]
                    budget -= len(chunk)
            if over and not entries:
                break
            nap = QUICK_POLL_SECONDS if entries else min(nap * 1.5, SLOW_POLL_SECONDS)
            await asyncio.sleep(0 if entries else nap)
    finally:
        cursor.close()


class _LogCursor:
    """A place in a log that moves forward from file to file.

    An open file stays readable after it was rotated away.
    """

    def __init__(self, directory: str, position: int) -> None:
        self._directory = directory
        self._position = position
        self._handle = -1
        self._file_begin = 0
        self._lost_bytes = 0

    def next_entries(self, stop_at: int) -> bytes:
        """Return whole entries, at most BLOCK_BYTES and none beyond `stop_at`; empty when there are
        none now.
        """
        while self._handle >= 0 or self._open_current():
            if (
                (entries := self._read_entries(stop_at))
                or self._position >= stop_at
                or not self._is_sealed()
            ):
                return entries
            # Read once more: the supervisor may have written between the read and the sealing.
            if entries := self._read_entries(stop_at):
                return entries
            if not self._open_next():
                break
        return b""

    def pop_lost_bytes(self) -> int:
        """Return how many bytes were skipped since the last call because their files were gone."""
        count, self._lost_bytes = self._lost_bytes, 0
        return count

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _read_entries(self, stop_at: int) -> bytes:
        data = os.pread(
            self._handle,
            max(min(BLOCK_BYTES, stop_at - self._position), 0),
            self._position - self._file_begin,
        )
        entries = data[: data.rfind(b"\n") + 1]
        self._position += len(entries)
        return entries

    def _is_sealed(self) -> bool:
        """Return whether the open file has a successor or was removed: then it is complete."""
        successor = os.path.join(self._directory, logwriter.file_name(self._position))
        return (self._position > self._file_begin and os.path.exists(successor)) or os.fstat(
            self._handle
        ).st_nlink == 0

    def _open_current(self) -> bool:
        """Open the file that holds the position, or else the first one after it."""
        begins = logwriter.list_positions(self._directory)
        return self._open_first(begins[max(bisect.bisect_right(begins, self._position) - 1, 0) :])

    def _open_next(self) -> bool:
        """Leave the open file for the one after it."""
        self.close()
        begins = logwriter.list_positions(self._directory)
        return self._open_first(begins[bisect.bisect_right(begins, self._file_begin) :])

    def _open_first(self, begins: Sequence[int]) -> bool:
        """Open the first of these files that still exists; count what lies before it as lost."""
        for begin in begins:
            try:
                self._handle = os.open(
                    os.path.join(self._directory, logwriter.file_name(begin)), os.O_RDONLY
                )
            except FileNotFoundError:
                continue
            self._file_begin = begin
            self._lost_bytes += max(begin - self._position, 0)
            self._position = max(begin, self._position)
            return True
        return False


class _EntryDecoder:
    """Turns entries into what the container wrote, with each line's time before it on request."""

    def __init__(self, timestamps: bool) -> None:
        self._timestamps = timestamps
        self._inside_line = False

    def decode(self, entries: bytes) -> bytes:
        """Return the text of whole entries.

        Entries that are whole lines are done all at once, parts one by one.
        """
        if not entries:
            return b""
        # With the newline in front every head follows one, and a pattern that begins with a fixed
        # byte is searched fast.
        framed = b"\n" + entries[:-1]
        if self._inside_line or _PART_HEAD.search(framed):
            return b"".join(map(self._decode_entry, framed[1:].split(b"\n")))
        return (
            _FULL_TAG.sub(rb"\n\1", framed) if self._timestamps else _FULL_HEAD.sub(b"\n", framed)
        )[1:] + b"\n"

    def describe_gap(self, lost_bytes: int) -> bytes:
        """Return the line that stands for lost bytes; empty when none were lost."""
        if not lost_bytes:
            return b""
        note = (
            b"[localkube: %d bytes of log were rotated away before they were read]\n" % lost_bytes
        )
        time_now = logwriter.format_stamp(time.time_ns()) + b" " if self._timestamps else b""
        before = b"\n" if self._inside_line else b""
        self._inside_line = False
        return before + time_now + note

    def _decode_entry(self, entry: bytes) -> bytes:
        is_part = _is_part(entry)
        head = (
            entry[: logwriter.STAMP_BYTES + 1]
            if self._timestamps and not self._inside_line
            else b""
        )
        self._inside_line = is_part
        return head + entry[logwriter.HEAD_BYTES :] + (b"" if is_part else b"\n")


async def _find_first_position(directory: str, options: LogOptions) -> int:
    """Return where to begin: the later of what `tail_lines` and `since` ask for.

    A log that does not exist yet begins at 0.
    """
    begins = logwriter.list_positions(directory)
    position = begins[0] if begins else 0
    if options.tail_lines is not None:
        position = await _find_tail_position(directory, begins, options.tail_lines)
    if options.since is not None:
        since = options.since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()
        position = max(position, _find_since_position(directory, begins, since))
    return position


def _end_position(directory: str) -> int:
    """Return the position after the last byte that is there now."""
    begins = logwriter.list_positions(directory)
    return begins[-1] + _file_size(directory, begins[-1]) if begins else 0


def _file_size(directory: str, begin: int) -> int:
    try:
        return os.stat(os.path.join(directory, logwriter.file_name(begin))).st_size
    except FileNotFoundError:
        return 0


def _read_block(directory: str, begin: int, offset: int, size: int) -> bytes:
    """Return bytes of one file; none when it was rotated away."""
    try:
        with open(os.path.join(directory, logwriter.file_name(begin)), "rb", buffering=0) as file:
            file.seek(offset)
            return file.read(size) or b""
    except FileNotFoundError:
        return b""


async def _find_tail_position(directory: str, begins: Sequence[int], lines: int) -> int:
    """Return where the last `lines` lines begin.

    Searches backwards, a block at a time. The parts of one line count as one.
    """
    remaining = 0
    for begin in reversed(begins):
        end = _file_size(directory, begin)
        while end > 0:
            start = max(end - BLOCK_BYTES, 0)
            data = _read_block(directory, begin, start, end - start)
            first = data.find(b"\n") + 1 if start else 0
            lines_end = data.rfind(b"\n") + 1
            if not remaining and lines_end:
                # In the newest block: look for one end more than lines, as the first line begins
                # where the line before it ends.
                remaining = (
                    lines + 1 - _is_part(data[data.rfind(b"\n", 0, lines_end - 1) + 1 : lines_end])
                )
                if not remaining:
                    return begin + start + lines_end
            ends = [entry.end() for entry in _FULL_ENTRY.finditer(data, first)]
            if len(ends) >= remaining:
                return begin + start + ends[-remaining]
            remaining -= len(ends)
            end = start + first if first < len(data) else start
            await asyncio.sleep(0)
    return begins[0] if begins else 0


def _find_since_position(directory: str, begins: Sequence[int], since: bytes) -> int:
    """Return where the first entry of that time or later begins.

    Times never fall, so it bisects: by files, then by blocks, then searches the block.
    """
    for begin in reversed(begins):
        stamp = _read_block(directory, begin, 0, logwriter.STAMP_BYTES)
        if stamp and stamp < since:
            break
    else:
        return begins[0] if begins else 0

    def first_stamp(offset: int) -> bytes:
        """Return the time of the first entry after `offset`; later than any when there is none."""
        data = _read_block(directory, begin, offset, BLOCK_BYTES)
        entry = _ENTRY.search(data, data.find(b"\n") + 1)
        return entry[1] if entry else b"~"

    blocks = range(0, max(_file_size(directory, begin), 1), BLOCK_BYTES)
    offset = blocks[max(bisect.bisect_left(blocks, since, lo=1, key=first_stamp) - 1, 0)]
    data = _read_block(directory, begin, offset, 2 * BLOCK_BYTES)
    later = begin + offset
    for entry in _ENTRY.finditer(data, data.find(b"\n") + 1 if offset else 0):
        if entry[1] >= since:
            return begin + offset + entry.start()
        later = begin + offset + entry.end()
    return later


def _is_part(entry: bytes) -> bool:
    return entry[logwriter.STAMP_BYTES + 1 : logwriter.STAMP_BYTES + 2] == b"P"
