"""A turn at the journal: one transaction, one position, all writers one after the other."""

import contextlib
from collections.abc import Iterator

from django.db import transaction

from console import wake_ups
from workloads.models import Position


class JournalTransaction:
    """`position` is that of everything written in this turn. It is taken only if something is: see
    `changed`.
    """

    def __init__(self, position: int) -> None:
        self.position = position
        self.projects: set[int] = set()

    def mark_changed(self, project_id: int) -> None:
        """Something of this project is written in this turn."""
        self.projects.add(project_id)


@contextlib.contextmanager
def journal_transaction() -> Iterator[JournalTransaction]:
    """A transaction that nobody else's turn overlaps, so that positions are committed in their
    order. Keep it short.

    At its end the position is raised, and open pages are woken once it is committed; a turn that
    changed nothing leaves no trace.
    """
    with transaction.atomic():
        row, _ = Position.objects.select_for_update().get_or_create(pk=1)
        mine = JournalTransaction(row.value + 1)
        yield mine
        if mine.projects:
            Position.objects.filter(pk=1).update(value=mine.position)
            wake_ups.publish_wake_up(mine.projects, mine.position)
