"""The listening socket: TLS connections on loopback, each counted and bounded from its first byte.

uvicorn's own server counts requests and knows nothing of half-open connections, so the accept loop
is ours; its HTTP protocol is not.
"""

import asyncio
import errno
import logging
import resource
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from localkube.api.application import Application
from localkube.api.http_messages import ABORT

log = logging.getLogger("localkube.api")

ADDRESS = "127.0.0.1"
BACKLOG = 512
MAX_CONNECTIONS = 2_000
MAX_DESCRIPTORS = 65_536
MAX_HEADERS = 256 << 10
ACCEPTS_AT_ONCE = 64
OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
ACCEPT_PAUSE_SECONDS = 0.5
STOP_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections there may be, and how long each may do nothing.

    `max_connections` is None for what the descriptors allow.
    """

    max_connections: int | None = None
    handshake_seconds: float = 5.0
    request_seconds: float = 15.0
    """From a connection's start, or a request's first byte, to the end of the request's headers."""
    body_seconds: float = 60.0
    """From the end of a request's headers to the end of its body."""
    idle_seconds: float = 90.0
    """Between two requests."""
    stall_seconds: float = 120.0
    """While the client takes nothing of what is sent to it."""


class Listener:
    """Serves an application over TLS on 127.0.0.1.

    Port 0 picks a free one; `port` is the real one after `start`.
    """

    def __init__(
        self,
        application: Application,
        context: ssl.SSLContext,
        port: int,
        limits: ConnectionLimits = ConnectionLimits(),
    ) -> None:
        self.port = port
        self._application = application
        self._context = context
        self._limits = limits
        self._config = uvicorn.Config(
            cast(Any, application),
            http=HttpToolsProtocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=cast(int, limits.idle_seconds),
        )
        self._state = ServerState()
        self._socket: socket.socket | None = None
        self._handshake_tasks: set[asyncio.Task[None]] = set()
        self.max_connections = MAX_CONNECTIONS
        self.connection_count = 0
        """Open connections, those in their TLS handshake included."""

    async def start(self) -> None:
        """Listen. Raises OSError for a taken port."""
        self._config.load()
        self.max_connections = self._limits.max_connections or compute_max_connections()
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((ADDRESS, self.port))
            listening.listen(BACKLOG)
            listening.setblocking(False)
        except OSError:
            listening.close()
            raise
        self._socket = listening
        self.port = listening.getsockname()[1]
        asyncio.get_running_loop().add_reader(listening, self._accept_waiting)

    async def stop(self, grace: float) -> None:
        """Stop listening, end the streams, and close all connections.

        Running requests may finish for `grace` seconds; then their connections are cut.
        """
        if self._socket is None:
            return
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        self._socket = None
        self._application.end_streams()
        for task in self._handshake_tasks:
            task.cancel()
        for connection in self._list_connections():
            connection.shutdown()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace
        await _wait_until(
            lambda: (
                loop.time() >= deadline
                or not any(connection.is_busy for connection in self._list_connections())
            )
        )
        # Aborted, not closed: a client that takes nothing would keep its buffer from emptying.
        for connection in self._list_connections():
            connection.transport.abort()
        await _wait_until(lambda: not self.connection_count and not self._state.tasks)

    def _list_connections(self) -> tuple["_Connection", ...]:
        return cast(tuple[_Connection, ...], tuple(self._state.connections))

    def _accept_waiting(self) -> None:
        """Accept the connections that wait.

        Above the bound a connection is closed at once: that client notices, the others are served.
        """
        assert self._socket is not None
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                accepted, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in OUT_OF_DESCRIPTORS:
                    raise
                log.warning("no connection can be accepted now: %s", error)
                self._pause_accepting()
                return
            if self.connection_count >= self.max_connections:
                accepted.close()
                continue
            self.connection_count += 1
            task = asyncio.get_running_loop().create_task(self._complete_handshake(accepted))
            self._handshake_tasks.add(task)
            task.add_done_callback(self._handshake_tasks.discard)

    def _pause_accepting(self) -> None:
        """Stop accepting for a moment: the loop would spin on a socket that stays readable."""
        assert self._socket is not None
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._socket)
        loop.call_later(ACCEPT_PAUSE_SECONDS, self._resume_accepting)

    def _resume_accepting(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().add_reader(self._socket, self._accept_waiting)

    async def _complete_handshake(self, accepted: socket.socket) -> None:
        """Do the TLS handshake of one connection.

        A client that fails it is dropped; only the debug log says so.
        """
        # Both a lost connection and a failed handshake release; only the first may count.
        is_counted = True

        def release() -> None:
            nonlocal is_counted
            if is_counted:
                self.connection_count -= 1
            is_counted = False

        is_connected = False
        try:
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: _Connection(self._config, self._state, self._limits, release),
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=self._limits.handshake_seconds,
            )
            is_connected = True
        except (OSError, ssl.SSLError) as error:
            log.debug("a connection ended before its handshake did: %s", error)
        finally:
            if not is_connected:
                accepted.close()
                release()


async def _wait_until(condition: Callable[[], bool]) -> None:
    # A transport tells nobody when its buffer has become empty.
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(STOP_POLL_SECONDS)


class _Connection(HttpToolsProtocol):
    """uvicorn's protocol with bounds on what a client may leave undone.

    These are headers and bodies that never end, and answers that it never takes.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        state: ServerState,
        limits: ConnectionLimits,
        on_closed: Callable[[], None],
    ) -> None:
        super().__init__(config, state, {ABORT: self._abort})
        self._limits = limits
        self._on_closed = on_closed
        self._header_bytes = 0
        self._in_headers = True
        self._request_timer: asyncio.TimerHandle | None = None
        self._body_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None

    @property
    def is_busy(self) -> bool:
        """Return whether an answer is being made, or is not wholly sent."""
        unfinished = self.cycle is not None and not self.cycle.response_complete
        return unfinished or self.transport.get_write_buffer_size() > 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_request_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timers()
        super().connection_lost(exc)
        self._on_closed()

    def data_received(self, data: bytes) -> None:
        # uvicorn bounds neither the size of headers nor the time they take.
        if self._in_headers:
            self._header_bytes += len(data)
            if self._request_timer is None:
                self._start_request_timer()
        super().data_received(data)
        if self._in_headers and self._header_bytes > MAX_HEADERS:
            self.transport.abort()

    def on_message_begin(self) -> None:
        self._in_headers = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_headers = False
        self._header_bytes = 0
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None
        self._body_timer = self.loop.call_later(self._limits.body_seconds, self.transport.abort)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None
        super().on_message_complete()
        self._in_headers = True

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stall_timer is None:
            self._stall_timer = self.loop.call_later(
                self._limits.stall_seconds, self.transport.abort
            )

    def resume_writing(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
        super().resume_writing()

    def _abort(self) -> None:
        self.transport.abort()

    def _start_request_timer(self) -> None:
        self._request_timer = self.loop.call_later(
            self._limits.request_seconds, self.transport.abort
        )

    def _cancel_timers(self) -> None:
        for timer in (self._request_timer, self._body_timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        self._unset_keepalive_if_required()


def compute_max_connections() -> int:
    """Return the most connections to hold: half of this process's file descriptors.

    The descriptors are first raised to what the system allows.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < target:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
        soft = target
    return MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, soft // 2)
