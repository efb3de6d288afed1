"""Backup and restore, as docs/production.md says, on a database that was changed in between."""

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from cryptography.fernet import Fernet

from tests.cast import NOWHERE
from tests.cluster import ROOT
from tests.deploy.documented import blocks
from tests.installation import clean_environment

pytestmark = pytest.mark.timeout(900)

POSTGRES = os.environ.get("MUSTER_DATABASE_URL", "")
SHOWN = (
    "from clusters.models import Cluster\nfor each in Cluster.objects.all():\n    print(each.name, "
    "len(each.kubeconfig))"
)


class Console:
    """An installation of which only the database, the keys and the logs are of interest."""

    def __init__(self, data: Path, database_url: str = "") -> None:
        self.data, self.backup = data, data.parent / "backup"
        keys = {
            "secret_key": secrets.token_urlsafe(64),
            "encryption_keys": Fernet.generate_key().decode(),
        }
        self.environment = clean_environment(data_dir=data, debug=1, **keys) | {
            "BACKUP": str(self.backup),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "DJANGO_SETTINGS_MODULE": "console.settings",
        }
        if database_url:
            self.environment["MUSTER_DATABASE_URL"] = database_url
        (data / "logs").mkdir(parents=True)

    def types(self, script: str) -> str:
        """What a shell prints that is given these lines; fails where one of them fails."""
        script = f"set -euo pipefail\n{script}"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=360,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def python(self, code: str) -> str:
        return self.types(f"python - <<'END'\nimport django\ndjango.setup()\n{code}\nEND")

    def adds(self, name: str) -> None:
        self.python(
            f"from clusters.models import Cluster\nCluster.objects.create(name={name!r}, "
            f"server='s', kubeconfig={NOWHERE!r})"
        )


def changed_and_restored(console: Console, backup: str, restore: str) -> None:
    """A cluster before the backup; after it that one goes and another comes; and after the restore
    all is as before.
    """
    console.types("python manage.py prepare")
    console.adds("before")
    log = console.data / "logs" / "a.log"
    log.write_text("a line\n")
    console.types(backup)
    console.python("from clusters.models import Cluster\nCluster.objects.all().delete()")
    console.adds("after")
    log.unlink()
    console.types(restore)
    assert console.python(SHOWN) == f"before {len(NOWHERE)}\n"


def test_a_backup_of_sqlite_brings_everything_back(tmp_path: Path) -> None:
    console = Console(tmp_path / "var")
    backup, restore = blocks("### SQLite")
    changed_and_restored(console, backup, restore)
    assert (console.data / "logs" / "a.log").read_text() == "a line\n"


@pytest.fixture
def database() -> Iterator[str]:
    """The address of a database of its own, beside the one that the tests run on."""
    name = f"backup_{secrets.token_hex(4)}"
    subprocess.run(["psql", POSTGRES, "--quiet", "-c", f"CREATE DATABASE {name}"], check=True)
    yield urlunsplit(urlsplit(POSTGRES)._replace(path=f"/{name}"))
    subprocess.run(
        ["psql", POSTGRES, "--quiet", "-c", f"DROP DATABASE {name} WITH (FORCE)"], check=True
    )


@pytest.mark.skipif(
    not POSTGRES or shutil.which("pg_dump") is None,
    reason="the tests do not run on PostgreSQL, or its tools are not here",
)
def test_a_backup_of_postgresql_brings_everything_back(tmp_path: Path, database: str) -> None:
    backup, restore = blocks("### PostgreSQL")
    changed_and_restored(Console(tmp_path / "var", database), backup, restore)
