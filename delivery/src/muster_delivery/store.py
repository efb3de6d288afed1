"""Prepared batches of a data worker: in memory up to a bound, then in files, bounded too."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import NamedTuple, Union

Buffer = Union[bytes, bytearray, memoryview]


class StoreFull(Exception):
    """A batch is larger than the whole store."""


class _Entry(NamedTuple):
    """Where a batch lies: its frames, or their lengths in a file."""

    frames: list[Buffer] | None
    lengths: list[int]
    path: Path | None

    @property
    def size(self) -> int:
        return sum(self.lengths)


class BatchStore:
    """Keep encoded batches by any key until they are taken; wait where there is no room.

    `memory_bytes` and `disk_bytes` bound what it holds; without a folder nothing goes to disk.
    Everything may be called from any thread.
    """

    def __init__(
        self, memory_bytes: int, folder: str | os.PathLike[str] | None = None, disk_bytes: int = 0
    ) -> None:
        self._memory_bytes = memory_bytes
        self._disk_bytes = disk_bytes if folder is not None else 0
        # A folder of its own: what an earlier process left there is not taken for ours.
        self._folder = (
            Path(tempfile.mkdtemp(prefix="batches-", dir=folder)) if self._disk_bytes else None
        )
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._in_memory = self._on_disk = self._files = 0
        self._changed = threading.Condition()
        self._is_closed = False

    def __len__(self) -> int:
        with self._changed:
            return len(self._entries)

    @property
    def memory_used(self) -> int:
        """The bytes of the batches in memory."""
        return self._in_memory

    @property
    def disk_used(self) -> int:
        """The bytes of the batches in files."""
        return self._on_disk

    @property
    def bound(self) -> int:
        """The bytes that it holds at most: fewer than asked for where the disk is full."""
        return self._memory_bytes + self._disk_bytes

    def has_room(self, size: int) -> bool:
        """Tell whether a batch of so many bytes has room now."""
        with self._changed:
            return self._has_room(size)

    def list_keys(self) -> list[Hashable]:
        """Return the keys of all batches, in the order in which they came."""
        with self._changed:
            return list(self._entries)

    def put(self, key: Hashable, frames: Sequence[Buffer], timeout: float | None = None) -> bool:
        """Keep a batch, when there is room for it; False when there was none in time.

        A batch that is there already stays. Raises StoreFull for one that never has room.
        """
        lengths = [_measure(frame) for frame in frames]
        size = sum(lengths)
        if size > max(self._memory_bytes, self._disk_bytes):
            raise StoreFull(
                f"A batch of {size:,} bytes is larger than the store of prepared batches "
                f"({self._memory_bytes:,} bytes in memory, {self._disk_bytes:,} on disk)."
            )
        with self._changed:
            if not self._changed.wait_for(
                lambda: self._is_closed or key in self._entries or self._has_room(size), timeout
            ):
                return False
            if self._is_closed or key in self._entries:
                return not self._is_closed
            if self._in_memory + size <= self._memory_bytes:
                self._entries[key] = _Entry(list(frames), lengths, None)
                self._in_memory += size
                return True
            self._on_disk += size
            self._files += 1
            path = self._get_folder() / str(self._files)
        return self._spill(key, frames, lengths, path)

    def pop(self, key: Hashable) -> list[Buffer] | None:
        """Take a batch out and return its frames; None where it is not here."""
        with self._changed:
            entry = self._entries.pop(key, None)
            if entry is None:
                return None
            if entry.path is None:
                self._in_memory -= entry.size
                self._changed.notify_all()
                return entry.frames
        try:
            return _read_frames(entry.path, entry.lengths)
        finally:
            self._remove_file(entry)

    def discard(self, key: Hashable) -> bool:
        """Forget a batch; tell whether it was here."""
        with self._changed:
            entry = self._entries.pop(key, None)
            if entry is None:
                return False
            if entry.path is None:
                self._in_memory -= entry.size
                self._changed.notify_all()
                return True
        self._remove_file(entry)
        return True

    def close(self) -> None:
        """Forget everything, remove the files, and let whoever waits go."""
        with self._changed:
            self._is_closed = True
            self._entries.clear()
            self._in_memory = self._on_disk = 0
            self._changed.notify_all()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _has_room(self, size: int) -> bool:
        return (
            self._in_memory + size <= self._memory_bytes or self._on_disk + size <= self._disk_bytes
        )

    def _get_folder(self) -> Path:
        assert self._folder is not None, "there is room on disk only with a folder"
        return self._folder

    def _spill(
        self, key: Hashable, frames: Sequence[Buffer], lengths: list[int], path: Path
    ) -> bool:
        """Write a batch whose room is taken already; disk is slow, so nobody waits for it."""
        try:
            with path.open("xb", buffering=0) as file:
                for frame in frames:
                    _write_whole(file.fileno(), frame)
        except OSError:
            path.unlink(missing_ok=True)
            with self._changed:
                if self._is_closed:
                    return False
                # The disk is full before its bound: from here on it takes no more than it has.
                self._on_disk -= sum(lengths)
                self._disk_bytes = self._on_disk
                self._changed.notify_all()
            raise
        entry = _Entry(None, lengths, path)
        with self._changed:
            is_kept = not self._is_closed and key not in self._entries
            if is_kept:
                self._entries[key] = entry
                return True
        self._remove_file(entry)
        return not self._is_closed

    def _remove_file(self, entry: _Entry) -> None:
        if entry.path is not None:
            entry.path.unlink(missing_ok=True)
        with self._changed:
            if not self._is_closed:
                self._on_disk -= entry.size
            self._changed.notify_all()


def _measure(frame: Buffer) -> int:
    return frame.nbytes if isinstance(frame, memoryview) else len(frame)


def _write_whole(descriptor: int, frame: Buffer) -> None:
    view = memoryview(frame).cast("B") if _measure(frame) else memoryview(b"")
    while len(view):
        view = view[os.write(descriptor, view) :]


def _read_frames(path: Path, lengths: Sequence[int]) -> list[Buffer]:
    frames: list[Buffer] = []
    with path.open("rb", buffering=0) as file:
        for length in lengths:
            frame = bytearray(length)
            view = memoryview(frame)
            while len(view):
                count = file.readinto(view)
                if not count:
                    raise OSError(f"{path.name} of the prepared batches is shorter than it was")
                view = view[count:]
            frames.append(frame)
    return frames
