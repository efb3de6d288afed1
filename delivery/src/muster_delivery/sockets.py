"""What both ends of the transport share: settings of ZeroMQ's sockets, and waking who polls."""

from __future__ import annotations

import contextlib
import socket

import zmq

HEARTBEAT_MS = 5000
SILENCE_MS = 60_000
"""A peer of which nothing whole came for so long stands still.

Heartbeats wait behind frames: a large one may be on its way for long.
"""
CONNECT_MS = 3000
LOST_MS = 4000
"""A machine that has confirmed nothing for so long is gone."""
HANDSHAKE_MS = 5000
IDLE_SECONDS = 30.0
"""A rank says so often that it is there; the server forgets one that was silent three times."""


class WakeUp:
    """Lets other threads wake one that polls."""

    def __init__(self) -> None:
        self.reader, self._writer = socket.socketpair()
        self._is_notified = False
        self.reader.setblocking(False)
        self._writer.setblocking(False)

    def notify(self) -> None:
        """Wake the thread; also before it polls."""
        if self._is_notified:
            return
        self._is_notified = True
        # A closed one has nobody to wake.
        with contextlib.suppress(OSError):
            self._writer.send(b"w")

    def clear(self) -> None:
        """Take all that woke it; whatever is looked at afterwards was not yet notified of."""
        with contextlib.suppress(BlockingIOError):
            self.reader.recv(4096)
        self._is_notified = False

    def close(self) -> None:
        """Give both ends back."""
        self.reader.close()
        self._writer.close()


def set_options(each: zmq.Socket[bytes], *, largest: int) -> None:
    each.setsockopt(zmq.LINGER, 0)
    each.setsockopt(zmq.IPV6, 1)
    each.setsockopt(zmq.MAXMSGSIZE, largest)
    each.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
    each.setsockopt(zmq.HEARTBEAT_IVL, HEARTBEAT_MS)
    each.setsockopt(zmq.HEARTBEAT_TIMEOUT, SILENCE_MS)
    # A machine that is gone is noticed within some five seconds: the kernels ask each other.
    each.setsockopt(zmq.TCP_KEEPALIVE, 1)
    each.setsockopt(zmq.TCP_KEEPALIVE_IDLE, 1)
    each.setsockopt(zmq.TCP_KEEPALIVE_INTVL, 1)
    each.setsockopt(zmq.TCP_KEEPALIVE_CNT, 3)
    each.setsockopt(zmq.TCP_MAXRT, LOST_MS)


def build_endpoint(address: tuple[str, int]) -> str:
    host, port = address
    if not host:
        host = "*"
    elif ":" in host:
        host = f"[{host}]"
    return f"tcp://{host}:{port or '*'}"
