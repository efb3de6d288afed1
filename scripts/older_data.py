"""Makes tests/console/data/var-VERSION.sqlite3.gz: the database of a data directory as this commit
leaves it, with a bit of everything.

Later releases have to start on it (tests/console/test_older_data.py). Run it when a release is
made: python scripts/older_data.py VERSION
"""

# Settings are read when Django is imported, so where the data lies has to be said first.
# ruff: noqa: E402
import gzip
import os
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
KEPT = BASE / "tests" / "console" / "data"
DATA = Path(tempfile.mkdtemp())

sys.path.insert(0, str(BASE))
shutil.copy(KEPT / "keys.json", DATA)
for name in [name for name in os.environ if name.startswith("MUSTER_")]:
    del os.environ[name]
os.environ.update({"MUSTER_DATA_DIR": str(DATA), "DJANGO_SETTINGS_MODULE": "console.settings"})

import django

django.setup()

from django.core.management import call_command
from django.db import connection

from environments import builtin_assets
from tests.cast import a_spec, make_cast
from workloads import journal
from workloads.models import Workload


def fill() -> None:
    """People, projects, assets, and workloads in two states, made as the console makes them."""
    call_command("migrate", verbosity=0)
    cast = make_cast()
    builtin_assets.ensure_builtin_assets()
    for name in ("older-one", "older-two"):
        journal.create_workload(a_spec(cast.team_a, name), project=cast.team_a, user=cast.bob)
    journal.request_stop(Workload.objects.get(name="older-two").pk, cast.bob)
    connection.close()


def packed() -> bytes:
    """The database as one file."""
    file = DATA / "muster.sqlite3"
    database = sqlite3.connect(file)
    database.execute("PRAGMA journal_mode=DELETE")
    database.close()
    return gzip.compress(file.read_bytes(), mtime=0)


if __name__ == "__main__":
    fill()
    (KEPT / f"var-{sys.argv[1]}.sqlite3.gz").write_bytes(packed())
    shutil.rmtree(DATA)
