"""`manage.py flush` empties every table, the audit log too.

Whoever has the database asked for it, and Django asks for confirmation.
"""

from typing import Any

from django.core.management.commands import flush
from django.db import connections

from projects import append_only
from projects.models import AuditEntry


class Command(flush.Command):
    def handle(self, **options: Any) -> None:
        """Raises CommandError as Django's own does."""
        connection = connections[options["database"]]
        is_there = AuditEntry._meta.db_table in connection.introspection.table_names()
        if is_there:
            append_only.drop_triggers(connection)
        try:
            super().handle(**options)
        finally:
            if is_there:
                append_only.create_triggers(connection)
