"""Database triggers that make the audit log append-only.

No entry is changed, and only retention deletes old ones. Both databases do the same: UPDATE is
always refused; DELETE is permitted in a transaction inside `allow_deletion`, for entries older than
a day. PostgreSQL refuses TRUNCATE too. A migration that rebuilds the table must call
`create_triggers` again.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

_SQLITE_CREATE = (
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
_SQLITE_DROP = (
    "DROP TRIGGER IF EXISTS muster_audit_no_replace",
    "DROP TRIGGER IF EXISTS muster_audit_no_update",
    "DROP TRIGGER IF EXISTS muster_audit_no_delete",
    "DROP TABLE IF EXISTS muster_audit_letting_go",
)
_POSTGRES_CREATE = (
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
_POSTGRES_DROP = (
    "DROP TRIGGER IF EXISTS muster_audit_no_change ON projects_auditentry",
    "DROP TRIGGER IF EXISTS muster_audit_no_truncate ON projects_auditentry",
    "DROP FUNCTION IF EXISTS muster_audit_stays()",
)

_SQLITE_ALLOW = (
    "INSERT INTO muster_audit_letting_go VALUES (1)",
    "DELETE FROM muster_audit_letting_go",
)
_POSTGRES_ALLOW = (
    "SET LOCAL muster.audit_letting_go = 'on'",
    "SET LOCAL muster.audit_letting_go = 'off'",
)


def create_triggers(connection: BaseDatabaseWrapper) -> None:
    """Create the triggers, replacing those that exist."""
    drop_triggers(connection)
    _execute(connection, _POSTGRES_CREATE if connection.vendor == "postgresql" else _SQLITE_CREATE)


def drop_triggers(connection: BaseDatabaseWrapper) -> None:
    """Drop the triggers, for whatever empties the database or drops the table."""
    _execute(connection, _POSTGRES_DROP if connection.vendor == "postgresql" else _SQLITE_DROP)


@contextmanager
def allow_deletion(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Open a transaction in which entries older than a day may be deleted."""
    begin, end = _POSTGRES_ALLOW if connection.vendor == "postgresql" else _SQLITE_ALLOW
    with transaction.atomic(using=connection.alias):
        _execute(connection, (begin,))
        yield
        _execute(connection, (end,))


def _execute(connection: BaseDatabaseWrapper, statements: tuple[str, ...]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
