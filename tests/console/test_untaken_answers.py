"""Clients that ask and do not read: their connections count, and end."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from console import web_connections
from console.connection_bounds import ConnectionBounds
from console.web_connections import BoundedProtocol

PATIENCE = 180.0
PER_ADDRESS = 4
BUFFER = 4096
"""Bytes that the system keeps of a connection, on either side, as far as it lets itself be told."""
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextlib.contextmanager
def serve_pages(answer: bytes) -> Iterator[tuple[int, uvicorn.Server]]:
    """A server of one answer, with few connections of one address; its port, and it."""
    bounds = ConnectionBounds(PER_ADDRESS, 100)

    class NarrowProtocol(BoundedProtocol):
        def __init__(
            self,
            config: uvicorn.Config,
            server_state: ServerState,
            app_state: dict[str, Any],
            _loop: asyncio.AbstractEventLoop | None = None,
        ) -> None:
            super().__init__(config, server_state, app_state, _loop)
            self._bounds = bounds

    async def answer_each(_scope: Any, _receive: Any, send: Any) -> None:
        length = (b"content-length", str(len(answer)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": answer})

    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
    server = uvicorn.Server(
        uvicorn.Config(
            answer_each,
            http=NarrowProtocol,
            ws="none",
            lifespan="off",
            log_level="error",
            proxy_headers=False,
        )
    )
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1], server
    finally:
        server.should_exit = server.force_exit = True
        thread.join(PATIENCE)
        listening.close()


def ask_pages(port: int) -> tuple[socket.socket, bytes]:
    """A connection on which no more than the status of the answer is read, and that."""
    opened = socket.socket()
    opened.settimeout(PATIENCE)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    opened.connect(("127.0.0.1", port))
    with contextlib.suppress(ConnectionError):
        opened.sendall(REQUEST)
    return opened, opened.recv(12)


@pytest.mark.parametrize("size", [50_000, 1_000_000])
def test_who_does_not_read_makes_no_room(size: int) -> None:
    with serve_pages(b"x" * size) as (port, _), contextlib.ExitStack() as opened:
        answers = []
        for _ in range(3 * PER_ADDRESS):
            connection, answer = ask_pages(port)
            opened.enter_context(connection)
            answers.append(answer)
    assert answers[:PER_ADDRESS] == [b"HTTP/1.1 200"] * PER_ADDRESS
    assert set(answers[PER_ADDRESS:]) == {b"HTTP/1.1 429"}


@pytest.mark.parametrize("size", [50_000, 1_000_000])
def test_an_answer_that_is_not_taken_is_given_up(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_connections, "TAKE_SECONDS", 1.0)
    with serve_pages(b"x" * size) as (port, server):
        connection, _ = ask_pages(port)
        with connection:
            deadline = time.monotonic() + PATIENCE
            while server.server_state.connections and time.monotonic() < deadline:
                time.sleep(0.05)
            assert not server.server_state.connections
