"""The journal's transaction: one position each, all writers one after the other."""

import contextlib
from collections.abc import Iterator

from django.db import transaction

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
        row, _ = Position.objects.select_for_update().get_or_create(pk=1)
        journal_tx = JournalTransaction(row.value + 1)
        yield journal_tx
        if journal_tx.projects:
            Position.objects.filter(pk=1).update(value=journal_tx.position)
            wake_ups.publish_wake_up(journal_tx.projects, journal_tx.position)
