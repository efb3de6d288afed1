"""HTTP requests to the provider.

Bounded in time and size, never redirected, and only to where they may lead.
"""

import time
from typing import Any
from urllib.parse import urlsplit

import requests
from django.conf import settings
from requests.adapters import HTTPAdapter

from console import url_safety

CONNECT_SECONDS, READ_SECONDS, TOTAL_SECONDS = 3.0, 5.0, 10.0
"""Seconds to connect, for the next bytes, and for all of an answer."""
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


def find_url_problem(url: str, *, query: bool = True) -> str:
    """Return what is wrong with an address of the provider; "" where it is fine.

    The text is the end of a sentence.
    """
    return url_safety.find_url_problem(
        url, url_safety.build_service_policy(), schemes=list_schemes(), allow_query=query
    )


class Session(requests.Session):
    """A session that allauth uses as any other, with the limits of this module."""

    def __init__(self) -> None:
        super().__init__()
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
        try:
            response = super().request(method, url, *arguments, **more)
        except _AddressBarred as barred:
            raise NotSent(f"The address leads where it may not: {barred}.") from None
        # Read here, within the limits: requests itself reads a body without end.
        response._content = _read_body(response)
        response.headers.setdefault("content-type", "")
        return response


def _read_body(response: requests.Response) -> bytes:
    until, body = time.monotonic() + TOTAL_SECONDS, bytearray()
    try:
        # read1 returns what has arrived; read would wait past the deadline for a full chunk.
        while chunk := response.raw.read1(CHUNK_BYTES, decode_content=True):
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise requests.ConnectionError(
                    f"the answer has more than {MAX_BODY_BYTES >> 20} MiB"
                )
            if time.monotonic() > until:
                raise requests.Timeout(f"the answer took more than {TOTAL_SECONDS:g} s")
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

    def init_poolmanager(self, *arguments: Any, **more: Any) -> None:
        super().init_poolmanager(*arguments, **more)
        pools: dict[str, Any] = self.poolmanager.pool_classes_by_scheme
        self.poolmanager.pool_classes_by_scheme = {
            scheme: _guard_pool(pool) for scheme, pool in pools.items()
        }


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
            return connected

    return type(pool.__name__, (pool,), {"ConnectionCls": Connection})
