"""Connections on which one thread can cancel the wait of another, as reading from a silent server
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
    """The socket that one request waits on. `cancel` ends that wait from any thread, and every
    later one under this object.
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
        """Let the server be silent for so many seconds from now on; None is for ever."""
        with self._lock:
            if self._socket is not None and self._socket.fileno() >= 0:
                self._socket.settimeout(seconds)

    def attach(self, connection: socket.socket | None) -> None:
        with self._lock:
            self._socket = connection
            # `cancel` may have come before there was a socket to shut down.
            if self.event.is_set():
                self._shut_down()

    def detach(self) -> None:
        """Forget the socket: the next request on it may be somebody else's."""
        with self._lock:
            self._socket = None

    def _shut_down(self) -> None:
        if self._socket is not None:
            # The plain socket's method: that of the TLS socket drops its TLS state while another
            # thread still reads from it.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


@contextlib.contextmanager
def attach_sockets_to(cancellation: Cancellation) -> Iterator[None]:
    """Attach the sockets that requests of this thread wait on, within the block."""
    _current.cancellation = cancellation
    try:
        yield
    finally:
        _current.cancellation = None


class AddressNotAllowed(urllib3.exceptions.HTTPError):
    """A name led to an address to which nothing is sent; the text says why."""


class _CancellableConnection:
    """A connection that attaches its socket to the current Cancellation.

    It does so as soon as a request is sent, which is when the wait begins. `address_checks` return
    why nothing is sent to an IP address. They are asked once more when the connection stands: a
    name may lead elsewhere by then.
    """

    sock: socket.socket | None
    proxy: Any
    address_checks: ClassVar[Sequence[Callable[[str], str]]] = ()

    def _new_conn(self) -> socket.socket:
        connected: socket.socket = super()._new_conn()  # type: ignore[misc]
        # Checked on the connected address and not on a resolved one: a name that resolves anew may
        # lead elsewhere (DNS rebinding). Through a proxy the peer is the proxy.
        for find_problem in self.address_checks if self.proxy is None else ():
            if problem := find_problem(str(connected.getpeername()[0])):
                connected.close()
                raise AddressNotAllowed(problem)
        return connected

    def request(self, *args: Any, **options: Any) -> None:
        super().request(*args, **options)  # type: ignore[misc]
        cancellation: Cancellation | None = getattr(_current, "cancellation", None)
        if cancellation is not None:
            # A pool may hand out any of its connections, so which socket the request waits on is
            # known only here.
            cancellation.attach(self.sock)


class _Connection(_CancellableConnection, urllib3.connection.HTTPConnection):
    pass


class _TlsConnection(_CancellableConnection, urllib3.connection.HTTPSConnection):
    pass


def build_pool_classes(
    find_address_problem: Callable[[str], str] | None = None,
) -> dict[str, type[urllib3.HTTPConnectionPool]]:
    """Return the classes of pools with such connections, by scheme."""

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
