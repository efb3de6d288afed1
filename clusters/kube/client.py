"""One configured client of one cluster: the official library's, with its timeouts, pool and retries
set, and its errors made ours.
"""

import contextlib
import http.client
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import urllib3
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException

from clusters.kube import errors, wire
from clusters.kube.access import Access, check_token
from clusters.kube.errors import KubeError, Unavailable
from clusters.kube.pace import Pace
from clusters.kube.skew import Skew
from clusters.kube.wire import Wire

JSON = "application/json"
USER_AGENT = "muster"
CHUNK = 64 << 10
MAX_BODY = 256 << 20
"""Bytes of one answer: a page of 500 objects of half a megabyte each."""
MAX_REFUSAL = 1 << 20

# A person chose it for this cluster, and the console says so there: no need to say it at every
# request.
urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)

Query = Sequence[tuple[str, str | int | bool]]

_TRANSPORT = (urllib3.exceptions.HTTPError, ApiException, OSError, http.client.HTTPException)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: to connect, for the server to say anything, for a whole answer to arrive, and for
    our own turn to come.
    """

    connect: float = 3.0
    read: float = 30.0
    whole: float = 120.0
    turn: float = 10.0


class Stream:
    """An answer that is read as it comes: chunks of at most CHUNK bytes. Close it, from any thread,
    or use it in a with block.

    Reading raises Unavailable when it breaks off or the server is silent for too long, and just
    ends when it was closed.
    """

    def __init__(self, response: urllib3.BaseHTTPResponse, held: Wire) -> None:
        self._response = response
        self._wire = held

    def __iter__(self) -> Iterator[bytes]:
        try:
            while not self._wire.is_cut and (chunk := self._response.read1(CHUNK)):
                yield chunk
        except (*_TRANSPORT, ValueError, AttributeError) as error:
            # A response closed under the reader's hands fails in several ways; none of them is
            # news.
            if not self._wire.is_cut:
                raise translated(error) from error
        finally:
            self._end()

    def close(self) -> None:
        self._wire.cut()
        self._end()

    def _end(self) -> None:
        self._response.close()
        self._response.release_conn()
        self._wire.release()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()


class Client:
    """Talks to one cluster as one user, from any number of threads. Nothing is sent before the
    first call; close it at the end.

    All clients of one cluster should share a `pace`, so that together they ask no more often than
    it says. `leave` is how many turns of it this one leaves free for others. `token` gives the
    bearer token of each request where it changes with time. `bars` says why nothing is sent to an
    IP address, "" where it may be.
    """

    def __init__(
        self,
        access: Access,
        *,
        pace: Pace | None = None,
        timeouts: Timeouts | None = None,
        connections: int = 32,
        leave: int = 0,
        token: Callable[[], str] | None = None,
        bars: Callable[[str], str] | None = None,
    ) -> None:
        self.access = access
        self._token = token
        self.pace = pace or Pace()
        self._leave = leave
        self.skew = Skew()
        self.timeouts = timeouts or Timeouts()
        settings = Configuration(
            host=access.server.rstrip("/"), retries=False, connection_pool_maxsize=connections
        )
        settings.keep_alive = True
        settings.verify_ssl = not access.insecure
        if access.loopback:
            settings.proxy = None
        if access.token is not None:
            settings.api_key["authorization"] = f"Bearer {access.token}"
        self._api: Any = ApiClient(settings)
        self._api.user_agent = USER_AGENT
        manager: urllib3.PoolManager = self._api.rest_client.pool_manager
        manager.pool_classes_by_scheme = wire.pools(bars)
        manager.connection_pool_kw["ssl_context"] = access.tls()
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
        """Give the idle connections back. Streams that are open stay so until they are closed."""
        self._api.close()

    def use_token(self, token: str) -> None:
        """Send this bearer token from the next request on. Raises BadKubeconfig for what is
        none.
        """
        check_token(token)
        self._api.configuration.api_key["authorization"] = f"Bearer {token}"

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: Any = None,
        content: str = JSON,
        accept: str = JSON,
        held: Wire | None = None,
    ) -> bytes:
        """The body of a 2xx answer. A read whose connection broke off is sent once more; nothing
        else is repeated.

        Raises KubeError. `held` lets another thread end the wait, which raises Unavailable.
        """
        held = held or Wire()
        try:
            return self._sent(method, path, query, body, content, accept, held)
        except Unavailable as error:
            if (
                method != "GET"
                or held.is_cut
                or not isinstance(error.__cause__, urllib3.exceptions.ProtocolError)
            ):
                raise
            return self._sent(method, path, query, body, content, accept, held)

    def open(
        self,
        path: str,
        *,
        query: Query = (),
        answer: float | None = None,
        silence: float | None = None,
        held: Wire | None = None,
    ) -> Stream:
        """Start a GET whose 2xx answer is read as it comes. `answer` is how long it may take to
        begin, `silence` between two bytes.

        Raises KubeError.
        """
        held = held or Wire()
        response = self._answer(
            "GET", path, query, None, JSON, f"{JSON}, */*", held, answer or self.timeouts.read
        )
        held.patience(silence)
        return Stream(response, held)

    def _sent(
        self, method: str, path: str, query: Query, body: Any, content: str, accept: str, held: Wire
    ) -> bytes:
        response = self._answer(
            method, path, query, body, content, accept, held, self.timeouts.read
        )
        try:
            return self._whole(response, MAX_BODY)
        finally:
            held.release()

    def _answer(
        self,
        method: str,
        path: str,
        query: Query,
        body: Any,
        content: str,
        accept: str,
        held: Wire,
        patience: float,
    ) -> urllib3.BaseHTTPResponse:
        """A 2xx answer whose body is still to be read."""
        self.pace.take(self.timeouts.turn, held.ended, leave=self._leave)
        if self._token is not None and (fresh := self._token()):
            self._api.configuration.api_key["authorization"] = f"Bearer {fresh}"
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = content
        request = self._api.param_serialize(
            method,
            path,
            query_params=list(query),
            header_params=headers,
            auth_settings=["BearerToken"],
        )
        try:
            with wire.waiting_on(held):
                sent = self._api.call_api(
                    *request[:3], body, None, _request_timeout=(self.timeouts.connect, patience)
                )
        except _TRANSPORT as error:
            held.release()
            raise translated(error) from error
        response: urllib3.BaseHTTPResponse = sent.response
        self.skew.heard(response.headers.get("Date", ""))
        if 200 <= response.status < 300:
            return response
        try:
            refusal = self._whole(response, MAX_REFUSAL)
        finally:
            held.release()
        refused = errors.from_answer(response.status, response.headers, refusal)
        if isinstance(refused, Unavailable) and refused.retry_after is not None:
            # It is asked of all of us, whoever was told.
            self.pace.hold(refused.retry_after)
        raise refused

    def _whole(self, response: urllib3.BaseHTTPResponse, most: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        deadline = time.monotonic() + self.timeouts.whole
        try:
            while chunk := response.read1(CHUNK):
                parts.append(chunk)
                size += len(chunk)
                if size > most:
                    raise Unavailable(
                        f"the answer is longer than {most >> 20} MiB", status=response.status
                    )
                if time.monotonic() > deadline:
                    raise Unavailable(
                        f"the answer took longer than {self.timeouts.whole:g} s",
                        status=response.status,
                    )
        except _TRANSPORT as error:
            response.close()
            raise translated(error) from error
        except KubeError:
            response.close()
            raise
        finally:
            with contextlib.suppress(*_TRANSPORT):
                response.release_conn()
        return b"".join(parts)


def translated(error: BaseException) -> Unavailable:
    """What the transport's error means to us. The text names no address; the library's own words go
    into `detail`.
    """
    detail = str(error)
    if isinstance(error, wire.Barred):
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
    elif isinstance(error, (urllib3.exceptions.ReadTimeoutError, TimeoutError)):
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
