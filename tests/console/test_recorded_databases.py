"""`make up` on the data directory of an older release: migrated, with everything that was in it."""

import gzip
import shutil
from pathlib import Path

import pytest

from tests.cast import PASSWORD
from tests.installation import Installation
from tests.rest import Program

KEPT = Path(__file__).parent / "data"
VERSIONS = sorted(file.name for file in KEPT.glob("var-*.sqlite3.gz"))
ASKED = """
from clusters.models import Cluster
from projects.models import AccessRule, User
here = Cluster.objects.get(name='here')
print(sorted(map(str, User.objects.all())), AccessRule.objects.count(), here.kubeconfig[:10])
"""


def test_there_is_an_older_release() -> None:
    assert VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_it_starts_on_what_an_older_release_left(tmp_path: Path, version: str) -> None:
    data = tmp_path / "var"
    data.mkdir(mode=0o700)
    (data / "muster.sqlite3").write_bytes(gzip.decompress((KEPT / version).read_bytes()))
    shutil.copy(KEPT / "keys.json", data)
    with Installation(data) as up:
        assert "Sign in as admin" not in up.said
        assert (
            up.manage("shell", "--no-imports", "-c", ASKED)
            == "['alice', 'bob', 'mallory', 'vera'] 3 apiVersion\n"
        )
        program = Program(up.url, PASSWORD, username="alice")
        assert set(program.listed()) == {"older-one", "older-two"}


def test_a_database_of_a_later_release_is_refused(tmp_path: Path) -> None:
    up = Installation(tmp_path / "var").migrated().start()
    later = (
        "from django.db.migrations.recorder import MigrationRecorder as R\nfrom django.db import "
        "connection as c\n"
    )
    up.manage(
        "shell", "--no-imports", "-c", f"{later}R(c).record_applied('workloads', '9999_later')"
    )
    up.stop()
    said = up.refused()
    assert "The database is of a later release: it has workloads.9999_later" in said
    assert "Traceback" not in said
    assert up.running() == []
