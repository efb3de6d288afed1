"""The triggers that keep the audit log as it was written: no entry is changed, and none is deleted
but by the retention, when it is old.

Both engines do the same: an UPDATE is refused always; a DELETE is let through in a transaction that
has said `letting_go`, and then for entries older than a day only. PostgreSQL refuses TRUNCATE too.
A migration that rebuilds the table has to `put` them there again.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

_SQLITE_ON = (
    # A row in it says that old entries may go; it is never committed.
    "CREATE TABLE IF NOT EXISTS muster_audit_letting_go (one INTEGER)",
    """CREATE TRIGGER muster_audit_no_update BEFORE UPDATE ON projects_auditentry
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
    """CREATE TRIGGER muster_audit_no_delete BEFORE DELETE ON projects_auditentry
    WHEN NOT EXISTS (SELECT 1 FROM muster_audit_letting_go)
      OR datetime(OLD.at) > datetime('now', '-1 day')
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
    # INSERT OR REPLACE deletes without asking a trigger.
    """CREATE TRIGGER muster_audit_no_replace BEFORE INSERT ON projects_auditentry
    WHEN EXISTS (SELECT 1 FROM projects_auditentry WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
)
_SQLITE_OFF = (
    "DROP TRIGGER IF EXISTS muster_audit_no_replace",
    "DROP TRIGGER IF EXISTS muster_audit_no_update",
    "DROP TRIGGER IF EXISTS muster_audit_no_delete",
    "DROP TABLE IF EXISTS muster_audit_letting_go",
)
_POSTGRES_ON = (
    """CREATE OR REPLACE FUNCTION muster_audit_stays() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_OP = 'DELETE' THEN
        IF current_setting('muster.audit_letting_go', true) = 'on'
          AND OLD.at < now() - interval '1 day' THEN
          RETURN OLD;
        END IF;
      END IF;
      RAISE EXCEPTION 'the audit log is append-only'
        USING ERRCODE = 'integrity_constraint_violation';
    END $$""",
    """CREATE TRIGGER muster_audit_no_change BEFORE UPDATE OR DELETE ON projects_auditentry
    FOR EACH ROW EXECUTE FUNCTION muster_audit_stays()""",
    """CREATE TRIGGER muster_audit_no_truncate BEFORE TRUNCATE ON projects_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION muster_audit_stays()""",
)
_POSTGRES_OFF = (
    "DROP TRIGGER IF EXISTS muster_audit_no_change ON projects_auditentry",
    "DROP TRIGGER IF EXISTS muster_audit_no_truncate ON projects_auditentry",
    "DROP FUNCTION IF EXISTS muster_audit_stays()",
)

_SQLITE_SWITCHED = (
    "INSERT INTO muster_audit_letting_go VALUES (1)",
    "DELETE FROM muster_audit_letting_go",
)
_POSTGRES_SWITCHED = (
    "SET LOCAL muster.audit_letting_go = 'on'",
    "SET LOCAL muster.audit_letting_go = 'off'",
)


def put(connection: BaseDatabaseWrapper) -> None:
    """Set the triggers up, whether they are there or not."""
    take(connection)
    _run(connection, _POSTGRES_ON if connection.vendor == "postgresql" else _SQLITE_ON)


def take(connection: BaseDatabaseWrapper) -> None:
    """Take them away: for what empties the whole database, or leaves it without the table."""
    _run(connection, _POSTGRES_OFF if connection.vendor == "postgresql" else _SQLITE_OFF)


@contextmanager
def letting_go(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """A transaction in which entries older than a day may be deleted."""
    begin, end = _POSTGRES_SWITCHED if connection.vendor == "postgresql" else _SQLITE_SWITCHED
    with transaction.atomic(using=connection.alias):
        _run(connection, (begin,))
        yield
        _run(connection, (end,))


def _run(connection: BaseDatabaseWrapper, statements: tuple[str, ...]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
