"""`/healthz` and `/readyz`, for those who watch the processes."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client

from console import health, ports
from tests.cluster import ROOT
from tests.console_server import BOUND_TO_US
from tests.installation import clean_environment, eventually

KEYS = {
    "secret_key": "only-to-test-with-and-long-enough",
    "encryption_keys": "dGVzdHMtb25seS10ZXN0cy1vbmx5LXRlc3RzLW9ubHk=",
}


def fetch_url(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=90) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


@pytest.mark.django_db
def test_both_answer_without_signing_in(client: Client) -> None:
    assert client.get("/healthz").content == b"ok\n"
    answer = client.get("/readyz")
    assert (answer.status_code, answer.content.splitlines()[0]) == (200, b"ready")


@pytest.mark.django_db
def test_a_broker_that_is_away_is_told_and_is_no_reason(client: Client) -> None:
    assert b"degraded: Redis does not answer" in client.get("/readyz").content


@pytest.mark.django_db
def test_a_database_with_outstanding_migrations_is_not_ready(client: Client) -> None:
    health._migrated_databases.clear()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'workloads'")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.content) == (503, b"the database waits for its migrations\n")


def test_a_web_process_tells_how_its_database_is(tmp_path: Path) -> None:
    port = ports.pick_free_port()
    environment = clean_environment(
        data_dir=tmp_path, port=port, debug=1, redis_url="redis://127.0.0.1:1/0", **KEYS
    )
    command = [sys.executable, "-c", BOUND_TO_US, str(os.getpid()), "-m", "console", "web"]
    with (
        (tmp_path / "web.log").open("wb") as log,
        subprocess.Popen(
            command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=log
        ) as web,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            eventually(lambda: fetch_url(f"{url}/healthz")[0] == 200)
            for _ in range(5):
                waiting = (503, "the database waits for its migrations\n")
                assert fetch_url(f"{url}/readyz") == waiting
            lines = (tmp_path / "web.log").read_text()
            assert lines.count("waits for its migrations") == 1
            assert "Service Unavailable" not in lines
            assert "ERROR" not in lines
            (tmp_path / "muster.sqlite3").write_bytes(b"this is no database " * 1000)
            assert fetch_url(f"{url}/readyz") == (503, "the database does not answer\n")
            assert fetch_url(f"{url}/healthz") == (200, "ok\n")
        finally:
            web.terminate()
