"""The objects of one resource in memory: their order, their owners' counts, their recent changes.

Nothing here knows of SQLite or of transactions: the store brings a table to a state and back.
"""

import bisect
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from localkube import errors
from localkube.metadata import Object
from localkube.tallies import Tally

HISTORY_CHANGES = 10_000
HISTORY_BYTES = 32 << 20

ObjectKey = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A stored object.

    `raw` is its JSON without kind and apiVersion, which every object of a resource shares.
    """

    namespace: str
    name: str
    uid: str
    rv: int
    labels: Mapping[str, str]
    fields: Mapping[str, str]
    owners: tuple[str, ...]
    raw: bytes
    controller: str = ""
    """The uid of the owner that controls the object."""
    is_terminating: bool = False
    finalizers: tuple[str, ...] = ()
    tally: Tally | None = None

    def decode(self) -> Object:
        """Return a fresh copy, the caller's to change, without kind and apiVersion."""
        decoded: Object = msgspec.json.decode(self.raw)
        return decoded


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """One write.

    The record of a DELETED is the last state, under the resource version of the deletion.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    key: str
    record: Record
    previous: Record | None


@dataclass(slots=True)
class OwnedRecords:
    """What one owner has of a resource: all keys, and by tally those that it controls."""

    keys: dict[ObjectKey, None] = field(default_factory=dict)
    by_tally: dict[Tally, dict[ObjectKey, None]] = field(default_factory=dict)

    def add(self, key: ObjectKey, record: Record, *, controls: bool) -> None:
        self.keys[key] = None
        if controls and record.tally is not None:
            self.by_tally.setdefault(record.tally, {})[key] = None

    def remove(self, key: ObjectKey, record: Record, *, controls: bool) -> None:
        del self.keys[key]
        if controls and record.tally is not None:
            del self.by_tally[record.tally][key]
            if not self.by_tally[record.tally]:
                del self.by_tally[record.tally]


@dataclass(slots=True)
class NamespaceCounts:
    """How many objects of a namespace are being deleted, and how many have each finalizer."""

    terminating: int = 0
    finalizers: Counter[str] = field(default_factory=Counter)

    def count(self, record: Record, sign: int) -> None:
        self.terminating += sign * record.is_terminating
        for finalizer in record.finalizers:
            self.finalizers[finalizer] += sign
            if not self.finalizers[finalizer]:
                del self.finalizers[finalizer]


@dataclass(slots=True)
class ResourceTable:
    """The objects of one resource, in order, with their recent changes.

    `oldest_version` is the version from which the history is complete.
    """

    oldest_version: int
    records: dict[ObjectKey, Record] = field(default_factory=dict)
    order: list[ObjectKey] = field(default_factory=list)
    owned: dict[str, OwnedRecords] = field(default_factory=dict)
    counts: dict[str, NamespaceCounts] = field(default_factory=dict)
    history: deque[Change] = field(default_factory=deque)
    history_bytes: int = 0
    subscribers: list[Callable[[Change], None]] = field(default_factory=list)

    def set_record(self, key: ObjectKey, record: Record | None) -> None:
        old = self.records.get(key)
        if old is not None:
            self._unindex(key, old)
        if record is None:
            del self.records[key]
            del self.order[bisect.bisect_left(self.order, key)]
            return
        if old is None:
            bisect.insort(self.order, key)
        self.records[key] = record
        for uid in record.owners:
            owned = self.owned.setdefault(uid, OwnedRecords())
            owned.add(key, record, controls=uid == record.controller)
        if record.is_terminating or record.finalizers:
            self.counts.setdefault(record.namespace, NamespaceCounts()).count(record, 1)

    def _unindex(self, key: ObjectKey, record: Record) -> None:
        # An object may name one owner twice.
        for uid in dict.fromkeys(record.owners):
            owned = self.owned[uid]
            owned.remove(key, record, controls=uid == record.controller)
            if not owned.keys:
                del self.owned[uid]
        if record.is_terminating or record.finalizers:
            counts = self.counts[record.namespace]
            counts.count(record, -1)
            if not (counts.terminating or counts.finalizers):
                del self.counts[record.namespace]

    def find_range(self, namespace: str) -> tuple[int, int]:
        """Return where the keys of a namespace start and end in `order`."""
        # "\0" sorts before any character that may follow in a longer namespace's name.
        return (
            bisect.bisect_left(self.order, (namespace, "")),
            bisect.bisect_left(self.order, (namespace + "\0", "")),
        )

    def append_history(self, change: Change) -> None:
        self.history.append(change)
        self.history_bytes += len(change.record.raw)
        while len(self.history) > HISTORY_CHANGES or self.history_bytes > HISTORY_BYTES:
            dropped = self.history.popleft()
            self.history_bytes -= len(dropped.record.raw)
            self.oldest_version = dropped.record.rv

    def list_records(self, namespace: str | None) -> Sequence[Record]:
        """Return all records, or those of one namespace, ordered by namespace and name."""
        return [self.records[object_key] for object_key in self._list_keys(namespace)]

    def _list_keys(self, namespace: str | None) -> Sequence[ObjectKey]:
        if namespace is None:
            return self.order
        start, end = self.find_range(namespace)
        return self.order[start:end]

    def list_changes_since(self, rv: int) -> Sequence[Change]:
        """Return the changes after `rv`, oldest first.

        Raises ApiError 410 when the history no longer reaches back so far.
        """
        if rv < self.oldest_version:
            raise errors.expired_error(f"too old resource version: {rv} ({self.oldest_version})")
        newer = []
        for change in reversed(self.history):
            if change.record.rv <= rv:
                break
            newer.append(change)
        return newer[::-1]

    def list_at_version(self, rv: int, namespace: str | None) -> Sequence[Record]:
        """Return all records, or those of one namespace, as they were at `rv`, in order.

        Raises ApiError 410 when the history no longer reaches back so far.
        """
        if rv < self.oldest_version:
            raise errors.expired_error("The resourceVersion for the provided list is too old.")
        # Newest first, so the oldest change after `rv` is the one whose `previous` stays.
        previous_states: dict[ObjectKey, Record | None] = {}
        for change in reversed(self.history):
            if change.record.rv <= rv:
                break
            if namespace in (None, change.record.namespace):
                previous_states[change.record.namespace, change.record.name] = change.previous
        if not previous_states:
            return self.list_records(namespace)
        object_keys = self._list_keys(namespace)
        removed_keys = previous_states.keys() - self.records.keys()
        if removed_keys:
            object_keys = sorted([*object_keys, *removed_keys])
        states = (
            previous_states[object_key]
            if object_key in previous_states
            else self.records[object_key]
            for object_key in object_keys
        )
        return [record for record in states if record is not None]
