"""A migrated database with nothing in it, made once for all test processes: a server that starts on
a copy has nothing to migrate.

That an installation migrates by itself is what the tests of `make up` show, which start without.
"""

import fcntl
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.cluster import ROOT

NAME = "muster.sqlite3"
SHARED_DIR = "MUSTER_TESTS_SHARED_DIR"
"""The variable that names the directory in which test processes share what one of them made."""


def provide_database(data: Path) -> None:
    """Put an empty migrated database into the data directory, unless it has one."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (data / NAME).exists():
        copy_database(data / NAME)


def copy_database(path: Path) -> None:
    """Write an empty migrated database to this file, for this user alone."""
    path.touch(mode=0o600)
    path.write_bytes(_build_database())


def run_python(data: Path, *arguments: str, database_url: str = "") -> str:
    """Run Python with these arguments on the data directory's database, or the one at the URL.

    Return what it printed; fail with that where it fails.
    """
    # A recorded database comes with the keys that its secrets were encrypted with.
    replaced = {"MUSTER_DATABASE_URL"}
    if (data / "keys.json").exists():
        replaced |= {"MUSTER_SECRET_KEY", "MUSTER_ENCRYPTION_KEYS"}
    inherited = {name: value for name, value in os.environ.items() if name not in replaced}
    environment = inherited | {
        "MUSTER_DATA_DIR": str(data),
        "DJANGO_SETTINGS_MODULE": "console.settings",
    }
    if database_url:
        environment["MUSTER_DATABASE_URL"] = database_url
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


@cache
def _build_database() -> bytes:
    if SHARED_DIR not in os.environ:
        # A benchmark is a single process.
        return _migrate()
    shared = Path(os.environ[SHARED_DIR])
    with (shared / "migrated.lock").open("w") as lock:
        # Whoever comes first migrates, and the other test processes wait for it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = shared / f"migrated.{NAME}"
        if not made.exists():
            made.write_bytes(_migrate())
        return made.read_bytes()


def _migrate() -> bytes:
    with tempfile.TemporaryDirectory(prefix="muster-migrated-") as folder:
        run_python(Path(folder), "manage.py", "migrate", "--verbosity", "0")
        assert not (Path(folder) / f"{NAME}-wal").exists(), (
            "the database is not whole without its journal"
        )
        return (Path(folder) / NAME).read_bytes()
