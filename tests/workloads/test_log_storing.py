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
from django.test import AsyncClient, Client
from django.urls import reverse
from django.utils import timezone

from console import log_storage
from projects import tokens
from projects.models import User
from tests.api.described import find_operation
from tests.cast import Cast, make_cast
from tests.clusters.kube.faults import Exchange, FaultServer, Step
from tests.workloads import pods
from tests.workloads.log_rows import a_log, number_lines, texts, window
from workloads import logbook, tasks
from workloads.logbook import log_paths, object_store, plain_text, retention, windows
from workloads.logbook.log_files import NOT_HERE, open_log
from workloads.models import Log, Pod, Workload

boto3 = pytest.importorskip("boto3", reason="requirements-s3.txt is not installed")
boto_errors = pytest.importorskip("botocore.exceptions", reason="boto3 is not installed")
server = pytest.importorskip("moto.server", reason="moto, flask and flask-cors are not installed")


def close_connection() -> None:
    """Close the log storage's connection to the store."""
    storage: Any = storages["logs"]
    storage.connection.meta.client.close()


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
    close_connection()
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


def list_reports(caplog: pytest.LogCaptureFixture, level: str) -> list[str]:
    """Return what the retention wrote into the log of the process at a level."""
    return [
        each.getMessage()
        for each in caplog.records
        if (each.name, each.levelname) == (retention.__name__, level)
    ]


def describe_removal(workload_id: str) -> str:
    return f"removed the logs of workload {workload_id}, which is no more"


