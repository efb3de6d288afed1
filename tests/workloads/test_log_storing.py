"""Ended logs in an object store: moved there whole, read by ranges, removed with their rows. The
store is a real server on loopback.
"""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.files.storage import storages
from django.utils import timezone

from console import log_storage
from projects.models import User
from tests.cast import Cast, make_cast
from tests.clusters.kube.faults import Exchange, FaultServer
from tests.workloads import pods
from tests.workloads.log_rows import a_log, number_lines, texts, window
from workloads import logbook, tasks
from workloads.logbook import log_paths, object_store, windows
from workloads.logbook.log_files import open_log
from workloads.models import Log, Workload

boto3 = pytest.importorskip("boto3", reason="requirements-s3.txt is not installed")
boto_errors = pytest.importorskip("botocore.exceptions", reason="boto3 is not installed")
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
    settings.STORAGES = settings.STORAGES | {
        "logs": log_storage.describe_log_storage("s3://logs-of-tests/muster/")
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
        a_log(workload, number_lines(3)),
        a_log(workload, number_lines(3), rank=1, state=Log.State.CAPTURING),
    )
    assert object_store.move_ended_logs() == 1
    assert names(store) == [f"muster/{done.path.removesuffix('log')}idx", f"muster/{done.path}"]
    assert not log_paths.local_path(done.path).exists()
    assert log_paths.local_path(growing.path).exists()
    assert logbook.read_tail(done, 16 << 10).endswith(b" line 2\n")


def test_a_stored_log_is_read_by_ranges(store: Any, workload: Workload) -> None:
    log = a_log(workload, [b"x" * 1000 for _ in range(5000)])
    object_store.move_ended_logs()
    with open_log(log) as here:
        assert len(windows.window_before([here], windows.end_cursor([here])).lines) > 100
        assert isinstance(here.source, object_store.StoredObject)
        assert here.source.bytes_read < 1 << 20 < log.size


def test_the_page_shows_a_stored_log_like_any_other(
    client: Any, store: Any, workload: Workload
) -> None:
    log = a_log(workload, number_lines(700))
    object_store.move_ended_logs()
    client.force_login(User.objects.get(username="bob"))
    _, items = window(client, workload, log=log.pk)
    assert texts(items)[-1] == "line 699"


def test_a_stored_log_goes_when_it_is_too_old(
    store: Any, workload: Workload, settings: Any
) -> None:
    log = a_log(workload, number_lines(3))
    object_store.move_ended_logs()
    Log.objects.filter(pk=log.pk).update(ended_at="2020-01-01T00:00:00Z")
    assert logbook.remove_old_logs() == 1
    assert names(store) == []


def test_the_store_holds_nothing_of_a_workload_that_is_no_more(
    store: Any, cast: Cast, workload: Workload
) -> None:
    a_log(workload, number_lines(3))
    other = a_log(pods.a_workload(cast.team_b), number_lines(3))
    object_store.move_ended_logs()
    workload.delete()
    logbook.remove_old_logs()
    assert names(store) == [f"muster/{other.path.removesuffix('log')}idx", f"muster/{other.path}"]


def test_one_log_that_cannot_be_moved_keeps_no_other_here(store: Any, workload: Workload) -> None:
    logs = sorted(
        (a_log(workload, number_lines(3), rank=rank) for rank in range(2)),
        key=lambda log: log.path,
    )
    broken = log_paths.local_path(logs[0].path)
    broken.unlink()
    broken.mkdir()
    assert object_store.move_ended_logs() == 1
    assert f"muster/{logs[1].path}" in names(store)
    released = pods.a_workload(workload.project, "released")
    Workload.objects.filter(pk=released.pk).update(
        released_at=timezone.now() - timedelta(days=9_999)
    )
    tasks.retain()
    assert not Workload.objects.filter(pk=released.pk).exists()


def test_a_store_that_is_away_is_not_asked_for_each_log(
    store: Any, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in range(6):
        a_log(workload, number_lines(3), rank=rank)
    asked: list[Log] = []

    def fail(log: Log) -> bool:
        asked.append(log)
        raise ConnectionError

    monkeypatch.setattr(object_store, "move_log", fail)
    assert object_store.move_ended_logs() == 0
    assert len(asked) == object_store.MOST_FAILURES


def test_a_store_that_does_not_answer_is_given_up_soon(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tests-only")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tests-only")
    monkeypatch.setattr(log_storage, "READ_SECONDS", 0.2)
    with FaultServer(Exchange.silence) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.port}")
        logs = log_storage.describe_log_storage("s3://logs-of-tests")
        settings.STORAGES = settings.STORAGES | {"logs": logs}
        with pytest.raises(boto_errors.ReadTimeoutError):
            object_store.has_file("a.log")
        storages["logs"].connection.meta.client.close()
        assert len(silent.requests) == log_storage.ATTEMPTS


@pytest.mark.django_db(transaction=True)
def test_a_follower_reads_on_where_the_log_went_to_the_store(store: Any) -> None:
    workload = pods.a_workload(make_cast().team_a)
    lines = [b"x" * 1000] * 500
    log = a_log(workload, lines, state=Log.State.CAPTURING)
    log = Log.objects.select_related("pod").get(pk=log.pk)

    async def follow() -> bytes:
        stream = logbook.follow_log(log)
        found = await anext(stream)
        await Log.objects.filter(pk=log.pk).aupdate(state=Log.State.COMPLETE)
        assert await sync_to_async(object_store.move_ended_logs)() == 1
        return found + b"".join([piece async for piece in stream])

    assert asyncio.run(follow()).count(b"\n") == len(lines)
