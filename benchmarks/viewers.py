"""A process of many clients that hold the table's stream as a browser does, and report when each
row reached them.

`viewers.py HOST PORT COUNT` reads a JSON list of session keys, one line. Each client loads the
page, takes its position, and opens the stream from there. "ready" is printed once all are open;
once the input ends, one line of JSON: for each client its list of [nanoseconds since 1970,
workload, text of the pods cell].
"""

import asyncio
import bisect
import itertools
import json
import re
import sys
import time

import uvloop

POSITION = re.compile(rb'data-live="([^"]+)"[^>]*data-position="(\d+)"')
ROW = re.compile(rb'id=\\"pods-([0-9a-f-]{36})\\"[^>]*>([^<]*)<')
OPENED = b"retry:"
READ = 1 << 18
AT_ONCE = 8
"""Pages loaded at a time: the streams are measured, not a stampede."""

Chunks = list[tuple[int, bytes]]


async def watch_page(
    host: str,
    port: int,
    session: str,
    opened: asyncio.Event,
    gate: asyncio.Semaphore,
    chunks: Chunks,
) -> None:
    """Load the page, open its stream, and store its chunks with their times."""
    async with gate:
        page = await load_page(host, port, session)
        match = POSITION.search(page)
        if match is None:
            raise SystemExit(f"the page has no stream: {page[:500]!r}")
        address = match[1].decode().replace("&amp;", "&")
        reader, writer = await asyncio.open_connection(host, port, limit=READ)
        joint = "" if address.endswith("?") else "&"
        writer.write(
            build_request(
                f"{address}{joint}after={match[2].decode()}",
                host,
                port,
                session,
                "text/event-stream",
            )
        )
        head = await reader.readuntil(OPENED)
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise SystemExit(f"the stream was refused: {head!r}")
    opened.set()
    while chunk := await reader.read(READ):
        chunks.append((time.time_ns(), chunk))


async def load_page(host: str, port: int, session: str) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(
        build_request("/workloads", host, port, session, "text/html", "Connection: close\r\n")
    )
    answer = await reader.read()
    writer.close()
    return answer


def build_request(
    path: str, host: str, port: int, session: str, accept: str, more: str = ""
) -> bytes:
    head = (
        f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: {accept}\r\nCookie: "
        f"muster_session={session}\r\n{more}\r\n"
    )
    return head.encode()


def parse_arrivals(chunks: Chunks) -> list[tuple[int, str, str]]:
    """Return the rows in the chunks, each with the time of the chunk that completed it."""
    ends = list(itertools.accumulate(len(chunk) for _, chunk in chunks))
    content = b"".join(chunk for _, chunk in chunks)
    return [
        (
            chunks[bisect.bisect_left(ends, match.end())][0],
            match[1].decode(),
            match[2].decode().strip(),
        )
        for match in ROW.finditer(content)
    ]


async def main(host: str, port: int, count: int) -> None:
    sessions = json.loads(await asyncio.to_thread(sys.stdin.readline))
    gate = asyncio.Semaphore(AT_ONCE)
    opened = [asyncio.Event() for _ in range(count)]
    chunks_of_clients: list[Chunks] = [[] for _ in range(count)]
    tasks = [
        asyncio.create_task(
            watch_page(
                host,
                port,
                sessions[number % len(sessions)],
                opened[number],
                gate,
                chunks_of_clients[number],
            )
        )
        for number in range(count)
    ]
    everybody = asyncio.gather(*(each.wait() for each in opened))
    done, _ = await asyncio.wait([everybody, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for task in done - {everybody}:
        task.result()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    print(json.dumps([parse_arrivals(chunks) for chunks in chunks_of_clients]), flush=True)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