def test_only_what_is_left_nowhere_is_reported_as_removed(
    store: Any, cast: Cast, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stored = [pods.a_workload(cast.team_a), pods.a_workload(cast.team_b)]
    for each in stored:
        a_log(each, number_lines(3))
    object_store.move_ended_logs()
    here = pods.a_workload(cast.team_a, "here")
    a_log(here, number_lines(3))
    ids = [str(each.pk) for each in stored]
    local_id = str(here.pk)
    Workload.objects.all().delete()
    attempts: list[str] = []

    def fail(name: str) -> None:
        attempts.append(name)
        raise object_store.StoreFailed(403)

    caplog.set_level("INFO", retention.__name__)
    with monkeypatch.context() as failing:
        failing.setattr(object_store, "remove_folder", fail)
        logbook.remove_old_logs()
    reports = list_reports(caplog, "INFO")
    assert describe_removal(local_id) in reports
    assert not {describe_removal(each) for each in ids}.intersection(reports)
    [warning] = list_reports(caplog, "WARNING")
    assert "left there for the next hour" in warning
    assert len(attempts) == 1
    caplog.clear()
    logbook.remove_old_logs()
    assert names(store) == []
    assert {describe_removal(each) for each in ids} == set(list_reports(caplog, "INFO"))


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
    attempts: list[Log] = []

    def fail(log: Log) -> bool:
        attempts.append(log)
        raise ConnectionError

    monkeypatch.setattr(object_store, "move_log", fail)
    assert object_store.move_ended_logs() == 0
    assert len(attempts) == object_store.MOST_FAILURES


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
        with pytest.raises(object_store.StoreFailed) as failure:
            object_store.has_file("a.log")
        assert isinstance(failure.value.__cause__, boto_errors.ReadTimeoutError)
        assert failure.value.is_away
        close_connection()
        # A server beside much else may read a request after its client has given it up.
        silent.wait_for(log_storage.ATTEMPTS)
        assert len(silent.requests) == log_storage.ATTEMPTS


def refuse(status: int) -> Step:
    return lambda exchange: exchange.answer(status, b"")


@pytest.fixture
def failing_store(
    settings: Any, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[FaultServer]:
    """A store that answers each request with a status: 403 unless the test names another."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "tests-only")
    with FaultServer(refuse(getattr(request, "param", 403))) as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{running.port}")
        logs = log_storage.describe_log_storage("s3://logs-of-tests")
        settings.STORAGES = settings.STORAGES | {"logs": logs}
        yield running
        close_connection()


def move_away(log: Log) -> Log:
    """Let the file of a log be on this machine no more, as after it was moved to the store."""
    log_paths.local_path(log.path).unlink()
    return log


@pytest.mark.parametrize("failing_store", [403, 500], indirect=True)
@pytest.mark.parametrize("address", ["log-window", "log-search", "log-stream", "log-download"])
def test_a_store_that_fails_is_named_to_the_reader(
    client: Any, failing_store: FaultServer, workload: Workload, address: str
) -> None:
    log = move_away(a_log(workload, number_lines(3)))
    client.force_login(User.objects.get(username="bob"))
    answer = client.get(reverse(address, args=[workload.pk]), {"log": log.pk, "q": "line"})
    assert answer.status_code == 503
    assert "object store" in answer.content.decode()


def test_a_store_that_fails_is_named_to_programs_as_described(
    failing_store: FaultServer, cast: Cast, workload: Workload
) -> None:
    log = move_away(a_log(workload, number_lines(3)))
    headers = {"Authorization": f"Bearer {tokens.issue_token(cast.bob)[0]}"}
    address = f"/api/v1/workloads/{workload.pk}/pods/{log.pod.name}/logs"
    answer = Client().get(address, headers=headers)
    assert answer.status_code == 503
    assert "object store" in answer.json()["message"]
    described = find_operation("GET", address)
    assert described is not None
    assert "503" in described["responses"]


def test_a_failed_workload_is_explained_while_the_store_fails(
    client: Any, failing_store: FaultServer, workload: Workload
) -> None:
    move_away(a_log(workload, number_lines(3)))
    Pod.objects.filter(workload=workload).update(phase="Failed")
    Workload.objects.filter(pk=workload.pk).update(status="Failed")
    client.force_login(User.objects.get(username="bob"))
    assert client.get(reverse("workload", args=[workload.pk])).status_code == 200
    assert len(failing_store.requests) > 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("failing_store", [404], indirect=True)
def test_a_download_says_what_the_store_does_not_have(failing_store: FaultServer) -> None:
    bob, workload = (cast := make_cast()).bob, pods.a_workload(cast.team_a)
    log = move_away(a_log(workload, number_lines(3)))
    headers = {"Authorization": f"Bearer {tokens.issue_token(bob)[0]}"}

    async def download() -> bytes:
        client = AsyncClient()
        await client.aforce_login(bob)
        answer: Any = await client.get(reverse("log-download", args=[workload.pk]), {"log": log.pk})
        return b"".join([piece async for piece in answer.streaming_content])

    assert asyncio.run(download()) == f"[Muster: {NOT_HERE}]\n".encode()
    address = f"/api/v1/workloads/{workload.pk}/pods/{log.pod.name}/logs"
    answer = Client().get(address, headers=headers)
    assert (answer.status_code, answer.json()["message"]) == (404, NOT_HERE)


@pytest.mark.django_db(transaction=True)
def test_who_follows_the_others_needs_no_store_for_what_was_read(
    failing_store: FaultServer,
) -> None:
    bob, workload = (cast := make_cast()).bob, pods.a_workload(cast.team_a)
    done = move_away(a_log(workload, number_lines(3)))
    growing = a_log(workload, number_lines(3), rank=1, state=Log.State.CAPTURING)
    place = windows.format_cursor({done.pk: done.size, growing.pk: 0})

    async def follow(**query: Any) -> str:
        client = AsyncClient()
        await client.aforce_login(bob)
        address = reverse("log-stream", args=[workload.pk])
        answer: Any = await client.get(address, {"attempt": 1} | query)
        assert answer.status_code == 200
        stream = aiter(answer.streaming_content)
        found = b"".join([await anext(stream) for _ in range(2 if "quiet" in query else 3)])
        await stream.aclose()
        return found.decode()

    assert "line 2" in asyncio.run(follow(after=place))
    assert "event: state" in asyncio.run(follow(quiet=1))
    assert failing_store.requests == []


def test_what_a_store_that_failed_keeps_of_removed_logs_is_deleted_later(
    store: Any, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = a_log(workload, number_lines(3))
    object_store.move_ended_logs()
    here = [a_log(workload, number_lines(3), rank=rank) for rank in (1, 2)]
    Log.objects.update(ended_at="2020-01-01T00:00:00Z")
    with monkeypatch.context() as failing:

        def fail(path: str) -> None:
            raise object_store.StoreFailed

        failing.setattr(object_store, "remove_log", fail)
        assert logbook.remove_old_logs() == 3
    assert not any(log_paths.local_path(log.path).exists() for log in here)
    assert names(store) == [f"muster/{moved.path.removesuffix('log')}idx", f"muster/{moved.path}"]
    logbook.remove_old_logs()
    assert names(store) == []


def test_a_log_that_the_store_refuses_to_delete_keeps_no_other_one(
    store: Any, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [a_log(workload, number_lines(3), rank=rank) for rank in range(3)]
    object_store.move_ended_logs()
    Log.objects.update(state=Log.State.REMOVED)
    monkeypatch.setattr(retention, "BATCH_SIZE", 1)
    remove_log = object_store.remove_log

    def refuse_first(path: str) -> None:
        if path == logs[0].path:
            raise object_store.StoreFailed(403)
        remove_log(path)

    monkeypatch.setattr(object_store, "remove_log", refuse_first)
    logbook.remove_old_logs()
    first = logs[0].path
    assert names(store) == [f"muster/{first.removesuffix('log')}idx", f"muster/{first}"]


@pytest.mark.parametrize("failing_store", [503], indirect=True)
def test_a_store_that_is_away_is_waited_for_once_while_logs_are_removed(
    failing_store: FaultServer, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH_SIZE", 1)
    for rank in range(3):
        a_log(workload, number_lines(3), rank=rank, ended_at="2020-01-01T00:00:00Z")
    with pytest.raises(object_store.StoreFailed):
        logbook.remove_old_logs()
    methods = [request.method for request in failing_store.requests]
    assert methods.count("DELETE") == log_storage.ATTEMPTS
    assert Log.objects.filter(state=Log.State.REMOVED).exclude(path="").count() == 3


@pytest.mark.parametrize("is_open", [False, True], ids=["before", "while it is open"])
def test_a_log_that_the_store_loses_while_it_is_read_is_empty(
    store: Any, workload: Workload, monkeypatch: pytest.MonkeyPatch, is_open: bool
) -> None:
    log = a_log(workload, number_lines(3))
    object_store.move_ended_logs()
    monkeypatch.setattr(object_store, "has_file", lambda path: True)
    if not is_open:
        store.objects.all().delete()
    with open_log(log) as here:
        store.objects.all().delete()
        assert here.source.read(0, 100) == b""
        assert here.source.size() == 0


@pytest.mark.parametrize("is_download", [True, False], ids=["download", "program"])
def test_a_log_that_is_removed_while_it_is_read_says_so(
    store: Any, workload: Workload, is_download: bool
) -> None:
    lines = [b"x" * 1000] * 500
    log = a_log(workload, lines)
    object_store.move_ended_logs()
    pieces = (
        plain_text.read_chunks(log, timestamps=False, size=1)
        if is_download
        else logbook.read_lines(log)
    )
    first = next(pieces)
    store.objects.all().delete()
    text = first + b"".join(pieces)
    assert 0 < text.count(b"x" * 1000) < len(lines)
    assert text.endswith(b"\n[Muster: the rest of this log was removed while it was read]\n")


def test_a_store_that_may_not_be_listed_takes_logs_all_the_same(
    store: Any, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_log(workload, number_lines(3))

    def refuse_listing(*_: object) -> None:
        answer = {"ResponseMetadata": {"HTTPStatusCode": 403}}
        raise boto_errors.ClientError(answer, "ListObjectsV2")

    monkeypatch.setattr(storages["logs"], "listdir", refuse_listing)
    retention.remove_old_logs()
    assert len(names(store)) == 2


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
