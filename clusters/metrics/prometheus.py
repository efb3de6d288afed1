"""A cluster's Prometheus: queries that are bounded in time and size, and what becomes of answers.

It knows no rows.
"""

import http.client as http_client
import math
import threading
import time
from collections.abc import Callable
from types import TracebackType

import msgspec
import urllib3

from clusters.kube import sockets
from clusters.metrics.sign_in import SignIn, SignInWay

CONNECT, READ, WHOLE = 3.0, 5.0, 10.0
"""Seconds: to connect, to be silent, and for all queries of a client together."""
EVALUATE = 4.0
"""Seconds that Prometheus may work on a query: less than READ, so that it can say that it ended."""
MAX_BODY = 16 << 20
"""Bytes of an answer: some fifty thousand series."""
MAX_SERIES = 60_000
CHUNK = 64 << 10
_LATE_TEXT = "Prometheus did not answer in time."
_ALIEN_TEXT = "What answers there does not answer as Prometheus does."


class Labels(msgspec.Struct, frozen=True, gc=False):
    """The labels of a series that say whose it is, and of which device; the others are not kept.

    None of these classes refers to itself: the garbage collector need not look at each series.
    """

    namespace: str = ""
    pod: str = ""
    exported_namespace: str = ""
    exported_pod: str = ""
    hostname: str = msgspec.field(default="", name="Hostname")
    uuid: str = msgspec.field(default="", name="UUID")
    gpu: str = ""
    """The number of the device on its node."""
    gpu_instance: str = msgspec.field(default="", name="GPU_I_ID")
    """The part of a device that MIG divides; "" where it is whole."""


class Series(msgspec.Struct, frozen=True, gc=False):
    """A series with its finite value."""

    labels: Labels
    value: float


class PrometheusError(Exception):
    """Why there are no figures; fit for a person. It names no address."""


class QueryError(PrometheusError):
    """Why one query has no answer; the next one may have."""


class DeadlineError(PrometheusError):
    """The time for all queries together is over."""


class _Sample(msgspec.Struct, frozen=True, gc=False, array_like=True):
    at: float
    value: str


class _Series(msgspec.Struct, frozen=True, gc=False):
    metric: Labels
    value: _Sample


class _Data(msgspec.Struct):
    resultType: str  # noqa: N815 - the API's spelling
    result: list[_Series]


class _Answer(msgspec.Struct):
    status: str
    data: _Data | None = None
    error: str = ""


_answer_decoder = msgspec.json.Decoder(_Answer)


