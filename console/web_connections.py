"""The web server's connections: uvicorn's protocol with bounds on what a client leaves undone.

uvicorn waits for ever for the rest of a request, and holds as many connections as are opened. Here
a head and a body have deadlines, an answer has to be taken, and an address has a bound. Streams of
live pages and logs are answers: they last, and do not count.
"""

import asyncio
import functools
import json
import socket
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from http import HTTPStatus
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from console.connection_bounds import (
    ConnectionBounds,
    Refusal,
    build_address_key,
    compute_max_connections,
)
from console.errors import build_error_body
from console.metrics.requests import is_event_stream
from console.options import read_options

HEAD_SECONDS = 10.0
"""From a connection's start, or a request's first byte, to the end of the request's head."""
MAX_HEAD_BYTES = 64 << 10
BODY_SECONDS = 10.0
"""Without a byte of a body; and how long a body may take beyond what its rate allows."""
MAX_BODY_GAP = 30.0
"""Without a byte of a body that came fast enough before. A radio that was away for a few seconds
is tried again after 1, 2, 4 and 8 s, so that an upload in its midst is silent for longer than 10.
"""
MIN_BODY_RATE = 1024
"""Bytes of a body a second, on average, from which on it counts as progress. What has come pays for
a silence by it.
"""
TAKE_SECONDS = 300.0
"""In which a client takes nothing of an answer. Long: a slow client's system takes it in gulps."""
PROBES = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""After how many seconds of silence a client's system is asked whether it is there, how many
seconds apart, and how often: two minutes in all.
"""
LINGER_SECONDS = 1.0
"""For which a refused client may read why; closed at once, its system would drop the words."""
RETRY_SECONDS = 5


class _Phase(Enum):
    """What the server waits for."""

    IDLE = "idle"
    """A next request, or the first one."""
    HEAD = "head"
    BODY = "body"
    COMPLETE = "complete"
    """Nothing of this request any more: it is being answered."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection. Its class is what `uvicorn --http` names."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.app = cast(Any, self._call_application)
        self._bounds = _get_bounds()
        self._address = ""
        self._is_counted = False
        self._is_refused = False
        self._phase = _Phase.IDLE
        self._head_bytes = 0
        self._body_bytes = 0
        self._body_began_at = 0.0
        self._progress_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._take_timer: asyncio.TimerHandle | None = None

    # The transport's calls
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        host = self.client[0] if self.client else ""
        application = self.config.loaded_app
        is_trusted = (
            isinstance(application, ProxyHeadersMiddleware) and host in application.trusted_hosts
        )
        self._enable_probes(transport)
        self._address = "" if is_trusted or not host else build_address_key(host)
        refusal = self._bounds.find_refusal(self._address)
        if refusal is not None:
            self._refuse_connection(refusal)
            return
        self._count(True)
        # A browser also opens connections ahead: without a first byte they are closed in silence.
        self._start_timer(HEAD_SECONDS, self._end_head)

    @staticmethod
    def _enable_probes(transport: asyncio.Transport) -> None:
        """Let the system find a client that is gone without a word, also while nothing is sent."""
        connection = transport.get_extra_info("socket")
        if connection is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
            return
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in PROBES.items():
            # Not every system has each of them.
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def connection_lost(self, exc: Exception | None) -> None:
        self._count(False)
        for timer in (self._timer, self._take_timer):
            if timer is not None:
                timer.cancel()
        # uvicorn leaves its own one running where the connection was cut.
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused or self.transport.is_closing():
            return
        if self._phase in (_Phase.IDLE, _Phase.HEAD):
            self._head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._phase is _Phase.HEAD and self._head_bytes > MAX_HEAD_BYTES:
            self._refuse_request(
                431, f"The head of the request is larger than {MAX_HEAD_BYTES >> 10} KiB."
            )
            return
        # Also of bytes that begin no request: uvicorn's own deadline ends with the first of them.
        if self._phase is _Phase.IDLE and self._timer is None and not self._is_answering:
            self._start_timer(HEAD_SECONDS, self._end_head)
        if not self._has_untaken_answer:
            self._cancel_take_timer()
        self._update_waiting()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_take_timer()

    def resume_writing(self) -> None:
        self._cancel_take_timer()
        super().resume_writing()

    # The parser's calls
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._phase = _Phase.HEAD
        self._start_timer(HEAD_SECONDS, self._end_head)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._phase = _Phase.BODY
        self._head_bytes = self._body_bytes = 0
        self._body_began_at = self._progress_at = self.loop.time()
        self._start_timer(BODY_SECONDS, self._check_body)

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        self._progress_at = self.loop.time()
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._phase = _Phase.COMPLETE if self._is_answering else _Phase.IDLE
        self._cancel_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._phase is _Phase.COMPLETE and not self._is_answering:
            self._phase = _Phase.IDLE
        # The transport says nothing of a buffer below its limit, and to close waits for it.
        if self._has_untaken_answer:
            self._start_take_timer()
        self._update_waiting()

    # What is bounded
    def give_way(self) -> None:
        """Close, because another client wants the place and this one has sent nothing."""
        self._count(False)
        if self._has_untaken_answer:
            # To close would wait for the client, and the place is given to another.
            self.transport.abort()
        elif self._phase is _Phase.IDLE or self._is_refused:
            self.transport.close()
        else:
            self._refuse_request(
                408, "The request did not arrive while others waited for the connection."
            )

    @property
    def _is_answering(self) -> bool:
        return bool(self.pipeline) or (self.cycle is not None and not self.cycle.response_complete)

    @property
    def _has_untaken_answer(self) -> bool:
        """Whether bytes of an answer wait here because the client does not read them."""
        return self.transport.get_write_buffer_size() > 0

    def _count(self, is_counted: bool) -> None:
        """Count this connection, or count it no more."""
        if is_counted and not self._is_counted:
            self._bounds.add(self, self._address)
        elif self._is_counted and not is_counted:
            self._bounds.remove(self, self._address)
        self._is_counted = is_counted
        if is_counted:
            self._update_waiting()

    def _update_waiting(self) -> None:
        if self._is_counted:
            is_owed = self._phase is _Phase.BODY or not self._is_answering
            is_waiting = is_owed and not self._has_untaken_answer
            self._bounds.set_waiting(self, self._address, is_waiting=is_waiting)

    async def _call_application(
        self,
        scope: Any,
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        """Call the application; while it streams events the connection does not count."""

        async def send_counted(message: Mapping[str, Any]) -> None:
            if message["type"] == "http.response.start" and is_event_stream(message):
                self._count(False)
            await send(message)

        try:
            await self.config.loaded_app(scope, receive, send_counted)
        finally:
            if not self._is_refused and not self.transport.is_closing():
                self._count(True)

    # The deadlines
    def _start_timer(self, seconds: float, end: Callable[[], None]) -> None:
        self._cancel_timer()
        self._timer = self.loop.call_later(seconds, end)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start_take_timer(self) -> None:
        if self._take_timer is None:
            self._take_timer = self.loop.call_later(TAKE_SECONDS, self._end_take)

    def _cancel_take_timer(self) -> None:
        if self._take_timer is not None:
            self._take_timer.cancel()
            self._take_timer = None

    def _end_take(self) -> None:
        self._take_timer = None
        if self._has_untaken_answer:
            self.transport.abort()

    def _end_head(self) -> None:
        if self._phase is _Phase.IDLE and not self._head_bytes:
            self.transport.close()
            return
        self._refuse_request(408, f"The head of the request did not arrive in {HEAD_SECONDS:g} s.")

    def _check_body(self) -> None:
        """Refuse a body that stands still or trickles; look again when that could be so."""
        now = self.loop.time()
        if self.flow.read_paused:
            # It is the server that does not read.
            self._body_began_at += now - self._progress_at
            self._progress_at = now
        allowed = BODY_SECONDS + self._body_bytes / MIN_BODY_RATE
        silence = min(max(BODY_SECONDS, self._body_bytes / MIN_BODY_RATE), MAX_BODY_GAP)
        deadline = min(self._progress_at + silence, self._body_began_at + allowed)
        if now < deadline:
            self._start_timer(deadline - now, self._check_body)
            return
        self._refuse_request(
            408,
            f"The body of the request did not arrive: nothing for {silence:.0f} s, or less than"
            f" {MIN_BODY_RATE} bytes a second. {self._body_bytes} bytes did.",
        )

    # Refusals
    def _refuse_connection(self, refusal: Refusal) -> None:
        if refusal is Refusal.ADDRESS_FULL:
            limit = _read_options().connections_per_address
            text = f"Your address has {limit} connections open, which is the limit."
            self._refuse(429, f"{text} Close some, or try again in {RETRY_SECONDS} seconds.")
        else:
            text = "The console has as many connections open as it can hold."
            self._refuse(503, f"{text} Try again in {RETRY_SECONDS} seconds.")
            # To linger takes a place, and there is none.
            self.transport.close()

    def _refuse_request(self, status: int, text: str) -> None:
        """Refuse what arrived of a request; where an answer is begun, only by closing."""
        if self._is_refused or self.transport.is_closing():
            return
        cycle = self.cycle
        if self._phase is _Phase.BODY:
            is_begun = bool(self.pipeline) or cycle.response_started
        else:
            is_begun = self._is_answering
        if is_begun:
            self.transport.close()
            return
        if self._phase is _Phase.BODY:
            # The application hears that the client has gone, and answers nothing.
            cycle.disconnected = True
            cycle.message_event.set()
        self._refuse(status, f"{text} Send it again.")

    def _refuse(self, status: int, text: str) -> None:
        """Answer with a status and a sentence, and close once the client has read them."""
        self._is_refused = True
        self._cancel_timer()
        self._unset_keepalive_if_required()
        self.flow.resume_reading()
        is_api = self._phase is _Phase.BODY and str(self.scope["path"]).startswith("/api/")
        kind = "application/json" if is_api else "text/plain; charset=utf-8"
        body = (json.dumps(build_error_body(status, text)) if is_api else text).encode()
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
            f"content-type: {kind}\r\ncontent-length: {len(body)}\r\n"
            f"retry-after: {RETRY_SECONDS}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._timer = self.loop.call_later(LINGER_SECONDS, self.transport.abort)


_read_options = functools.cache(read_options)


@functools.cache
def _get_bounds() -> ConnectionBounds:
    """Return the bounds of this process."""
    return ConnectionBounds(_read_options().connections_per_address, compute_max_connections())
