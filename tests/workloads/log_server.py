"""A cluster on loopback whose pods are made up: it tells of any pod that it runs, and follows its
log for ever. `python -m tests.workloads.log_server DIRECTORY` runs one as a process of its own.
"""

import asyncio
import contextlib
import json
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from localkube import certificates

Lines = Callable[[str], AsyncIterator[bytes]]
"""The chunks of a pod's log, by its name."""
NODE = "node-1"


def describe_pod(name: str, phase: str = "Running") -> dict[str, Any]:
    """Return the pod of this name as the API shows it."""
    state = {"running": {}} if phase == "Running" else {"terminated": {"exitCode": 0}}
    status = {"name": "main", "restartCount": 0, "state": state}
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"},
        "spec": {"nodeName": NODE},
        "status": {"phase": phase, "containerStatuses": [status]},
    }


def stamp_line(text: bytes) -> bytes:
    """Return a line as the API shows it, with the time in front."""
    now = datetime.now(UTC).isoformat().replace("+00:00", "000Z")
    return now.encode() + b" " + text + b"\n"


async def write_slowly(name: str, pause: float = 1.0) -> AsyncIterator[bytes]:
    """Yield a line a second, for ever."""
    number = 0
    while True:
        yield stamp_line(b"line %d of %s" % (number, name.encode()))
        number += 1
        await asyncio.sleep(pause)


class LogServer:
    """Serves in a thread of its own. Counts what came: connections, and requests by what they
    wanted.
    """

    def __init__(self, directory: Path, lines: Lines = write_slowly) -> None:
        self._lines = lines
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self._identity = certificates.ensure_identity(directory)
        self._kubeconfig = directory / "kubeconfig"
        self.port = 0
        self.connections = 0
        self.requests: Counter[str] = Counter()
        self.open_streams = 0

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *failure: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)
        assert not self._thread.is_alive()

    @property
    def kubeconfig(self) -> str:
        certificates.write_kubeconfig(
            self._kubeconfig, self._identity, f"https://127.0.0.1:{self.port}"
        )
        return self._kubeconfig.read_text()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(
            self._accept, "127.0.0.1", 0, ssl=self._identity.context, backlog=1024
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # An aborted transport closes its socket in a later turn of the loop.
        await asyncio.sleep(0.05)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while head := await reader.readuntil(b"\r\n\r\n"):
                    await self._answer(head.split(b" ")[1].decode(), writer)
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        path = target.partition("?")[0]
        name, is_log = path.partition("/pods/")[2].partition("/log")[:2]
        self.requests["log" if is_log else "pod"] += 1
        if not is_log:
            body = json.dumps(describe_pod(name)).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                % len(body)
                + body
            )
            await writer.drain()
            return
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        self.open_streams += 1
        try:
            async for chunk in self._lines(name):
                writer.write(b"%x\r\n" % len(chunk) + chunk + b"\r\n")
                await writer.drain()
            writer.write(b"0\r\n\r\n")
        finally:
            self.open_streams -= 1


def main(directory: str) -> None:
    """Serve until standard input ends; tell the address, and then, on each line, what came."""
    with LogServer(Path(directory)) as server:
        _ = server.kubeconfig
        print("ready", flush=True)
        for _line in sys.stdin:
            counted = {"connections": server.connections, "open": server.open_streams}
            print(json.dumps(counted | dict(server.requests)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
