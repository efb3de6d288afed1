"""A watch over a piece of work: whether it may have committed anything to the database."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction

_CHANGES_NOTHING = frozenset({"SELECT", "SAVEPOINT", "RELEASE", "ROLLBACK", "BEGIN"})


class CommitWatch:
    """What became of the statements that write."""

    def __init__(self) -> None:
        self._has_written = False
        self._has_committed = False

    @property
    def may_have_committed(self) -> bool:
        """Tell whether something was committed, or nobody can know it."""
        # Whose connection broke may have lost the answer to a COMMIT.
        return self._has_committed or (self._has_written and not connection.is_usable())

    def run_statement(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        """Execute a statement, as a wrapper of Django's database connection."""
        if str(sql).lstrip().partition(" ")[0].upper() in _CHANGES_NOTHING:
            return execute(sql, params, many, context)
        self._has_written = True
        # Never called where the transaction, or the savepoint, is rolled back.
        if connection.in_atomic_block:
            transaction.on_commit(self._note_commit)
            return execute(sql, params, many, context)
        result = execute(sql, params, many, context)
        self._note_commit()
        return result

    def _note_commit(self) -> None:
        self._has_committed = True


@contextmanager
def watch_commits() -> Iterator[CommitWatch]:
    """Watch what this thread commits within the block."""
    watch = CommitWatch()
    with connection.execute_wrapper(watch.run_statement):
        yield watch
