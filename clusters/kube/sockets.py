"""Connections on which a waiting thread can be woken by another: what reading from a silent server
needs.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import urllib3

_current = threading.local()


class Cancellation:
    """The socket that one request waits on. `cut` ends that wait from any thread, and every later
    one under this wire.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.event = threading.Event()

    @property
    def is_cancelled(self) -> bool:
        return self.event.is_set()

    def cancel(self) -> None:
        with self._lock:
            self.event.set()
            self._shut_down()

    def set_read_timeout(self, seconds: float | None) -> None:
        """From now on let the server be silent for so long; None is for ever."""
        with self._lock:
            if self._socket is not None and self._socket.fileno() >= 0:
                self._socket.settimeout(seconds)

    def attach(self, connection: socket.socket | None) -> None:
        with self._lock:
            self._socket = connection
            if self.event.is_set():
                self._shut_down()

    def detach(self) -> None:
        """Forget the socket: it may serve somebody else's request next."""
        with self._lock:
            self._socket = None

    def _shut_down(self) -> None:
        if self._socket is not None:
            # Not the TLS socket's own method: that one takes its state away under the reading
            # thread.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


@contextlib.contextmanager
def attach_sockets_to(cancellation: Cancellation) -> Iterator[None]:
    """Requests of this thread, within the block, say to `wire` which socket they wait on."""
    _current.wire = cancellation
    try:
        yield
    finally:
        _current.wire = None


class AddressNotAllowed(urllib3.exceptions.HTTPError):
    """A name led to an address to which nothing is sent; the text says why."""


class _CancellableConnection:
    """A connection that tells its socket as soon as a request is sent, which is when the wait
    begins.

    `bars` says why nothing is sent to an IP address. It is asked once more when the connection
    stands: a name may lead elsewhere by then.
    """

    sock: socket.socket | None
    proxy: Any
    address_checks: ClassVar[Sequence[Callable[[str], str]]] = ()

    def _new_conn(self) -> socket.socket:
        connected: socket.socket = super()._new_conn()  # type: ignore[misc]
        # Through a proxy it leads to the proxy.
        for bars in self.address_checks if self.proxy is None else ():
            if why := bars(str(connected.getpeername()[0])):
                connected.close()
                raise AddressNotAllowed(why)
        return connected

    def request(self, *args: Any, **options: Any) -> None:
        super().request(*args, **options)  # type: ignore[misc]
        wire: Cancellation | None = getattr(_current, "wire", None)
        if wire is not None:
            wire.attach(self.sock)


class _Connection(_CancellableConnection, urllib3.connection.HTTPConnection):
    pass


class _TlsConnection(_CancellableConnection, urllib3.connection.HTTPSConnection):
    pass


def build_pool_classes(
    find_address_problem: Callable[[str], str] | None = None,
) -> dict[str, type[urllib3.HTTPConnectionPool]]:
    """The pools of such connections, by scheme."""

    class Connection(_Connection):
        pass

    class TlsConnection(_TlsConnection):
        pass

    class Pool(urllib3.HTTPConnectionPool):
        ConnectionCls = Connection

    class TlsPool(urllib3.HTTPSConnectionPool):
        ConnectionCls = TlsConnection

    Connection.address_checks = TlsConnection.address_checks = (
        (find_address_problem,) if find_address_problem else ()
    )
    return {"http": Pool, "https": TlsPool}
