"""HTTP requests to the provider.

Bounded in time and size, never redirected, and only to where they may lead.
"""

import socket
import ssl
import threading
from contextlib import suppress
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

import requests
from django.conf import settings
from requests.adapters import HTTPAdapter
from urllib3.util import ssl_

from console import url_safety

CONNECT_SECONDS, READ_SECONDS, TOTAL_SECONDS = 3.0, 5.0, 10.0
"""Seconds to connect, for the next bytes, and for all of a request and its answer."""
MAX_BODY_BYTES = 1 << 20
"""Bytes of one answer."""
CHUNK_BYTES = 64 << 10


class NotSent(requests.RequestException):
    """Nothing is sent to this address; the text says why."""


class _AddressBarred(Exception):
    """Nothing is sent over this connection.

    No OSError as NotSent is, because the transport would take that for one of its own.
    """


def list_schemes() -> tuple[str, ...]:
    """Return the allowed schemes of the provider's addresses.

    In production secrets and tokens go over TLS only.
    """
    return ("https",) if settings.OPTIONS.production else url_safety.WEB_SCHEMES


def find_url_problem(url: str) -> str:
    """Return what is wrong with an address of the provider; "" where it is fine.

    The text is the end of a sentence.
    """
    return url_safety.find_url_problem(
        url, url_safety.build_service_policy(), schemes=list_schemes(), allow_query=True
    )


class Session(requests.Session):
    """A session that allauth uses as any other, with the limits of this module."""

    def __init__(self) -> None:
        super().__init__()
        # A connection of one request only: the deadline of a request watches those that it opens.
        self.headers["Connection"] = "close"
        guarded = _GuardedAdapter()
        self.mount("https://", guarded)
        self.mount("http://", guarded)

    def request(
        self, method: str, url: str | bytes, *arguments: Any, **more: Any
    ) -> requests.Response:
        address = url.decode() if isinstance(url, bytes) else url
        if why := find_url_problem(address):
            raise NotSent(f"The address {why}.")
        if urlsplit(address).hostname in ("localhost", "127.0.0.1", "::1"):
            # A proxy would take it for its own machine.
            self.trust_env = False
        more |= {
            "timeout": (CONNECT_SECONDS, READ_SECONDS),
            "allow_redirects": False,
            "stream": True,
        }
        with _Deadline(TOTAL_SECONDS) as deadline:
            try:
                response = super().request(method, url, *arguments, **more)
                # Read here, within the limits: requests itself reads a body without end.
                response._content = _read_body(response)
            except _AddressBarred as barred:
                raise NotSent(f"The address leads where it may not: {barred}.") from None
            except requests.RequestException:
                deadline.require_time()
                raise
            # An answer that is broken off can look like one that has ended.
            deadline.require_time()
        response.headers.setdefault("content-type", "")
        return response


class _Deadline:
    """Breaks off the connections of one request when its time is up.

    The limit for the next bytes alone holds for each read: a server that sends a byte of its
    headers now and then would hold the thread for hours.
    """

    def __init__(self, seconds: float) -> None:
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._is_over = False
        self._timer = threading.Timer(seconds, self._break_off)
        self._timer.daemon = True

    def __enter__(self) -> "_Deadline":
        self._token = _deadline.set(self)
        self._timer.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._timer.cancel()
        _deadline.reset(self._token)
        with self._lock:
            for each in self._sockets:
                each.close()
            self._sockets.clear()

    def watch(self, connected: socket.socket) -> None:
        """Break this connection off as well, now where the time is up."""
        with self._lock:
            # A duplicate: TLS takes the socket itself over.
            self._sockets.append(connected.dup())
            is_over = self._is_over
        if is_over:
            self._break_off()

    def require_time(self) -> None:
        """Raise requests.Timeout where the time is up."""
        if self._is_over:
            raise requests.Timeout(f"the answer took more than {TOTAL_SECONDS:g} s")

    def _break_off(self) -> None:
        with self._lock:
            self._is_over = True
            for each in self._sockets:
                # It may have ended by itself.
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)


_deadline: ContextVar[_Deadline] = ContextVar("provider_deadline")
"""That of the request that this thread makes."""


def _read_body(response: requests.Response) -> bytes:
    body = bytearray()
    try:
        # read1 returns what has arrived; read would wait past the deadline for a full chunk.
        while chunk := response.raw.read1(CHUNK_BYTES, decode_content=True):
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise requests.ConnectionError(
                    f"the answer has more than {MAX_BODY_BYTES >> 20} MiB"
                )
    except requests.RequestException:
        raise
    except Exception as error:
        # The transport's own errors, whose classes are not ours to know.
        raise requests.ConnectionError("the answer broke off") from error
    finally:
        response.close()
    return bytes(body)


class _GuardedAdapter(HTTPAdapter):
    """Checks the IP address of a connection before anything is sent.

    A name may resolve to another address than the one that was checked before.
    """

    def build_connection_pool_key_attributes(
        self, *arguments: Any, **more: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        host, pool = super().build_connection_pool_key_attributes(*arguments, **more)
        context = ssl_.create_urllib3_context()
        # From Python 3.13 on certificates without key identifiers are refused by default, as those
        # of many an authority of one's own are; browsers take them.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return host, pool | {"ssl_context": context}

    def init_poolmanager(self, *arguments: Any, **more: Any) -> None:
        super().init_poolmanager(*arguments, **more)
        _guard_pools(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **more: Any) -> Any:
        is_new = proxy not in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **more)
        if is_new:
            # Its connections are its own: without this no deadline watches them.
            _guard_pools(manager)
        return manager


def _guard_pools(manager: Any) -> None:
    pools: dict[str, Any] = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {scheme: _guard_pool(pool) for scheme, pool in pools.items()}


def _guard_pool(pool: Any) -> Any:
    class Connection(pool.ConnectionCls):  # type: ignore[misc]
        def _new_conn(self) -> Any:
            connected = super()._new_conn()
            # Through a proxy it leads to the proxy.
            why = (
                ""
                if self.proxy
                else url_safety.build_service_policy().find_ip_problem(
                    str(connected.getpeername()[0])
                )
            )
            if why:
                connected.close()
                raise _AddressBarred(why)
            _deadline.get().watch(connected)
            return connected

    return type(pool.__name__, (pool,), {"ConnectionCls": Connection})
