"""Keeps two people from getting names that differ by case alone."""

from django.db import IntegrityError, connection

from projects.models import User

_LOCK_KEY = 7_165_328_901
"""Which of PostgreSQL's advisory locks guards the names of users."""


def hold_name(name: str) -> None:
    """Keep everybody else from taking a name until the transaction ends.

    Raises IntegrityError where a user has it, in capitals or not, as the table does for equal
    names. SQLite has one writer at a time anyway.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK_KEY])
    if User.objects.filter(username__iexact=name).exists():
        raise IntegrityError(f"the user name {name} is taken")
