"""`/healthz` and `/readyz`, for those who watch the processes."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from console import health
from console.models import ProcessFigures
from tests.cluster import ROOT
from tests.console_server import BOUND_TO_US
from tests.free_ports import pick_free_port
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
    answer = client.get("/readyz").content.decode()
    assert "degraded: Redis does not answer" in answer
    assert "Start Redis again" in answer


BEAT_SILENT = "degraded: beat has given no sign of life for more than a minute; "


@pytest.mark.django_db
@pytest.mark.parametrize("ages", [[], [3600], [3600, 70]], ids=["never", "ended", "hangs"])
def test_a_beat_that_is_silent_is_named_once_it_has_had_time_to_start(
    client: Client,
    settings: Settings,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    ages: list[float],
) -> None:
    settings.REDIS_URL = redis_url
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(health, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(health, "_readiness", health._Readiness())
    for age in ages:
        store_beat(age)
    assert client.get("/readyz").content == b"ready\n"
    clock.now += 60
    assert client.get("/readyz").content == b"ready\n"
    clock.now += 1
    answer = client.get("/readyz")
    assert answer.status_code == 200
    lines = answer.content.decode().splitlines()
    assert lines[0] == "ready"
    assert lines[1].startswith(BEAT_SILENT)
    assert "Read the log of beat" in lines[1]
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert b"degraded: Redis does not answer" in client.get("/readyz").content
    settings.REDIS_URL = redis_url
    assert client.get("/readyz").content == b"ready\n"
    clock.now += 61
    assert BEAT_SILENT.encode() in client.get("/readyz").content
    store_beat(20)
    assert client.get("/readyz").content == b"ready\n"


def store_beat(age: float) -> None:
    """Store the row of a beat that looked at its clock so many seconds ago."""
    ProcessFigures.objects.create(
        process_id=f"of-a-test-{age}",
        process="beat",
        stored_at=timezone.now() - timedelta(seconds=age),
        content=b"",
        step_times={"beat": time.time() - age},
    )


@pytest.mark.django_db
def test_a_database_with_outstanding_migrations_is_not_ready(client: Client) -> None:
    health._migrated_databases.clear()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'workloads'")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.content) == (503, b"the database waits for its migrations\n")


def test_a_web_process_tells_how_its_database_is(tmp_path: Path) -> None:
    port = pick_free_port()
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
