"""The batches that a data worker keeps: prepared ones, and those a rank has no room for yet."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from muster_delivery.log_lines import write_text
from muster_delivery.messages import measure
from muster_delivery.sources.source import LoadedBatch
from muster_delivery.store import BatchStore, Buffer, StoreFull
from muster_delivery.wire import encode

BatchKey = tuple[object, ...]
"""What a batch is kept by; its second part is the epoch."""


class NoRoom(Exception):
    """A batch was not kept, since there is no room for it."""


class BatchShelf:
    """Batches by key, with how many elements each has; safe for several threads."""

    def __init__(self, folder: Path | None, memory_bytes: int, disk_bytes: int) -> None:
        self._store = BatchStore(memory_bytes, folder, disk_bytes)
        self._refused_bytes = 0
        """What the last batch has that was not kept; 0 when one was kept since."""
        self._elements: dict[BatchKey, int] = {}
        self._lock = threading.Lock()
        self.refusal = ""
        """Why the last batch could not be kept, where it is not for want of room only."""

    @property
    def fill(self) -> float:
        """Return how full it is, from 0 to 1; 1 while the last batch still has no room."""
        if self._refused_bytes and not self._store.has_room(self._refused_bytes):
            return 1.0
        used = self._store.memory_used + self._store.disk_used
        return used / max(1, self._store.bound)

    def keep(self, key: BatchKey, batch: LoadedBatch) -> bool:
        """Keep a batch; False where there is no room."""
        # A copy: the loader may use the same memory for its next batch.
        frames = encode(batch.value, copy=True)
        try:
            is_kept = self._store.put(key, frames, timeout=0)
        except (StoreFull, OSError) as error:
            self.refusal, is_kept = str(error), False
        self._refused_bytes = 0 if is_kept else sum(measure(frame) for frame in frames)
        if is_kept:
            # Not before: who takes it meanwhile would leave it in the store for ever.
            with self._lock:
                self._elements[key] = batch.elements
        return is_kept

    def take(self, key: BatchKey) -> tuple[Sequence[Buffer], int] | None:
        """Hand over a batch, which is kept no longer; None where it is not here.

        One whose file cannot be read is gone: whoever asks for it loads it again.
        """
        with self._lock:
            elements = self._elements.pop(key, None)
        try:
            frames = None if elements is None else self._store.pop(key)
        except OSError as error:
            write_text(f"a prepared batch is lost, and is loaded again: {error}")
            frames = None
        return None if frames is None or elements is None else (frames, elements)

    def has_batch(self, key: BatchKey) -> bool:
        """Say whether a batch is here."""
        return key in self._elements

    def drop_epochs_before(self, epoch: int) -> None:
        """Keep nothing of earlier epochs: no rank asks for it any more."""
        self.drop_keys([key for key in self.list_keys() if int(str(key[1])) < epoch])

    def drop_keys(self, keys: Sequence[BatchKey]) -> None:
        """Keep these no longer."""
        for key in keys:
            with self._lock:
                self._elements.pop(key, None)
            # Not `pop`, which would read its file: the server's thread does this.
            self._store.discard(key)

    def list_keys(self) -> list[BatchKey]:
        """Return the keys of all that is here."""
        with self._lock:
            return list(self._elements)
