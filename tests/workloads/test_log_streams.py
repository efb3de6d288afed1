"""Logs as they come: a stream that breaks off and comes back loses and doubles no line; downloads
are made while they are sent.
"""

import asyncio
import io
import json
import threading
import zipfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError
from django.test import AsyncClient
from django.urls import reverse

from projects import tokens
from projects.models import User
from tests.cast import make_cast
from tests.workloads import pods
from tests.workloads.log_rows import START, a_log, number_lines
from workloads import logbook
from workloads.logbook import live_logs, log_paths, stamps
from workloads.logbook.log_writer import LogWriter
from workloads.models import Log, Workload
from workloads.views import logstream

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.anyio]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def signed_in() -> tuple[AsyncClient, Workload]:
    cast = await sync_to_async(make_cast)()
    client = AsyncClient()
    await client.aforce_login(cast.bob)
    return client, await sync_to_async(pods.a_workload)(cast.team_a)


async def capturing(workload: Workload, count: int = 0, rank: int = 0) -> Log:
    return await sync_to_async(a_log)(
        workload, number_lines(count), rank=rank, state=Log.State.CAPTURING
    )


def append(log: Log, texts: list[str]) -> None:
    with LogWriter(log_paths.local_path(log.path)) as writer:
        at = writer.latest_ns if writer.lines else START
        writer.append(
            [
                f"{stamps.format_time(at + number + 1)} {text}".encode()
                for number, text in enumerate(texts)
            ]
        )


def settle(log: Log) -> None:
    Log.objects.filter(pk=log.pk).update(state=Log.State.COMPLETE)


def rest(workload: Workload, status: str) -> None:
    Workload.objects.filter(pk=workload.pk).update(status=status)


async def events(
    client: AsyncClient, workload: Workload, query: dict[str, Any], last: str = ""
) -> AsyncGenerator[tuple[str, str, Any], None]:
    """(event, id, data) of a stream, until it ends; "" for the id of one that is no place in a
    log.
    """
    headers = {"Last-Event-ID": last} if last else {}
    answer: Any = await client.get(
        reverse("log-stream", args=[workload.pk]), query, headers=headers
    )
    assert answer.status_code == 200
    stream = answer.streaming_content
    try:
        async for piece in stream:
            fields = dict(
                line.split(": ", 1)
                for line in piece.decode().splitlines()
                if ": " in line and not line.startswith(":")
            )
            if "event" in fields:
                yield fields["event"], fields.get("id", ""), json.loads(fields["data"])
    finally:
        await stream.aclose()


async def collect_lines(
    client: AsyncClient, workload: Workload, query: dict[str, Any], until: int, last: str = ""
) -> tuple[list[str], str]:
    """The first lines of a stream, so many at least or all there are, and the id of the last
    event.
    """
    found: list[str] = []
    async with asyncio.timeout(30):
        stream = events(client, workload, query, last)
        async for _, event_id, data in stream:
            last = event_id or last
            found += [item["x"] for item in data if "x" in item] if isinstance(data, list) else []
            if len(found) >= until:
                break
        await stream.aclose()
    return found, last


async def test_lines_come_as_they_are_written_until_the_end() -> None:
    client, workload = await signed_in()
    log = await capturing(workload, 2)
    waiting = asyncio.create_task(
        collect_lines(client, workload, {"log": log.pk, "after": ""}, until=1000)
    )
    await asyncio.to_thread(append, log, ["new 0", "new 1"])
    await sync_to_async(settle)(log)
    await sync_to_async(rest)(workload, "Completed")
    found, _ = await waiting
    assert found == ["line 0", "line 1", "new 0", "new 1"]
    assert not live_logs._feeds


