"""Django's SQLite, whose connections are kept when a request ends and given to the next one, in whichever thread that runs.

Opening one costs as much as a small page: the schema is read, every statement is prepared anew, and who closes the last one files the
whole journal into the database. Django keeps a connection for the thread that made it, and each request has a thread of its own.
"""

import atexit
import os
import sqlite3
from collections import defaultdict, deque
from typing import Any

from django.db.backends.sqlite3 import base

MOST = 8
"""Connections to one file that are kept while nobody uses them."""

_kept: defaultdict[tuple[int, str], deque[sqlite3.Connection]] = defaultdict(deque)
"""Those that nobody uses, by process and file: none may be used on the other side of a fork."""


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> sqlite3.Connection:
        """One that is kept, or a new one."""
        try:
            return self._shelf.pop()
        except IndexError:
            made: sqlite3.Connection = super().get_new_connection(conn_params)
            return made

    def is_usable(self) -> bool:
        """Whether nothing went wrong: SQLite cannot be asked, and what had an error is better opened anew."""
        return not self.errors_occurred

    def _close(self) -> None:
        if self.connection is None:
            return
        with self.wrap_database_errors:
            if self.connection.in_transaction:
                self.connection.rollback()
            if self.errors_occurred or len(self._shelf) >= MOST:
                self.connection.close()
            else:
                self._shelf.append(self.connection)

    @property
    def _shelf(self) -> deque[sqlite3.Connection]:
        return _kept[os.getpid(), str(self.settings_dict["NAME"])]


@atexit.register
def _close_all() -> None:
    for (process, _), shelf in _kept.items():
        while shelf and process == os.getpid():
            shelf.pop().close()
