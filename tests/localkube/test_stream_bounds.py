"""What streams keep in memory for a client that takes little of what it is sent."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from localkube.api.http_messages import ApiCall, Message, Response
from localkube.api.reading import CHUNK_BYTES
from localkube.api.response_delivery import SEND_BYTES, ResponseSender
from localkube.api.watching import WatchHandler
from localkube.objects import Objects
from localkube.resources import CONFIGMAPS, NAMESPACES
from localkube.store import Store

SPACE = "a"
VALUE_BYTES = 400_000
TIMEOUT_SECONDS = 30


@pytest.fixture
def objects(tmp_path: Path) -> Iterator[Objects]:
    store = Store(tmp_path / "state.db", lambda key, obj: {})
    verbs = Objects(store)
    verbs.create(NAMESPACES, "", {"metadata": {"name": SPACE}})
    yield verbs
    store.close()


async def wait_for_ever() -> Message:
    await asyncio.Event().wait()
    return {}


def test_a_large_chunk_is_handed_to_the_connection_in_small_parts() -> None:
    content = bytes(range(256)) * 4096 + b"end"
    sent: list[bytes] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message.get("body", b""))

    async def stream() -> AsyncGenerator[bytes, None]:
        yield content

    async def deliver() -> None:
        response = Response(stream=stream(), live=True)
        await ResponseSender().send(
            response, send, wait_for_ever, head=False, gzip=False, warnings=()
        )

    asyncio.run(asyncio.wait_for(deliver(), TIMEOUT_SECONDS))
    assert b"".join(sent) == content
    assert max(map(len, sent)) == SEND_BYTES


@pytest.mark.parametrize("blocking_part", [b"begun", b""])
def test_a_stream_that_is_not_taken_in_its_time_is_cut_and_released(blocking_part: bytes) -> None:
    aborted = asyncio.Event()
    released: list[bool] = []

    async def send(message: dict[str, Any]) -> None:
        if message.get("body", b"") == blocking_part and message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async def receive() -> Message:
        await aborted.wait()
        return {"type": "http.disconnect"}

    async def stream() -> AsyncGenerator[bytes, None]:
        yield b"begun"

    async def deliver() -> None:
        response = Response(
            stream=stream(), live=True, max_seconds=0.01, release=lambda: released.append(True)
        )
        await ResponseSender().send(
            response, send, receive, head=False, gzip=False, warnings=(), abort=aborted.set
        )

    asyncio.run(asyncio.wait_for(deliver(), TIMEOUT_SECONDS))
    assert aborted.is_set()
    assert released == [True]


def test_a_watcher_gets_its_backlog_in_chunks_of_a_bounded_size(objects: Objects) -> None:
    names = [f"c{number}" for number in range(12)]

    async def watch() -> list[bytes]:
        scope = {
            "method": "GET",
            "raw_path": b"/",
            "query_string": f"resourceVersion={objects.store.rv}".encode(),
            "headers": [],
        }
        call = ApiCall.from_scope(scope, wait_for_ever)
        response = await WatchHandler(objects, 1).watch(call, CONFIGMAPS, SPACE)
        for name in names:
            data = {"value": "x" * VALUE_BYTES}
            objects.create(CONFIGMAPS, SPACE, {"metadata": {"name": name}, "data": data})
        assert response.stream is not None
        assert response.release is not None
        chunks: list[bytes] = []
        async for chunk in response.stream:
            chunks.append(chunk)
            if b"".join(chunks).count(b"\n") == len(names):
                break
        await response.stream.aclose()
        response.release()
        return chunks

    chunks = asyncio.run(asyncio.wait_for(watch(), TIMEOUT_SECONDS))
    # The object that crosses the bound is sent whole.
    assert max(map(len, chunks)) < CHUNK_BYTES + 2 * VALUE_BYTES
    assert sum(map(len, chunks)) > len(names) * VALUE_BYTES
