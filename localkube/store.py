"""The store: all objects in memory as JSON bytes, each written through to SQLite first.

One thread uses a store. Every write raises the resource version by one, is committed, then recorded
in a bounded history and passed to the subscribers, in that order, so no subscriber sees what a
crash could take back. The history serves watches that start in the past and pages of a list that
must show one moment. What an object means is not known here.
"""

import bisect
import contextlib
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from localkube import errors
from localkube.metadata import Object

MIGRATIONS = (
    # 1: the first layout
    """
    CREATE TABLE objects (
        id INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
        rv INTEGER NOT NULL, data BLOB NOT NULL, UNIQUE (resource, namespace, name)
    );
    CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO counters VALUES ('rv', 1);
    """,
)
"""One script per schema version; an older data directory runs the scripts that it lacks."""

MAX_OBJECTS = 200_000
MAX_BYTES = 2 << 30
HISTORY_CHANGES = 10_000
HISTORY_BYTES = 32 << 20
CHECKPOINT_EVERY = 2.0
CHECKPOINT_BYTES = 4 << 20
"""From which size the write-ahead log is folded into the database, every CHECKPOINT_EVERY seconds.

A thread of its own does it: the fsync takes tens of milliseconds, which no request should wait for.
"""
BACKSTOP_PAGES = 64_000
"""The pages (256 MiB) from which a writer folds the log itself.

The thread cannot fold a log that is written without a pause.
"""


ObjectKey = tuple[str, str]
FieldIndexer = Callable[[str, Object], Mapping[str, str]]


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
class _ResourceTable:
    """The objects of one resource, in order, with their recent changes.

    `oldest_version` is the version from which the history is complete.
    """

    oldest_version: int
    records: dict[ObjectKey, Record] = field(default_factory=dict)
    order: list[ObjectKey] = field(default_factory=list)
    owned_keys: dict[str, dict[ObjectKey, None]] = field(default_factory=dict)
    history: deque[Change] = field(default_factory=deque)
    history_bytes: int = 0
    subscribers: list[Callable[[Change], None]] = field(default_factory=list)

    def set_record(self, key: ObjectKey, record: Record | None) -> None:
        old = self.records.get(key)
        if old is not None:
            for uid in old.owners:
                self.owned_keys[uid].pop(key, None)
                if not self.owned_keys[uid]:
                    del self.owned_keys[uid]
        if record is None:
            del self.records[key]
            del self.order[bisect.bisect_left(self.order, key)]
            return
        if old is None:
            bisect.insort(self.order, key)
        self.records[key] = record
        for uid in record.owners:
            self.owned_keys.setdefault(uid, {})[key] = None

    def append_history(self, change: Change) -> None:
        self.history.append(change)
        self.history_bytes += len(change.record.raw)
        while len(self.history) > HISTORY_CHANGES or self.history_bytes > HISTORY_BYTES:
            dropped = self.history.popleft()
            self.history_bytes -= len(dropped.record.raw)
            self.oldest_version = dropped.record.rv