async def test_a_stream_that_breaks_off_and_comes_back_loses_and_doubles_nothing() -> None:
    client, workload = await signed_in()
    log = await capturing(workload, 1200)
    found: list[str] = []
    last = ""
    for wanted in (100, 1, 1):
        lines, last = await collect_lines(client, workload, {"log": log.pk}, wanted, last)
        found += lines
        await asyncio.to_thread(append, log, [f"line {len(found)} or so"])
    await sync_to_async(settle)(log)
    await sync_to_async(rest)(workload, "Completed")
    found += (await collect_lines(client, workload, {"log": log.pk}, 1 << 30, last))[0]
    stored_lines = [
        line.decode().split(" ", 1)[1] for line in logbook.read_tail(log, 1 << 20).splitlines()
    ]
    assert found == stored_lines


async def test_a_pod_that_writes_late_is_in_the_merged_stream_with_every_line() -> None:
    client, workload = await signed_in()
    first = await capturing(workload, 3)
    lines, last = await collect_lines(client, workload, {"attempt": 1}, 3)
    second = await capturing(workload, 2, rank=1)
    more, _ = await collect_lines(client, workload, {"attempt": 1}, 2, last)
    assert (lines, more) == (["line 0", "line 1", "line 2"], ["line 0", "line 1"])
    assert first.pk != second.pk


async def read_stream(
    client: AsyncClient,
    workload: Workload,
    query: dict[str, Any],
    until: Callable[[list[tuple[str, Any]]], bool],
) -> Any:
    """The events (name, data) of a stream until they are as wanted."""
    found: list[tuple[str, Any]] = []
    async with asyncio.timeout(30):
        stream = events(client, workload, query)
        async for name, _, data in stream:
            found.append((name, data))
            if until(found):
                break
        await stream.aclose()
    return found


def filter_events(found: list[tuple[str, Any]], name: str) -> list[Any]:
    return [data for event, data in found if event == name]


async def next_state(stream: AsyncIterator[tuple[str, str, Any]]) -> Any:
    async for name, _, data in stream:
        if name == "state":
            return data
    raise AssertionError("the stream has ended")


async def test_who_wrote_is_told_also_of_a_log_that_came_between_the_window_and_the_stream() -> (
    None
):
    client, workload = await signed_in()
    window = await client.get(reverse("log-window", args=[workload.pk]), {"attempt": 1})
    end = json.loads(window.content.splitlines()[0])["end"]
    log = await capturing(workload, 2)
    found = await read_stream(
        client,
        workload,
        {"attempt": 1, "after": end},
        lambda found: bool(filter_events(found, "lines")),
    )
    assert filter_events(found, "lines")[0][0]["logs"][str(log.pk)]["pod"] == "train1-0"


async def test_a_stream_tells_whole_how_things_stand_and_then_what_has_changed() -> None:
    client, workload = await signed_in()
    first = await capturing(workload, 1)
    stream = events(client, workload, {"attempt": 1})
    async with asyncio.timeout(30):
        _, _, whole = await anext(stream)
        second = await capturing(workload, 1, rank=1)
        changed = await next_state(stream)
    await stream.aclose()
    assert (list(whole["tabs"]), whole["order"]) == ([str(first.pod_id)], [first.pod_id])
    assert (list(changed["tabs"]), changed["order"]) == (
        [str(second.pod_id)],
        [first.pod_id, second.pod_id],
    )
    assert f"?log={second.pk}" in changed["tabs"][str(second.pod_id)]
    again = filter_events(
        await read_stream(
            client, workload, {"attempt": 1}, lambda found: bool(filter_events(found, "state"))
        ),
        "state",
    )[0]
    assert list(again["tabs"]) == [str(first.pod_id), str(second.pod_id)]


