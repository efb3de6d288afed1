"""Record the database that this version leaves, with a bit of everything in it.

Later versions have to start on it (tests/console/test_recorded_databases.py). Run it once at each
stage, for SQLite and for PostgreSQL:

    python scripts/record_database.py VERSION
    .ci/with-postgres python scripts/record_database.py VERSION
"""

# Settings are read when Django is imported, so where the data lies has to be set first.
# ruff: noqa: E402
import gzip
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
RECORDS = BASE / "tests" / "console" / "data"
DATA = Path(tempfile.mkdtemp())
DATABASE_URL = os.environ.get("MUSTER_DATABASE_URL", "")

sys.path.insert(0, str(BASE))
shutil.copy(RECORDS / "keys.json", DATA)
for variable in [name for name in os.environ if name.startswith("MUSTER_")]:
    del os.environ[variable]
os.environ.update({"MUSTER_DATA_DIR": str(DATA), "DJANGO_SETTINGS_MODULE": "console.settings"})
if DATABASE_URL:
    os.environ["MUSTER_DATABASE_URL"] = DATABASE_URL

import django

django.setup()

from django.core.management import call_command
from django.db import connection

from environments import builtin_assets
from tests.cast import a_spec, make_cast
from workloads import journal
from workloads.models import Workload


def fill_database() -> None:
    """Create people, projects, assets, and workloads in two states, as the console makes them."""
    call_command("migrate", verbosity=0)
    cast = make_cast()
    builtin_assets.ensure_builtin_assets()
    for name in ("older-one", "older-two"):
        journal.create_workload(a_spec(cast.team_a, name), project=cast.team_a, user=cast.bob)
    journal.request_stop(Workload.objects.get(name="older-two").pk, cast.bob)
    connection.close()


def dump_sqlite() -> bytes:
    """Return the database as one file, without a journal beside it."""
    file = DATA / "muster.sqlite3"
    database = sqlite3.connect(file)
    database.execute("PRAGMA journal_mode=DELETE")
    database.close()
    return file.read_bytes()


def dump_postgres() -> bytes:
    """Return the database as SQL that any connection can run."""
    command = ["pg_dump", "--no-owner", "--no-privileges", "--inserts", "--dbname", DATABASE_URL]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # Lines with a backslash, comments and the dumper's own settings are for psql.
    skipped = ("\\", "--", "SET ", "SELECT pg_catalog.set_config")
    return "\n".join(line for line in text.splitlines() if not line.startswith(skipped)).encode()


def main(version: str) -> None:
    """Write the record of this version for the database at hand."""
    fill_database()
    ending, dump = (
        ("sql", dump_postgres())
        if connection.vendor == "postgresql"
        else ("sqlite3", dump_sqlite())
    )
    (RECORDS / f"var-{version}.{ending}.gz").write_bytes(gzip.compress(dump, mtime=0))
    shutil.rmtree(DATA)


if __name__ == "__main__":
    main(sys.argv[1])
