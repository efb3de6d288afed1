"""A process beside the benchmark that holds many watches and prints when each of their events
arrived.

`watchers.py KUBECONFIG PATH COUNT EVENTS`: prints "ready" once every watch is open, then, when each
has seen EVENTS marked events or the input is closed, one line of "MARK NANOSECONDS" for each event
of each watch. The clock is CLOCK_MONOTONIC, which all processes of a machine share.
"""

import asyncio
import re
import sys
import time
from pathlib import Path

import uvloop
from kubehttp import Server

MARK = re.compile(rb"bench-mark-(\d+)-")
READ = 1 << 20
KEEP = 64
"""Bytes kept from one read to the next, so that a mark on the border is found."""


async def hold_watch(
    server: Server, path: str, events: int, opened: asyncio.Event, arrivals: list[tuple[int, int]]
) -> None:
    """Hold one watch until it has seen `events` different marks."""
    reader, writer = await asyncio.open_connection(
        server.host, server.port, ssl=server.context, server_hostname=server.host, limit=READ
    )
    head = "".join(f"{name}: {value}\r\n" for name, value in server.headers().items())
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {server.host}\r\n{head}\r\n".encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in answer.split(b"\r\n", 1)[0]:
        raise SystemExit(f"watch refused: {answer!r}")
    opened.set()
    marks: set[int] = set()
    tail = b""
    while len(marks) < events:
        chunk = await reader.read(READ)
        now = time.monotonic_ns()
        if not chunk:
            break
        for digits in MARK.findall(tail + chunk):
            if (mark := int(digits)) not in marks:
                marks.add(mark)
                arrivals.append((mark, now))
        tail = chunk[-KEEP:]
    writer.close()


async def main(kubeconfig: str, path: str, count: int, events: int) -> None:
    server = Server.from_kubeconfig(Path(kubeconfig))
    arrivals: list[tuple[int, int]] = []
    opened = [asyncio.Event() for _ in range(count)]
    watches = [
        asyncio.create_task(hold_watch(server, path, events, one, arrivals)) for one in opened
    ]
    await asyncio.gather(*(one.wait() for one in opened))
    print("ready", flush=True)
    told_to_stop = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    everything = asyncio.gather(*watches)
    await asyncio.wait([everything, told_to_stop], return_when=asyncio.FIRST_COMPLETED)
    for mark, at in arrivals:
        print(mark, at)
    sys.stdout.flush()
    # The thread that waits for the input's end would keep the process alive.
    sys.exit(0)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
