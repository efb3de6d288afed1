"""Sending a response: headers, compression, and streams that end when their client disconnects.

Nothing else writes to a connection.
"""

import asyncio
import uuid
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any

from localkube.api.http_messages import Receive, Response, Stream

Send = Callable[[dict[str, Any]], Awaitable[None]]

GZIP_MIN_BYTES = 128 << 10
GZIP_LEVEL = 1
"""How hard responses from GZIP_MIN_BYTES on are compressed; both are those of a real API server."""
GZIP_FORMAT = zlib.MAX_WBITS | 16

SEND_BYTES = 64 << 10
"""Most bytes of a stream that are handed to a connection at once.

TLS keeps several copies of what it is given, until the client takes it: whole chunks of a megabyte
cost seven for each client that does not read.
"""

MAX_WARNINGS = 4 << 10
"""Most bytes of all Warning headers of one answer, as apiserver `warning` bounds them."""


class ResponseSender:
    """Sends responses, and can end all live streams at once."""

    def __init__(self) -> None:
        self._live_streams: set[asyncio.Task[None]] = set()

    def end_streams(self) -> None:
        """End every live stream as if its time were over: each client sees a complete answer."""
        for task in self._live_streams:
            task.cancel()

    async def send(
        self,
        response: Response,
        send: Send,
        receive: Receive,
        *,
        head: bool,
        gzip: bool,
        warnings: Sequence[str],
        abort: Callable[[], None] | None = None,
    ) -> None:
        """Send the response, or as much as the client stays for.

        Then release what the response held. `abort` cuts the connection of a client that does not
        take a stream in its time.
        """
        try:
            if response.stream is None:
                await self._send_body(response, send, gzip, warnings)
            elif head:
                await _send_start(response, send, warnings, [])
                await send({"type": "http.response.body"})
            else:
                is_whole = await self._send_stream(
                    response, response.stream, send, receive, gzip, warnings
                )
                if not is_whole and abort is not None:
                    abort()
                    await _wait_for_disconnect(receive)
        finally:
            if response.stream is not None:
                await response.stream.aclose()
            if response.release is not None:
                response.release()

    async def _send_body(
        self, response: Response, send: Send, gzip: bool, warnings: Sequence[str]
    ) -> None:
        body = response.body
        extra: list[tuple[str, str]] = []
        if gzip and len(body) > GZIP_MIN_BYTES:
            body = await asyncio.to_thread(_compress_body, body)
            extra.append(("content-encoding", "gzip"))
        if response.status not in (204, 304):
            extra.append(("content-length", str(len(body))))
        await _send_start(response, send, warnings, extra)
        await send({"type": "http.response.body", "body": body})

    async def _send_stream(
        self,
        response: Response,
        stream: Stream,
        send: Send,
        receive: Receive,
        gzip: bool,
        warnings: Sequence[str],
    ) -> bool:
        """Send a stream; return False when the client has not taken it within its `max_seconds`."""
        is_compressed = gzip and not response.live
        loop = asyncio.get_running_loop()
        end = None if response.max_seconds is None else loop.time() + response.max_seconds
        await _send_start(
            response, send, warnings, [("content-encoding", "gzip")] if is_compressed else []
        )
        sending = asyncio.create_task(
            _send_chunks(_compress_stream(stream) if is_compressed else stream, send)
        )
        disconnect = asyncio.create_task(_wait_for_disconnect(receive))
        if response.live:
            self._live_streams.add(sending)
        is_late = False
        try:
            done, _ = await asyncio.wait(
                {sending, disconnect},
                timeout=response.max_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            is_late = not done
        finally:
            self._live_streams.discard(sending)
            sending.cancel()
            disconnect.cancel()
            # The stream must have ended before `send` closes it: a running generator cannot be.
            await asyncio.wait({sending, disconnect})
        # A stream that failed raises here, so its answer is cut and does not look complete.
        if not sending.cancelled():
            sending.result()
        if is_late:
            return False
        # Also the end of a stream waits while the client takes nothing.
        try:
            async with asyncio.timeout_at(end):
                await send({"type": "http.response.body"})
        except TimeoutError:
            return False
        return True


async def _send_start(
    response: Response, send: Send, warnings: Sequence[str], extra_headers: list[tuple[str, str]]
) -> None:
    own_headers = dict(response.headers)
    headers = (
        {"audit-id": str(uuid.uuid4()), "cache-control": "no-cache, private"}
        | own_headers
        | dict(extra_headers)
    )
    if response.content_type:
        headers["content-type"] = response.content_type
    encoded = [
        (name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()
    ]
    encoded += [(b"warning", value) for value in _build_warning_values(warnings)]
    await send({"type": "http.response.start", "status": response.status, "headers": encoded})


def _build_warning_values(warnings: Sequence[str]) -> list[bytes]:
    """Build header values as `299 - "text"`, each text once, as many as fit."""
    values: list[bytes] = []
    size = 0
    for text in dict.fromkeys(warnings):
        printable = "".join(character if character.isprintable() else " " for character in text)
        escaped = printable.replace("\\", "\\\\").replace('"', '\\"')
        value = f'299 - "{escaped}"'.encode()
        size += len(value)
        if size > MAX_WARNINGS:
            break
        values.append(value)
    return values


async def _send_chunks(stream: Stream, send: Send) -> None:
    async for chunk in stream:
        for start in range(0, len(chunk), SEND_BYTES):
            part = chunk[start : start + SEND_BYTES]
            await send({"type": "http.response.body", "body": part, "more_body": True})


async def _wait_for_disconnect(receive: Receive) -> None:
    """Return when the client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _compress_body(body: bytes) -> bytes:
    return zlib.compress(body, GZIP_LEVEL, wbits=GZIP_FORMAT)


async def _compress_stream(stream: Stream) -> AsyncGenerator[bytes, None]:
    packer = zlib.compressobj(GZIP_LEVEL, wbits=GZIP_FORMAT)
    async for chunk in stream:
        yield await asyncio.to_thread(packer.compress, chunk)
    yield packer.flush()