class Prometheus:
    """Queries one Prometheus over one connection; all queries together take `WHOLE` at most.

    `find_address_problem` returns why nothing may be sent to an IP address, "" where it may.
    """

    def __init__(
        self,
        url: str,
        *,
        find_address_problem: Callable[[str], str],
        sign_in: SignIn | None = None,
    ) -> None:
        self._url = url.rstrip("/")
        self._sign_in = sign_in or SignIn()
        self._cancellation = sockets.Cancellation()
        self._manager = urllib3.PoolManager(num_pools=1, maxsize=1)
        self._manager.pool_classes_by_scheme = sockets.build_pool_classes(find_address_problem)
        if self._url.startswith("https"):
            self._manager.connection_pool_kw["ssl_context"] = self._sign_in.build_tls_context()
        self._ends_at = time.monotonic() + WHOLE
        # Whatever the server does meanwhile: drip headers, or say nothing.
        self._timer = threading.Timer(WHOLE, self._cancellation.cancel)
        self._timer.daemon = True

    def __enter__(self) -> "Prometheus":
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        self._timer.join()
        self._manager.clear()

    def query(self, query: str) -> list[Series]:
        """Return the series that the query finds now, with finite values.

        Raises QueryError where others may be answered, else another PrometheusError.
        """
        body = self._fetch(query)
        try:
            answer = _answer_decoder.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise PrometheusError(_ALIEN_TEXT) from error
        if answer.status != "success" or answer.data is None:
            raise PrometheusError(_ALIEN_TEXT)
        if answer.data.resultType != "vector":
            raise PrometheusError(_ALIEN_TEXT)
        if len(answer.data.result) > MAX_SERIES:
            raise QueryError(f"Prometheus tells of more than {MAX_SERIES:,} series.")
        finite_series = []
        for series in answer.data.result:
            value = _parse_value(series.value.value)
            if value is not None:
                finite_series.append(Series(series.metric, value))
        return finite_series

    def _fetch(self, query: str) -> bytes:
        seconds_left = self._ends_at - time.monotonic()
        if seconds_left <= 0 or self._cancellation.is_cancelled:
            raise DeadlineError(_LATE_TEXT)
        try:
            with sockets.attach_sockets_to(self._cancellation):
                response = self._manager.request(
                    "GET",
                    f"{self._url}/api/v1/query",
                    fields={"query": query, "timeout": f"{EVALUATE:g}s"},
                    headers={
                        **self._sign_in.build_headers(),
                        "Accept": "application/json",
                        "Accept-Encoding": "identity",
                        "User-Agent": "muster",
                    },
                    timeout=urllib3.Timeout(
                        connect=min(CONNECT, seconds_left), read=min(READ, seconds_left)
                    ),
                    retries=False,
                    redirect=False,
                    preload_content=False,
                    decode_content=False,
                )
            body = _read_body(response)
        except (
            urllib3.exceptions.HTTPError,
            http_client.HTTPException,
            OSError,
            ValueError,
        ) as error:
            if self._cancellation.is_cancelled or time.monotonic() >= self._ends_at:
                raise DeadlineError(_LATE_TEXT) from error
            # It was reached, and is silent about this one.
            is_silent = isinstance(error, urllib3.exceptions.ReadTimeoutError)
            kind = QueryError if is_silent else PrometheusError
            raise kind(_describe_transport_error(error)) from error
        if self._cancellation.is_cancelled:
            raise DeadlineError(_LATE_TEXT)
        if response.status != 200:
            is_of_query = response.status >= 400 and response.status not in (401, 403)
            kind = QueryError if is_of_query else PrometheusError
            raise kind(_describe_refusal(response.status, self._sign_in.way))
        return body


def _read_body(response: urllib3.BaseHTTPResponse) -> bytes:
    """Return the body, and the connection to its pool; a body that is too large ends it."""
    parts, size = [], 0
    is_whole = False
    try:
        while chunk := response.read1(CHUNK):
            parts.append(chunk)
            size += len(chunk)
            if size > MAX_BODY:
                raise QueryError(f"Prometheus answers with more than {MAX_BODY >> 20} MiB.")
        is_whole = True
    finally:
        # What is left of an answer must not be taken for the next one.
        response.release_conn() if is_whole else response.close()
    return b"".join(parts)


def _parse_value(text: str) -> float | None:
    """Parse a sample's value; None for what is no finite number."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _describe_refusal(status: int, way: SignInWay) -> str:
    if status in (401, 403) and way is SignInWay.NONE:
        return (
            f"Prometheus wants to know who asks (HTTP {status}). Edit the cluster, and choose how "
            "Muster signs in to it."
        )
    if status in (401, 403):
        return (
            f"Prometheus refuses how Muster signs in (HTTP {status}). Edit the cluster, and give "
            "credentials that may read its figures."
        )
    if 300 <= status < 400:
        return (
            f"What answers there sends elsewhere (HTTP {status}), and that is not followed. Give "
            "Prometheus' own address."
        )
    return f"Prometheus answers with an error (HTTP {status})."


def _describe_transport_error(error: BaseException) -> str:
    if isinstance(error, sockets.AddressNotAllowed):
        return f"Its address leads where it may not: {error}."
    if isinstance(error, urllib3.exceptions.NameResolutionError):
        return "The name in its address is not known."
    if isinstance(error, urllib3.exceptions.NewConnectionError):
        return "Prometheus cannot be reached."
    if isinstance(error, urllib3.exceptions.SSLError):
        return (
            "The connection to Prometheus cannot be secured: its certificate is not trusted, or "
            "it refuses ours."
        )
    if isinstance(
        error,
        (urllib3.exceptions.ConnectTimeoutError, urllib3.exceptions.ReadTimeoutError, TimeoutError),
    ):
        return _LATE_TEXT
    return "The connection to Prometheus broke off."
