"""A configured client of one cluster: the official library's client with our timeouts, connection
pool and retries, and its errors translated to ours.
"""

import contextlib
import http.client
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

import urllib3
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException

from clusters.kube import errors, sockets
from clusters.kube.access import BadKubeconfig, ClusterAccess
from clusters.kube.clock_skew import ClockSkew
from clusters.kube.errors import KubeError, TooLarge, Unavailable
from clusters.kube.pending_requests import PendingRequests
from clusters.kube.rate_limits import RateLimiter
from clusters.kube.recovery import Recovery
from clusters.kube.sockets import Cancellation
from console.spans import tracing

JSON = "application/json"
USER_AGENT = "muster"
CHUNK_SIZE = 64 << 10
DEFAULT_CONNECTIONS = 32
MAX_BODY = 64 << 20
"""Bytes of one answer: a page of 500 objects of 128 KiB each. An object can have 1.5 MiB."""
MAX_REFUSAL = 1 << 20

# A person chose it for this cluster, and the console says so there: no need to say it at every
# request.
urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)

Query = Sequence[tuple[str, str | int | bool]]

_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_TRANSPORT_ERRORS = (urllib3.exceptions.HTTPError, ApiException, OSError, http.client.HTTPException)
_TIMEOUTS = (urllib3.exceptions.ReadTimeoutError, TimeoutError)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The timeouts of a client, in seconds.

    They are the times to connect, between two reads (`read`), for a whole answer (`total`), and to
    wait for the rate limiter (`rate_limit`).
    """

    connect: float = 3.0
    read: float = 30.0
    total: float = 120.0
    rate_limit: float = 10.0


class Stream:
    """An answer that is read as it arrives, in chunks of at most CHUNK_SIZE bytes. Close it, from
    any thread, or use it in a with block.

    Reading raises Unavailable when the connection breaks off or the server is silent for too long;
    it just ends when the stream was closed.
    """

    def __init__(self, response: urllib3.BaseHTTPResponse, cancellation: Cancellation) -> None:
        self._response = response
        self._cancellation = cancellation

    def __iter__(self) -> Iterator[bytes]:
        try:
            while not self._cancellation.is_cancelled and (
                chunk := self._response.read1(CHUNK_SIZE)
            ):
                yield chunk
        except (*_TRANSPORT_ERRORS, ValueError, AttributeError) as error:
            # A response that another thread closes fails in several ways while it is read; after
            # `close` none of them is an error.
            if not self._cancellation.is_cancelled:
                raise translate_error(error) from error
        finally:
            self._release()

    def close(self) -> None:
        self._cancellation.cancel()
        self._release()

    def _release(self) -> None:
        self._response.close()
        self._response.release_conn()
        self._cancellation.detach()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._release()


class Client:
    """Sends requests to one cluster as one user, from any number of threads. Nothing is sent before
    the first call; close it at the end.

    All clients of one cluster should share a `rate_limiter`, so that together they keep to its
    rate. At most `connections` that nobody uses are kept, and an answer has at most `max_body`
    bytes. `get_token` returns the bearer token of each request, and `get_authority` the authority
    to trust in PEM form, where they change with time. `find_address_problem` returns why nothing
    may be sent to an IP address, "" where it may.
    """

    def __init__(
        self,
        access: ClusterAccess,
        *,
        rate_limiter: RateLimiter | None = None,
        timeouts: Timeouts | None = None,
        connections: int = DEFAULT_CONNECTIONS,
        max_body: int = MAX_BODY,
        get_token: Callable[[], str] | None = None,
        get_authority: Callable[[], str] | None = None,
        find_address_problem: Callable[[str], str] | None = None,
    ) -> None:
        self.access = access
        self._get_token = get_token
        self._get_authority = get_authority
        self.rate_limiter = rate_limiter or RateLimiter()
        self.clock_skew = ClockSkew()
        self.recovery = Recovery()
        self.pending = PendingRequests()
        self.timeouts = timeouts or Timeouts()
        self.max_body = max_body
        settings = Configuration(
            host=access.server.rstrip("/"), retries=False, connection_pool_maxsize=connections
        )
        settings.keep_alive = True
        settings.verify_ssl = not access.insecure
        if access.is_loopback:
            settings.proxy = None
        if access.token is not None:
            settings.api_key["authorization"] = f"Bearer {access.token}"
        self._api: Any = ApiClient(settings)
        self._api.user_agent = USER_AGENT
        manager: urllib3.PoolManager = self._api.rest_client.pool_manager
        manager.pool_classes_by_scheme = sockets.build_pool_classes(find_address_problem)
        manager.connection_pool_kw["ssl_context"] = access.build_tls_context()
        if access.server_name:
            manager.connection_pool_kw["server_hostname"] = access.server_name

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the idle connections back. Open streams stay open until they are closed."""
        self._api.close()

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
        cancellation: Cancellation | None = None,
        warnings: list[str] | None = None,
    ) -> bytes:
        """Send a request and return the body of its 2xx answer.

        A GET whose connection broke off is sent once more; nothing else is repeated. Raises
        KubeError. `cancellation` lets another thread end the wait, which raises Unavailable.
        `warnings` gets the texts of the answer's Warning headers.
        """
        cancellation = cancellation or Cancellation()
        request = (method, path, query, body, content_type, accept, cancellation, warnings)
        try:
            return self._send_once(*request)
        except Unavailable as error:
            # A server may close a kept-alive connection at the moment we reuse it. Only a GET is
            # sent again: a write may have happened before the connection broke off.
            if (
                method != "GET"
                or cancellation.is_cancelled
                or not isinstance(error.__cause__, urllib3.exceptions.ProtocolError)
            ):
                raise
            return self._send_once(*request)

    def open_stream(
        self,
        path: str,
        *,
        query: Query = (),
        answer_timeout: float | None = None,
        silence_timeout: float | None = None,
        cancellation: Cancellation | None = None,
    ) -> Stream:
        """Start a GET whose 2xx answer is read as it arrives. Raises KubeError.

        `answer_timeout` is how many seconds the answer may take to begin, `silence_timeout` how
        many may pass between two bytes.
        """
        cancellation = cancellation or Cancellation()
        response = self._open_response(
            "GET",
            path,
            query,
            None,
            JSON,
            f"{JSON}, */*",
            cancellation,
            answer_timeout or self.timeouts.read,
        )
        cancellation.set_read_timeout(silence_timeout)
        return Stream(response, cancellation)

    def _send_once(
        self,
        method: str,
        path: str,
        query: Query,
        body: Any,
        content_type: str,
        accept: str,
        cancellation: Cancellation,
        warnings: list[str] | None,
    ) -> bytes:
        response = self._open_response(
            method, path, query, body, content_type, accept, cancellation, self.timeouts.read
        )
        if warnings is not None:
            warnings += _parse_warnings(response.headers.getlist("Warning"))
        try:
            return self._read_body(response, self.max_body)
        finally:
            cancellation.detach()

    def _open_response(
        self,
        method: str,
        path: str,
        query: Query,
        body: Any,
        content_type: str,
        accept: str,
        cancellation: Cancellation,
        read_timeout: float,
    ) -> urllib3.BaseHTTPResponse:
        """Return a 2xx answer whose body is still to be read."""
        self.rate_limiter.wait_turn(self.timeouts.rate_limit, cancellation.event)
        self._update_credentials()
        with tracing.open_span(
            f"cluster {method} {describe_path(path)}",
            {"http.request.method": method, "server.address": self.access.server},
        ):
            return self._exchange(
                method, path, query, body, content_type, accept, cancellation, read_timeout
            )

    def _update_credentials(self) -> None:
        """Take over the token and the authority of the moment, where they change with time."""
        if self._get_token is not None and (token := self._get_token()):
            self._api.configuration.api_key["authorization"] = f"Bearer {token}"
        if (
            self._get_authority is None
            or not (authority := self._get_authority())
            or authority == self.access.ca
        ):
            return
        # What is no authority is left for the next request, which finds another text by then.
        with contextlib.suppress(BadKubeconfig):
            self.access = replace(self.access, ca=authority)
            # It is part of the key of a pool: new requests get a new one, open streams go on.
            self._api.rest_client.pool_manager.connection_pool_kw["ssl_context"] = (
                self.access.build_tls_context()
            )

    def _exchange(
        self,
        method: str,
        path: str,
        query: Query,
        body: Any,
        content_type: str,
        accept: str,
        cancellation: Cancellation,
        read_timeout: float,
    ) -> urllib3.BaseHTTPResponse:
        """Send one request, and return its 2xx answer. Raises KubeError."""
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        request = self._api.param_serialize(
            method,
            path,
            query_params=list(query),
            header_params=headers,
            auth_settings=["BearerToken"],
        )
        try:
            with self.pending.track(), sockets.attach_sockets_to(cancellation):
                answer = self._api.call_api(
                    *request[:3], body, None, _request_timeout=(self.timeouts.connect, read_timeout)
                )
        except _TRANSPORT_ERRORS as error:
            cancellation.detach()
            # A server that is merely slow is not to be asked more often for that.
            if isinstance(error, _TIMEOUTS):
                self.pending.record_timeout()
            elif not cancellation.is_cancelled:
                self.recovery.record_failure()
            raise translate_error(error) from error
        response: urllib3.BaseHTTPResponse = answer.response
        self._record_answer(response.status)
        self.clock_skew.record_date(response.headers.get("Date", ""))
        if 200 <= response.status < 300:
            return response
        try:
            refusal = self._read_body(response, MAX_REFUSAL)
        finally:
            cancellation.detach()
        error_answered = errors.error_from_answer(response.status, response.headers, refusal)
        if isinstance(error_answered, Unavailable) and error_answered.retry_after is not None:
            # The server asks it of all requests of ours, so all threads wait, not only this one.
            self.rate_limiter.pause(error_answered.retry_after)
        raise error_answered

    def _record_answer(self, status: int) -> None:
        """Record for those who wait for the cluster that it answered, or that a proxy did."""
        self.pending.record_answer()
        if status in errors.AWAY_STATUSES:
            self.recovery.record_failure()
        elif status not in (429, 500):
            # Who is asked to wait, or met a fault of one kind of objects, proves nothing.
            self.recovery.record_answer()

    def _read_body(self, response: urllib3.BaseHTTPResponse, max_bytes: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        deadline = time.monotonic() + self.timeouts.total
        try:
            while chunk := response.read1(CHUNK_SIZE):
                parts.append(chunk)
                size += len(chunk)
                if size > max_bytes:
                    raise TooLarge(
                        f"the answer is longer than {max_bytes >> 20} MiB", status=response.status
                    )
                if time.monotonic() > deadline:
                    raise Unavailable(
                        f"the answer took longer than {self.timeouts.total:g} s",
                        status=response.status,
                    )
        except _TRANSPORT_ERRORS as error:
            response.close()
            raise translate_error(error) from error
        except KubeError:
            response.close()
            raise
        finally:
            with contextlib.suppress(*_TRANSPORT_ERRORS):
                response.release_conn()
        return b"".join(parts)


def _parse_warnings(headers: Sequence[str]) -> list[str]:
    """Return the texts of Warning headers, such as `299 - "text"` (RFC 7234, section 5.5)."""
    matches = [_WARNING.match(header) for header in headers]
    return [match[1].replace('\\"', '"') for match in matches if match]


def describe_path(path: str) -> str:
    """Return which kind of objects a path is about, without the names in it.

    /api/v1/namespaces/team/pods/rank-0/log becomes pods/log.
    """
    parts = path.strip("/").split("/")
    if parts[0] not in ("api", "apis"):
        return parts[0]
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    return "/".join(parts[:1] + parts[2:3]) or "discovery"


def translate_error(error: BaseException) -> Unavailable:
    """Return the Unavailable that an error of the transport stands for.

    Its text names no address; the library's own words go into `detail`.
    """
    detail = str(error)
    if isinstance(error, sockets.AddressNotAllowed):
        text = f"Muster does not connect to the cluster's address: {error}"
    elif isinstance(error, urllib3.exceptions.NameResolutionError):
        text = "the name in the cluster's address is not known"
    elif isinstance(error, urllib3.exceptions.NewConnectionError):
        text = (
            "the cluster refuses connections"
            if "refused" in detail
            else "the cluster cannot be reached"
        )
    elif isinstance(error, urllib3.exceptions.ConnectTimeoutError):
        text = "the cluster does not answer"
    elif isinstance(error, _TIMEOUTS):
        text = "the cluster did not answer in time"
    elif isinstance(error, ApiException) or "SSL" in type(error).__name__:
        text = "no safe connection to the cluster: TLS failed"
        detail = str(getattr(error, "reason", "") or error)
        if "certificate verify failed" in detail:
            text = (
                "the cluster's certificate is not signed by the given authority, or is for another "
                "name"
            )
    else:
        text = "the connection to the cluster broke off"
    return Unavailable(text, detail=detail)
