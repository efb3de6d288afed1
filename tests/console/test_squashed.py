"""A new installation has the tables of one that came here release by release: squashed migrations
against what they replace.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from tests import migrated

STEP_BY_STEP = """
import django
django.setup()
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

class StepByStep(MigrationLoader):
    def load_disk(self):
        super().load_disk()
        self.disk_migrations = {
            key: each for key, each in self.disk_migrations.items() if not each.replaces
        }

executor = MigrationExecutor(connection)
executor.loader = StepByStep(connection)
executor.migrate(executor.loader.graph.leaf_nodes())
"""


def test_squashed_migrations_make_what_they_replace(tmp_path: Path) -> None:
    steps, squashed = tmp_path / "steps", tmp_path / "squashed"
    steps.mkdir()
    migrated.run(steps, "-c", STEP_BY_STEP)
    migrated.put_into(squashed)
    assert len(_tables(steps)) > 500
    assert _tables(steps) == _tables(squashed)
    assert _applied(steps) < _applied(squashed), "nothing was squashed"
    # Whoever came step by step has nothing left to do.
    migrated.run(steps, "manage.py", "migrate", "--check")


def _tables(data: Path) -> list[str]:
    """What every table has: columns, rules, indexes and triggers, whatever their order."""
    with closing(sqlite3.connect(data / migrated.NAME)) as opened:
        found = opened.execute(
            "SELECT type, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"
        ).fetchall()
    return sorted(
        f"{kind} {table}: {part}"
        for kind, table, sql in found
        for part in (_parts(sql) if kind == "table" else [sql])
    )


def _parts(sql: str) -> list[str]:
    """The columns and rules of a CREATE TABLE: what stands between the commas outside of further
    brackets.
    """
    parts, depth = [""], 0
    for letter in sql[sql.index("(") + 1 : sql.rindex(")")]:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _applied(data: Path) -> set[tuple[str, str]]:
    with closing(sqlite3.connect(data / migrated.NAME)) as opened:
        return set(opened.execute("SELECT app, name FROM django_migrations").fetchall())
