"""Connections on which a waiting thread can be woken by another: what reading from a silent server
needs.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import urllib3

_here = threading.local()


class Wire:
    """The socket that one request waits on. `cut` ends that wait from any thread, and every later
    one under this wire.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.ended = threading.Event()

    @property
    def is_cut(self) -> bool:
        return self.ended.is_set()

    def cut(self) -> None:
        with self._lock:
            self.ended.set()
            self._shut()

    def patience(self, seconds: float | None) -> None:
        """From now on let the server be silent for so long; None is for ever."""
        with self._lock:
            if self._socket is not None and self._socket.fileno() >= 0:
                self._socket.settimeout(seconds)

    def hold(self, connected: socket.socket | None) -> None:
        with self._lock:
            self._socket = connected
            if self.ended.is_set():
                self._shut()

    def release(self) -> None:
        """Forget the socket: it may serve somebody else's request next."""
        with self._lock:
            self._socket = None

    def _shut(self) -> None:
        if self._socket is not None:
            # Not the TLS socket's own method: that one takes its state away under the reading
            # thread.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


@contextlib.contextmanager
def waiting_on(wire: Wire) -> Iterator[None]:
    """Requests of this thread, within the block, say to `wire` which socket they wait on."""
    _here.wire = wire
    try:
        yield
    finally:
        _here.wire = None


class Barred(urllib3.exceptions.HTTPError):
    """A name led to an address to which nothing is sent; the text says why."""


class _Telling:
    """A connection that tells its socket as soon as a request is sent, which is when the wait
    begins.

    `bars` says why nothing is sent to an IP address. It is asked once more when the connection
    stands: a name may lead elsewhere by then.
    """

    sock: socket.socket | None
    proxy: Any
    bars: ClassVar[Sequence[Callable[[str], str]]] = ()

    def _new_conn(self) -> socket.socket:
        connected: socket.socket = super()._new_conn()  # type: ignore[misc]
        # Through a proxy it leads to the proxy.
        for bars in self.bars if self.proxy is None else ():
            if why := bars(str(connected.getpeername()[0])):
                connected.close()
                raise Barred(why)
        return connected

    def request(self, *args: Any, **options: Any) -> None:
        super().request(*args, **options)  # type: ignore[misc]
        wire: Wire | None = getattr(_here, "wire", None)
        if wire is not None:
            wire.hold(self.sock)


class _Connection(_Telling, urllib3.connection.HTTPConnection):
    pass


class _TlsConnection(_Telling, urllib3.connection.HTTPSConnection):
    pass


def pools(bars: Callable[[str], str] | None = None) -> dict[str, type[urllib3.HTTPConnectionPool]]:
    """The pools of such connections, by scheme."""

    class Connection(_Connection):
        pass

    class TlsConnection(_TlsConnection):
        pass

    class Pool(urllib3.HTTPConnectionPool):
        ConnectionCls = Connection

    class TlsPool(urllib3.HTTPSConnectionPool):
        ConnectionCls = TlsConnection

    Connection.bars = TlsConnection.bars = (bars,) if bars else ()
    return {"http": Pool, "https": TlsPool}
