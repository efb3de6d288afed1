"""Ended logs in an object store: moved there whole, read by ranges, removed with their rows. The
store is a real server on loopback.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.files.storage import storages

from projects.models import User
from tests.cast import Cast
from tests.workloads import pods
from tests.workloads.log_rows import a_log, numbered, texts, window
from workloads import logbook
from workloads.logbook import places, storing, windows
from workloads.logbook.reading import opened
from workloads.models import Log, Workload

boto3 = pytest.importorskip("boto3", reason="requirements-s3.txt is not installed")
server = pytest.importorskip("moto.server", reason="moto, flask and flask-cors are not installed")


@pytest.fixture
def store(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "tests-only")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    bucket = boto3.resource("s3").Bucket("logs-of-tests")
    bucket.create()
    options = {"bucket_name": "logs-of-tests", "location": "muster", "file_overwrite": True}
    settings.STORAGES = settings.STORAGES | {
        "logs": {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": options}
    }
    yield bucket
    bucket.objects.all().delete()
    storages["logs"].connection.meta.client.close()
    running.stop()


@pytest.fixture
def workload(cast: Cast) -> Workload:
    return pods.a_workload(cast.team_a)


def names(bucket: Any) -> list[str]:
    return sorted(each.key for each in bucket.objects.all())


def test_an_ended_log_is_moved_and_one_that_grows_is_not(store: Any, workload: Workload) -> None:
    done, growing = (
        a_log(workload, numbered(3)),
        a_log(workload, numbered(3), rank=1, state=Log.State.CAPTURING),
    )
    assert storing.sweep() == 1
    assert names(store) == [f"muster/{done.path.removesuffix('log')}idx", f"muster/{done.path}"]
    assert not places.local(done.path).exists()
    assert places.local(growing.path).exists()
    assert logbook.tail(done, 16 << 10).endswith(b" line 2\n")


def test_a_stored_log_is_read_by_ranges(store: Any, workload: Workload) -> None:
    log = a_log(workload, [b"x" * 1000 for _ in range(5000)])
    storing.sweep()
    with opened(log) as here:
        assert len(windows.before([here], windows.ends([here])).lines) > 100
        assert isinstance(here.source, storing.Stored)
        assert here.source.taken < 1 << 20 < log.size


def test_the_page_shows_a_stored_log_like_any_other(
    client: Any, store: Any, workload: Workload
) -> None:
    log = a_log(workload, numbered(700))
    storing.sweep()
    client.force_login(User.objects.get(username="bob"))
    _, items = window(client, workload, log=log.pk)
    assert texts(items)[-1] == "line 699"


def test_a_stored_log_goes_when_it_is_too_old(
    store: Any, workload: Workload, settings: Any
) -> None:
    log = a_log(workload, numbered(3))
    storing.sweep()
    Log.objects.filter(pk=log.pk).update(ended_at="2020-01-01T00:00:00Z")
    assert logbook.retain() == 1
    assert names(store) == []


def test_the_store_holds_nothing_of_a_workload_that_is_no_more(
    store: Any, cast: Cast, workload: Workload
) -> None:
    a_log(workload, numbered(3))
    other = a_log(pods.a_workload(cast.team_b), numbered(3))
    storing.sweep()
    workload.delete()
    logbook.retain()
    assert names(store) == [f"muster/{other.path.removesuffix('log')}idx", f"muster/{other.path}"]