async def test_a_log_that_is_over_is_not_the_end_while_other_pods_may_come() -> None:
    client, workload = await signed_in()
    log = await capturing(workload, 2)
    await sync_to_async(settle)(log)
    await sync_to_async(rest)(workload, "Running")

    def is_over(found: list[tuple[str, Any]]) -> bool:
        return bool(filter_events(found, "state")) and bool(
            filter_events(found, "state")[-1]["over"]
        )

    found = await read_stream(client, workload, {"log": log.pk}, is_over)
    assert [name for name, _ in found] == ["state", "lines", "state"]
    assert [each["over"] for each in filter_events(found, "state")] == [False, True], (
        "not before its last line"
    )
    assert not filter_events(found, "state")[-1]["settled"]
    await sync_to_async(rest)(workload, "Completed")
    found = await read_stream(
        client, workload, {"log": log.pk}, lambda found: bool(filter_events(found, "over"))
    )
    assert filter_events(found, "state")[-1]["settled"]


async def test_a_quiet_stream_tells_how_things_stand_and_no_line() -> None:
    client, workload = await signed_in()
    log = await capturing(workload, 2)
    await sync_to_async(settle)(log)
    await sync_to_async(rest)(workload, "Completed")
    found = await read_stream(client, workload, {"attempt": 1, "quiet": "1"}, lambda found: False)
    assert [name for name, _ in found] == ["state", "over"]


async def test_the_stream_of_an_attempt_before_this_one_ends() -> None:
    client, workload = await signed_in()
    log = await capturing(workload, 2)
    await sync_to_async(settle)(log)
    await sync_to_async(Workload.objects.filter(pk=workload.pk).update)(attempt=2, status="Running")
    found = await read_stream(client, workload, {"attempt": 1}, lambda found: False)
    assert [name for name, _ in found] == ["state", "lines", "state", "over"]


async def test_a_stream_is_asked_for_anew_before_long_and_not_given_to_who_has_signed_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logstream, "STREAM_SECONDS", 0.05)
    monkeypatch.setattr(logstream, "HEARTBEAT_SECONDS", 0.05)
    client, workload = await signed_in()
    log = await capturing(workload, 1)
    await client.alogout()
    assert (
        await client.get(reverse("log-stream", args=[workload.pk]), {"log": log.pk})
    ).status_code == 302
    await client.aforce_login(await User.objects.aget(username="bob"))
    stream = events(client, workload, {"log": log.pk})
    async with asyncio.timeout(30):
        assert [name async for name, _, _ in stream] == ["state", "lines"]


async def test_too_many_streams_of_one_person_are_refused(settings: Any) -> None:
    client, workload = await signed_in()
    log = await capturing(workload, 1)
    streams = [events(client, workload, {"log": log.pk}) for _ in range(20)]
    for stream in streams:
        await anext(stream)
    answer = await client.get(reverse("log-stream", args=[workload.pk]), {"log": log.pk})
    for stream in streams:
        await stream.aclose()
    assert answer.status_code == 429


async def test_streams_that_are_asked_for_at_once_are_counted_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_logs.streams, "limit", 2)
    client, workload = await signed_in()
    log = await capturing(workload, 1)
    address = reverse("log-stream", args=[workload.pk])
    answers: list[Any] = [await client.get(address, {"log": log.pk}) for _ in range(4)]
    streams = [aiter(answer.streaming_content) for answer in answers]
    first_pieces = [await anext(stream, None) for stream in streams]
    for stream in streams:
        await stream.aclose()
    assert [piece is not None for piece in first_pieces] == [True, True, False, False]


async def test_programs_that_wait_for_a_store_hold_up_no_live_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, workload = await signed_in()
    log = await sync_to_async(a_log)(workload, number_lines(1))
    token, _ = await sync_to_async(tokens.issue_token)(await User.objects.aget(username="bob"))
    client, headers = AsyncClient(), {"authorization": f"Bearer {token}"}
    address = f"/api/v1/workloads/{workload.pk}/pods/train1-0/logs?container={log.container}"
    released = threading.Event()

    def wait_for_store(*given: Any, **named: Any) -> Iterator[bytes]:
        released.wait()
        yield b"line\n"

    async def read_body(answer: Any) -> bytes:
        return b"".join([piece async for piece in answer.streaming_content])

    monkeypatch.setattr(logbook, "read_lines", wait_for_store)
    # More than a loop has threads of its own.
    answers = [await client.get(f"{address}&follow=true", headers=headers) for _ in range(40)]
    reads = [asyncio.create_task(read_body(answer)) for answer in answers]
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(30):
            assert await sync_to_async(lambda: "live", thread_sensitive=False)() == "live"
    finally:
        released.set()
    assert await asyncio.gather(*reads) == [b"line\n"] * len(reads)


