"""The store: all objects in memory as JSON bytes, each written through to SQLite first.

One thread uses a store. Every write raises the resource version by one, is committed, then recorded
in a bounded history and passed to the subscribers, in that order, so no subscriber sees what a
crash could take back. The history serves watches that start in the past and pages of a list that
must show one moment. What an object means is not known here.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from localkube import errors
from localkube.metadata import Object, find_controller_reference, is_terminating
from localkube.resource_table import Change, NamespaceCounts, Record, ResourceTable
from localkube.tallies import Tally, tally_object

__all__ = ["Change", "Record", "SchemaTooNew", "Store"]

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
MAX_OBJECT_BYTES = 8 << 20
"""Most bytes of one object; a body of the API has 3 MiB, and who owns its fields may take as much
again. Patches that add to an object would else make it so large that each request for it is slow.
"""
CHECKPOINT_EVERY = 2.0
CHECKPOINT_BYTES = 4 << 20
"""From which size the write-ahead log is folded into the database, every CHECKPOINT_EVERY seconds.

A thread of its own does it: the fsync takes tens of milliseconds, which no request should wait for.
"""
BACKSTOP_PAGES = 64_000
"""The pages (256 MiB) from which a writer folds the log itself.

The thread cannot fold a log that is written without a pause.
"""

FieldIndexer = Callable[[str, Object], Mapping[str, str]]
TallyFunction = Callable[[str, Object], Tally | None]


class Store:
    """Objects by resource key, namespace and name.

    `index_fields` gives the values that field selectors may ask for, `tally` what owners count an
    object by; each is called once per write.
    Raises SchemaTooNew when the file was written by a later localkube.
    """

    def __init__(
        self, path: Path, index_fields: FieldIndexer, tally: TallyFunction = tally_object
    ) -> None:
        self._index_fields = index_fields
        self._tally = tally
        self._tables: dict[str, ResourceTable] = {}
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

    def _get_table(self, key: str) -> ResourceTable:
        table = self._tables.get(key)
        if table is None:
            # History is not on disk: a watch from before this start gets a 410 and lists again.
            table = self._tables[key] = ResourceTable(oldest_version=self.rv)
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
            str((find_controller_reference(obj) or {}).get("uid") or ""),
            is_terminating(obj),
            tuple(metadata.get("finalizers") or ()),
            self._tally(key, obj),
        )

    # Reading

    def find(self, key: str, namespace: str, name: str) -> Record | None:
        return self._get_table(key).records.get((namespace, name))

    def list(self, key: str, namespace: str | None = None) -> Sequence[Record]:
        """Return all records of a resource, or of one namespace, ordered by namespace and name."""
        return self._get_table(key).list_records(namespace)

    def count(self, key: str, namespace: str) -> int:
        """Return how many objects of a resource a namespace has."""
        start, end = self._get_table(key).find_range(namespace)
        return end - start

    def count_terminating(self, key: str, namespace: str) -> int:
        """Return how many objects of a resource in a namespace are being deleted."""
        return self._get_counts(key, namespace).terminating

    def count_finalizers(self, key: str, namespace: str) -> Mapping[str, int]:
        """Return how many objects of a resource in a namespace have each finalizer."""
        return self._get_counts(key, namespace).finalizers

    def _get_counts(self, key: str, namespace: str) -> NamespaceCounts:
        return self._get_table(key).counts.get(namespace) or NamespaceCounts()

    def list_owned(self, key: str, uid: str) -> Sequence[Record]:
        """Return the records that `uid` owns, in no stated order."""
        return list(self.iterate_owned(key, uid))

    def iterate_owned(self, key: str, uid: str) -> Iterator[Record]:
        """Yield the records that `uid` owns; nothing may be written meanwhile."""
        table = self._get_table(key)
        owned = table.owned.get(uid)
        return (table.records[object_key] for object_key in (owned.keys if owned else ()))

    def count_controlled(self, key: str, uid: str) -> Mapping[Tally, int]:
        """Return how many of the objects that `uid` controls have each tally."""
        owned = self._get_table(key).owned.get(uid)
        return {} if owned is None else {t: len(keys) for t, keys in owned.by_tally.items()}

    def iterate_controlled(
        self, key: str, uid: str, wanted: Callable[[Tally], bool]
    ) -> Iterator[Record]:
        """Yield the records that `uid` controls and whose tally is wanted.

        Nothing may be written meanwhile.
        """
        table = self._get_table(key)
        owned = table.owned.get(uid)
        for tally, keys in owned.by_tally.items() if owned else ():
            if wanted(tally):
                yield from (table.records[object_key] for object_key in keys)

    def list_changes_since(self, key: str, rv: int) -> Sequence[Change]:
        """Return the changes of a resource after `rv`, oldest first.

        Raises ApiError 410 when the history no longer reaches back so far.
        """
        return self._get_table(key).list_changes_since(rv)

    def list_at_version(self, key: str, rv: int, namespace: str | None = None) -> Sequence[Record]:
        """Return all records of a resource, or of one namespace, as they were at `rv`, in order.

        Raises ApiError 410 when the history no longer reaches back so far.
        """
        return self._get_table(key).list_at_version(rv, namespace)

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

        Raises ApiError 413 for an object that has grown too large, 507 when the store or the disk
        is full.
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
            old_size = len(previous.raw) if previous else 0
            if len(raw) > max(MAX_OBJECT_BYTES, old_size):
                raise errors.object_too_large_error(len(raw), MAX_OBJECT_BYTES)
            self._check_bounds(0 if previous else 1, len(raw) - old_size)
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

    def __init__(self, stored_version: int, supported_version: int) -> None:
        super().__init__(
            f"the data was written by a newer localkube (schema {stored_version}, this one knows "
            f"{supported_version}): start that one, or use another --data"
        )
