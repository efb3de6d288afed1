"""The journal's transaction: one position each, all writers one after the other."""

import contextlib
from collections.abc import Iterator

from django.db import connection, transaction

from console import wake_ups
from workloads.models import Position


class JournalTransaction:
    """One transaction of the journal.

    `position` belongs to everything that it writes. The stored position is raised only if
    `mark_changed` was called.
    """

    def __init__(self, position: int) -> None:
        self.position = position
        self.projects: set[int] = set()

    def mark_changed(self, project_id: int) -> None:
        """Record that a row of this project is written in this transaction."""
        self.projects.add(project_id)


@contextlib.contextmanager
def journal_transaction() -> Iterator[JournalTransaction]:
    """Open a transaction that no other writer of the journal overlaps.

    Positions are therefore committed in their order. Keep it short: all other writers wait.

    On exit the position is raised, and open pages are woken after the commit. A transaction that
    changed nothing leaves no trace.
    """
    with transaction.atomic():
        # This row's lock lets writers through one by one. Without it position 8 could be committed
        # before 7, and a page that has read up to 8 would never see 7. SQLite has no row locks:
        # there transactions are IMMEDIATE (console/settings.py), with the same effect.
        journal_tx = JournalTransaction(_lock_position() + 1)
        yield journal_tx
        if journal_tx.projects:
            with connection.cursor() as cursor:
                cursor.execute(_UPDATE_POSITION, [journal_tx.position])
            wake_ups.publish_wake_up(journal_tx.projects, journal_tx.position)


# Written here because every change makes them: Django takes longer to write them than the database
# to answer.
_SELECT_POSITION = "SELECT value FROM workloads_position WHERE id = 1"
_UPDATE_POSITION = "UPDATE workloads_position SET value = %s WHERE id = 1"


def _lock_position() -> int:
    """Return the position, with its row locked until the transaction ends."""
    lock = " FOR UPDATE" if connection.features.has_select_for_update else ""
    with connection.cursor() as cursor:
        cursor.execute(_SELECT_POSITION + lock)
        position_row = cursor.fetchone()
    if position_row is None:
        row, _ = Position.objects.select_for_update().get_or_create(pk=1)
        return row.value
    return int(position_row[0])
