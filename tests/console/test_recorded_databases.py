"""`make up` on the recorded database of each stage: migrated, with everything that was in it."""

import gzip
import os
import shutil
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.db import connection

from tests import migrated
from tests.cast import PASSWORD
from tests.installation import Installation
from tests.rest import Program

RECORDS = Path(__file__).parent / "data"
SQLITE_RECORDS = sorted(file.name for file in RECORDS.glob("var-*.sqlite3.gz"))
POSTGRES_RECORDS = sorted(file.name for file in RECORDS.glob("var-*.sql.gz"))
LIST_ROWS = """
from clusters.models import Cluster
from projects.models import AccessRule, User
from workloads.models import Workload
here = Cluster.objects.get(name='here')
print(sorted(map(str, User.objects.all())), AccessRule.objects.count(), here.kubeconfig[:10])
print(sorted(Workload.objects.values_list('name', flat=True)))
"""
ROWS = """\
['alice', 'bob', 'mallory', 'vera'] 3 apiVersion
['older-one', 'older-two']
"""


def _read_record(name: str) -> bytes:
    return gzip.decompress((RECORDS / name).read_bytes())


def _unpack_sqlite(data: Path, name: str) -> Path:
    data.mkdir(mode=0o700)
    (data / "muster.sqlite3").write_bytes(_read_record(name))
    shutil.copy(RECORDS / "keys.json", data)
    return data


def test_each_stage_is_recorded_for_both_databases() -> None:
    stages = [
        {name.removesuffix(f".{end}.gz") for name in names}
        for end, names in (("sqlite3", SQLITE_RECORDS), ("sql", POSTGRES_RECORDS))
    ]
    assert stages[0] == stages[1] != set()


@pytest.mark.parametrize("record", SQLITE_RECORDS)
def test_it_starts_on_the_database_of_an_earlier_stage(tmp_path: Path, record: str) -> None:
    with Installation(_unpack_sqlite(tmp_path / "var", record)) as up:
        assert "Sign in as admin" not in up.output
        assert up.manage("shell", "--no-imports", "-c", LIST_ROWS) == ROWS
        program = Program(up.url, PASSWORD, username="alice")
        assert set(program.listed()) == {"older-one", "older-two"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("record", POSTGRES_RECORDS)
def test_postgresql_migrates_the_database_of_an_earlier_stage(tmp_path: Path, record: str) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("the database of these tests is not PostgreSQL")
    name = "muster_recorded"
    with connection.cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        cursor.execute(f'CREATE DATABASE "{name}"')
    url = urlunsplit(urlsplit(os.environ["MUSTER_DATABASE_URL"])._replace(path=f"/{name}"))
    shutil.copy(RECORDS / "keys.json", tmp_path)
    script = tmp_path / "record.sql"
    script.write_bytes(_read_record(record))
    load = (
        "import sys, django; django.setup()\n"
        "from django.db import connection\n"
        "with connection.cursor() as cursor: cursor.execute(open(sys.argv[1]).read())\n"
    )
    try:
        migrated.run_python(tmp_path, "-c", load, str(script), database_url=url)
        migrated.run_python(tmp_path, "manage.py", "prepare", database_url=url)
        rows = migrated.run_python(
            tmp_path, "manage.py", "shell", "--no-imports", "-c", LIST_ROWS, database_url=url
        )
        assert rows == ROWS
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def test_a_database_from_before_the_first_release_is_refused(tmp_path: Path) -> None:
    up = Installation(_unpack_sqlite(tmp_path / "var", "unreleased.sqlite3.gz"))
    refusal = up.refused()
    assert "was made by a version from before the first release" in refusal
    assert "Move it away" in refusal
    assert "Traceback" not in refusal
    assert up.running() == []


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
    refusal = up.refused()
    assert "The database is of a later release: it has workloads.9999_later" in refusal
    assert "Traceback" not in refusal
    assert up.running() == []