class Store:
    """Objects by resource key, namespace and name.

    `index_fields` gives the values that field selectors may ask for; it is called once per write.
    Raises SchemaTooNew when the file was written by a later localkube.
    """

    def __init__(self, path: Path, index_fields: FieldIndexer) -> None:
        self._index_fields = index_fields
        self._tables: dict[str, _ResourceTable] = {}
        self._pending_changes: list[Change] | None = None
        self.object_count = 0
        self.total_bytes = 0
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        # With WAL this survives a killed process; a power cut may lose the newest commits, no more.
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute(f"PRAGMA wal_autocheckpoint={BACKSTOP_PAGES}")
        self._migrate()
        (self.rv,) = self._db.execute("SELECT value FROM counters WHERE name = 'rv'").fetchone()
        self._load_objects()
        self._checkpoints = _CheckpointThread(path)

    def _migrate(self) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > len(MIGRATIONS):
            raise SchemaTooNew(version, len(MIGRATIONS))
        for number, script in enumerate(MIGRATIONS[version:], version + 1):
            self._db.executescript(
                f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {number}; COMMIT;"
            )

    def _load_objects(self) -> None:
        for resource, rv, data in self._db.execute("SELECT resource, rv, data FROM objects"):
            record = self._build_record(resource, msgspec.json.decode(data), rv, data)
            self._get_table(resource).set_record((record.namespace, record.name), record)
            self.object_count += 1
            self.total_bytes += len(data)

    def _get_table(self, key: str) -> _ResourceTable:
        table = self._tables.get(key)
        if table is None:
            # History is not on disk: a watch from before this start gets a 410 and lists again.
            table = self._tables[key] = _ResourceTable(oldest_version=self.rv)
        return table

    def _build_record(self, key: str, obj: Object, rv: int, raw: bytes) -> Record:
        metadata = obj["metadata"]
        owners = tuple(ref["uid"] for ref in metadata.get("ownerReferences") or ())
        namespace = metadata.get("namespace") or ""
        return Record(
            namespace,
            metadata["name"],
            metadata["uid"],
            rv,
            metadata.get("labels") or {},
            self._index_fields(key, obj),
            owners,
            raw,
        )

    # Reading

    def find(self, key: str, namespace: str, name: str) -> Record | None:
        return self._get_table(key).records.get((namespace, name))

    def list(self, key: str, namespace: str | None = None) -> Sequence[Record]:
        """Return all records of a resource, or of one namespace, ordered by namespace and name."""
        table = self._get_table(key)
        if namespace is None:
            return [table.records[object_key] for object_key in table.order]
        # "\0" sorts before any character that may follow in a longer namespace's name.
        start = bisect.bisect_left(table.order, (namespace, ""))
        end = bisect.bisect_left(table.order, (namespace + "\0", ""))
        return [table.records[object_key] for object_key in table.order[start:end]]

    def list_owned(self, key: str, uid: str) -> Sequence[Record]:
        """Return the records that `uid` owns, in no stated order."""
        table = self._get_table(key)
        return [table.records[object_key] for object_key in table.owned_keys.get(uid, ())]

    def list_changes_since(self, key: str, rv: int) -> Sequence[Change]:
        """Return the changes of a resource after `rv`, oldest first.

        Raises ApiError 410 when the history no longer reaches back so far.
        """
        table = self._get_table(key)
        if rv < table.oldest_version:
            raise errors.expired_error(f"too old resource version: {rv} ({table.oldest_version})")
        newer = []
        for change in reversed(table.history):
            if change.record.rv <= rv:
                break
            newer.append(change)
        return newer[::-1]

    def list_at_version(self, key: str, rv: int) -> Sequence[Record]:
        """Return all records of a resource as they were at `rv`, in order.

        Raises ApiError 410 when the history no longer reaches back so far.
        """
        table = self._get_table(key)
        if rv < table.oldest_version:
            raise errors.expired_error("The resourceVersion for the provided list is too old.")
        # Newest first, so the oldest change after `rv` is the one whose `previous` stays.
        previous_states: dict[ObjectKey, Record | None] = {}
        for change in reversed(table.history):
            if change.record.rv <= rv:
                break
            previous_states[change.record.namespace, change.record.name] = change.previous
        if not previous_states:
            return self.list(key)
        state = table.records | previous_states
        return [record for _, record in sorted(state.items()) if record is not None]

    def subscribe(self, key: str, callback: Callable[[Change], None]) -> Callable[[], None]:
        """Call `callback` after each committed change of a resource, in order.

        It must be quick and must not write. Returns the function that ends the subscription.
        """
        subscribers = self._get_table(key).subscribers
        subscribers.append(callback)
        return lambda: subscribers.remove(callback)

    # Writing

    def put_object(self, key: str, obj: Object) -> Record:
        """Store an object under its namespace and name, and set its resourceVersion.

        Raises ApiError 507 when the store or the disk is full.
        """
        with self.transaction():
            rv = self.rv + 1
            metadata = obj["metadata"]
            metadata["resourceVersion"] = str(rv)
            raw = msgspec.json.encode(
                {k: v for k, v in obj.items() if k not in ("kind", "apiVersion")}
            )
            record = self._build_record(key, obj, rv, raw)
            object_key = (record.namespace, record.name)
            previous = self._get_table(key).records.get(object_key)
            self._check_bounds(
                0 if previous else 1, len(raw) - (len(previous.raw) if previous else 0)
            )
            self._db.execute(
                "INSERT INTO objects (resource, namespace, name, rv, data) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (resource, namespace, name) DO UPDATE SET rv = excluded.rv, data = "
                "excluded.data",
                (key, *object_key, rv, raw),
            )
            self._stage_change(Change("MODIFIED" if previous else "ADDED", key, record, previous))
        return record

    def remove_object(self, key: str, obj: Object) -> Record:
        """Remove an object, whose last state is `obj`; return its record.

        The record is under the resource version of the deletion.
        """
        with self.transaction():
            rv = self.rv + 1
            obj["metadata"]["resourceVersion"] = str(rv)
            raw = msgspec.json.encode(
                {k: v for k, v in obj.items() if k not in ("kind", "apiVersion")}
            )
            record = self._build_record(key, obj, rv, raw)
            previous = self._get_table(key).records[record.namespace, record.name]
            self._db.execute(
                "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?",
                (key, record.namespace, record.name),
            )
            self._stage_change(Change("DELETED", key, record, previous))
        return record

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all writes inside together and notify only then; an exception undoes all of them.

        May be nested: the outermost decides. Raises ApiError 507 when the disk is full; the store
        is then as it was before.
        """
        if self._pending_changes is not None:
            yield
            return
        self._pending_changes = []
        old_version = self.rv
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            if self._pending_changes:
                self._db.execute("UPDATE counters SET value = ? WHERE name = 'rv'", (self.rv,))
            self._db.execute("COMMIT")
        except BaseException as error:
            # A cancelled or interrupted writer, too, must not leave memory ahead of the database.
            self._roll_back(old_version)
            if isinstance(error, sqlite3.OperationalError):
                raise errors.storage_full_error(
                    f"the data directory cannot be written ({error})"
                ) from error
            raise
        # Only after the commit: nobody may hear of a change that a crash could take back.
        changes, self._pending_changes = self._pending_changes, None
        for change in changes:
            table = self._tables[change.key]
            table.append_history(change)
            # A copy, since a subscriber may end its subscription while it is called.
            for subscriber in tuple(table.subscribers):
                subscriber(change)

    def _check_bounds(self, added_objects: int, added_bytes: int) -> None:
        if self.object_count + added_objects > MAX_OBJECTS:
            raise errors.storage_full_error(f"the cluster holds {MAX_OBJECTS} objects, its bound")
        if self.total_bytes + added_bytes > MAX_BYTES:
            raise errors.storage_full_error(
                f"the cluster holds {MAX_BYTES >> 20} MiB of objects, its bound"
            )

    def _stage_change(self, change: Change) -> None:
        assert self._pending_changes is not None
        self._pending_changes.append(change)
        self._move_memory(change, forward=True)
        self.rv = change.record.rv

    def _move_memory(self, change: Change, *, forward: bool) -> None:
        """Bring memory to the state after `change`, or back to the one before it."""
        changed_record = None if change.type == "DELETED" else change.record
        old_record, new_record = (
            (change.previous, changed_record) if forward else (changed_record, change.previous)
        )
        self._tables[change.key].set_record(
            (change.record.namespace, change.record.name), new_record
        )
        self.object_count += (new_record is not None) - (old_record is not None)
        self.total_bytes += (len(new_record.raw) if new_record else 0) - (
            len(old_record.raw) if old_record else 0
        )

    def _roll_back(self, rv: int) -> None:
        for change in reversed(self._pending_changes or ()):
            self._move_memory(change, forward=False)
        self._pending_changes = None
        self.rv = rv
        # SQLite has rolled back by itself after some errors, as of a full disk (lang_transaction).
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def close(self) -> None:
        self._checkpoints.stop()
        self._db.close()


class _CheckpointThread:
    """The thread that folds the write-ahead log into the database while others write."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = path.with_name(f"{path.name}-wal")
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        with contextlib.closing(sqlite3.connect(self._path, isolation_level=None)) as db:
            while not self._stopped.wait(CHECKPOINT_EVERY):
                # On a full disk this fails, the log stays, and the next round tries again.
                with contextlib.suppress(OSError, sqlite3.OperationalError):
                    if self._log.stat().st_size > CHECKPOINT_BYTES:
                        # PASSIVE never makes the writer wait for a lock.
                        db.execute("PRAGMA wal_checkpoint(PASSIVE)")


class SchemaTooNew(Exception):
    """The data directory was written by a later localkube than this one."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(
            f"the data was written by a newer localkube (schema {found}, this one knows "
            f"{known}): start that one, or use another --data"
        )
