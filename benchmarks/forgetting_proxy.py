"""A proxy between a client and an API that, on command, forgets where its watches are: their next
frame is a 410.
"""

import asyncio
import json
import re
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

import yaml
from kubehttp import Server

WATCH = re.compile(rb"GET \S*/pods\?\S*watch=[1tT]")
CHUNK = 256 << 10
EXPIRED = {
    "type": "ERROR",
    "object": {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "too old resource version",
        "reason": "Expired",
        "code": 410,
    },
}


class ForgettingProxy:
    """Plain HTTP on a free port of this machine; everything passes unchanged. Use it in a with
    block.

    After `hold_events` no event of pods passes; `forget_watches` ends their watches with a 410, and
    everything passes again.
    """

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._server = server
        self._loop = loop or asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._open = asyncio.Event()
        self._watches: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    def build_kubeconfig(self) -> str:
        """Return a kubeconfig that leads to this proxy."""
        user = {"token": self._server.token or "none"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "users": [{"name": "u", "user": user}],
        }
        return yaml.safe_dump(config)

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def hold_events(self) -> None:
        async def hold() -> None:
            self._open.clear()

        self._run(hold())

    def forget_watches(self) -> int:
        """End the watches of pods with a 410 and return how many there were."""

        async def forget() -> int:
            frame = json.dumps(EXPIRED).encode() + b"\n"
            ending = list(self._watches)
            for writer in ending:
                writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(frame), frame))
                await writer.drain()
                writer.close()
            self._open.set()
            return len(ending)

        ended: int = self._run(forget())
        return ended

    async def answer_request(
        self, data: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer a request instead of the server, until the client leaves; False to pass it on."""
        return False

    def _run(self, work: Coroutine[Any, Any, Any], within: float = 30.0) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(within)

    async def _start(self) -> None:
        self._open.set()
        self._listener = await asyncio.start_server(self._serve_client, "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        self._listener.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve_client(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            first = await reader.read(CHUNK)
            if not first or await self.answer_request(first, reader, writer):
                return
            server_reader, server_writer = await asyncio.open_connection(
                self._server.host, self._server.port, ssl=self._server.context
            )
            answers = asyncio.create_task(self._copy_answers(server_reader, writer))
            try:
                data = first
                while data:
                    if WATCH.match(data):
                        self._watches.add(writer)
                    server_writer.write(data)
                    await server_writer.drain()
                    data = await reader.read(CHUNK)
                    if await self.answer_request(data, reader, writer):
                        return
            finally:
                answers.cancel()
                server_writer.close()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._watches.discard(writer)
            self._tasks.discard(task)
            writer.close()

    async def _copy_answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(CHUNK):
            if writer in self._watches:
                await self._open.wait()
            if writer.is_closing():
                return
            writer.write(data)
            await writer.drain()
        writer.close()