async def test_a_program_follows_a_log_as_plain_text() -> None:
    _, workload = await signed_in()
    log = await capturing(workload, 5)
    log = await Log.objects.select_related("pod").aget(pk=log.pk)
    await sync_to_async(settle)(log)
    found = b"".join([piece async for piece in logbook.follow_log(log, tail=2)])
    assert found == b"line 3\nline 4\n"
    collect: Callable[[Iterator[bytes]], list[bytes]] = list
    lines = await sync_to_async(collect)(logbook.read_lines(log, tail=1, timestamps=True))
    assert b"".join(lines).endswith(b"Z line 4\n")


async def test_a_follower_goes_on_after_the_database_did_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, workload = await signed_in()
    log = await capturing(workload, 1)
    log = await Log.objects.select_related("pod").aget(pk=log.pk)
    monkeypatch.setattr(live_logs, "RELOAD_SECONDS", 0.3)
    monkeypatch.setattr(live_logs, "BROKEN_SECONDS", 0.05)
    load_rows, read_chunk = live_logs._load_rows, live_logs._read_chunk
    has_failed, loop, reads = asyncio.Event(), asyncio.get_running_loop(), 0

    def fail_once(*given: Any) -> Any:
        # The first poller begins well, and fails when it loads its rows again.
        if reads and not has_failed.is_set():
            loop.call_soon_threadsafe(has_failed.set)
            raise OperationalError("the server closed the connection")
        return load_rows(*given)

    def count_read(*given: Any) -> Any:
        nonlocal reads
        reads += 1
        return read_chunk(*given)

    monkeypatch.setattr(live_logs, "_load_rows", fail_once)
    monkeypatch.setattr(live_logs, "_read_chunk", count_read)
    stream = (piece async for piece in logbook.follow_log(log) if piece)
    assert await anext(stream) == b"line 0\n"
    following = asyncio.ensure_future(anext(stream))
    await asyncio.wait_for(has_failed.wait(), 20)
    await sync_to_async(append)(log, ["the last line"])
    await sync_to_async(settle)(log)
    assert await asyncio.wait_for(following, 20) == b"the last line\n"
    assert [piece async for piece in stream] == []
    assert reads < 50, "it does not read without a pause"


async def body(client: AsyncClient, workload: Workload, query: dict[str, Any]) -> bytes:
    answer: Any = await client.get(reverse("log-download", args=[workload.pk]), query)
    return b"".join([piece async for piece in answer.streaming_content])


async def test_one_log_is_downloaded_as_it_is() -> None:
    client, workload = await signed_in()
    log = await capturing(workload, 30_000)
    assert (
        await body(client, workload, {"log": log.pk}) == log_paths.local_path(log.path).read_bytes()
    )
    assert (await body(client, workload, {"log": log.pk, "timestamps": "0"})).startswith(
        b"line 0\nline 1\n"
    )


async def test_all_logs_are_downloaded_as_one_archive() -> None:
    client, workload = await signed_in()
    logs = [await capturing(workload, 1000 * (rank + 1), rank=rank) for rank in range(3)]
    archive = zipfile.ZipFile(io.BytesIO(await body(client, workload, {"attempt": 1})))
    assert archive.testzip() is None
    assert [archive.read(info) for info in archive.infolist()] == [
        log_paths.local_path(log.path).read_bytes() for log in logs
    ]
