"""A migrated database with nothing in it, made once by each test process: a server that starts on a
copy has nothing to migrate.

That an installation migrates by itself is what the tests of `make up` show, which start without.
"""

import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.cluster import ROOT

NAME = "muster.sqlite3"


def put_into(data: Path) -> None:
    """See that the data directory has a database."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (data / NAME).exists():
        (data / NAME).touch(mode=0o600)
        (data / NAME).write_bytes(_migrated())


def run(data: Path, *arguments: str) -> None:
    """Run Python with these arguments and this data directory, on the database in it. Fails with
    what it said.
    """
    inherited = {name: value for name, value in os.environ.items() if name != "MUSTER_DATABASE_URL"}
    environment = inherited | {
        "MUSTER_DATA_DIR": str(data),
        "DJANGO_SETTINGS_MODULE": "console.settings",
    }
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


@cache
def _migrated() -> bytes:
    with tempfile.TemporaryDirectory(prefix="muster-migrated-") as place:
        run(Path(place), "manage.py", "migrate", "--verbosity", "0")
        assert not (Path(place) / f"{NAME}-wal").exists(), (
            "the database is not whole without its journal"
        )
        return (Path(place) / NAME).read_bytes()
