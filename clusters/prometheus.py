"""What a cluster's Prometheus reports about its GPUs: one query for all of them, limited in time
and size. It knows no rows.
"""

import contextlib
import http.client as http_client
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import msgspec
import urllib3

from clusters.kube import sockets

METRIC = "DCGM_FI_DEV_GPU_UTIL"
CONNECT, READ, WHOLE = 3.0, 5.0, 10.0
"""Seconds: to connect, to be silent, and for all of it."""
_LATE_TEXT = "Prometheus did not answer in time."
MAX_BODY = 16 << 20
"""Bytes of an answer: some fifty thousand devices."""
MAX_SERIES = 60_000
CHUNK = 64 << 10

Pod = tuple[str, str]
"""Namespace and name."""


class PrometheusError(Exception):
    """Why there are no figures; fit for a person. It names no address."""


class _Series(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct):
    resultType: str  # noqa: N815 - the API's spelling
    result: list[_Series]


class _Answer(msgspec.Struct):
    status: str
    data: _Data


_answer_decoder = msgspec.json.Decoder(_Answer)


@dataclass(frozen=True, slots=True)
class GpuUse:
    """The use of each device of each pod, in percent: the highest in the queried time."""

    devices: Mapping[Pod, Mapping[str, float]]

    def devices_of(self, namespace: str, pod: str) -> Mapping[str, float]:
        """Return a pod's use by device name; empty where Prometheus does not know the pod."""
        return self.devices.get((namespace, pod), {})


def build_query(seconds: int) -> str:
    """Return the query for the highest use of each device in the last so many seconds.

    A scrape configuration may have renamed a pod's labels to exported_*.
    """
    by = "namespace, pod, exported_namespace, exported_pod, Hostname, UUID, gpu, GPU_I_ID"
    return f"max by ({by}) (max_over_time({METRIC}[{max(1, seconds)}s]))"


def fetch_gpu_use(url: str, *, seconds: int, find_address_problem: Callable[[str], str]) -> GpuUse:
    """Return the use of all GPUs in the last so many seconds. Raises PrometheusError.

    `find_address_problem` returns why nothing may be sent to an IP address, "" where it may.
    """
    fields = {"query": build_query(seconds), "timeout": f"{READ:g}s"}
    held = sockets.Cancellation()
    with _open_pool_manager(find_address_problem) as http, _cancel_after(WHOLE, held):
        try:
            with sockets.attach_sockets_to(held):
                response = http.request(
                    "GET",
                    f"{url.rstrip('/')}/api/v1/query",
                    fields=fields,
                    headers={
                        "Accept": "application/json",
                        "Accept-Encoding": "identity",
                        "User-Agent": "muster",
                    },
                    timeout=urllib3.Timeout(connect=CONNECT, read=READ),
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
            raise PrometheusError(
                _LATE_TEXT if held.is_cancelled else _describe_transport_error(error)
            ) from error
    if held.is_cancelled:
        raise PrometheusError(_LATE_TEXT)
    if response.status != 200:
        raise PrometheusError(_describe_refusal(response.status))
    return _parse_answer(body)


@contextlib.contextmanager
def _open_pool_manager(find_address_problem: Callable[[str], str]) -> Iterator[urllib3.PoolManager]:
    manager = urllib3.PoolManager(num_pools=1, maxsize=1)
    manager.pool_classes_by_scheme = sockets.build_pool_classes(find_address_problem)
    try:
        yield manager
    finally:
        manager.clear()


@contextlib.contextmanager
def _cancel_after(seconds: float, cancellation: sockets.Cancellation) -> Iterator[None]:
    """Cancel the wait after so many seconds, whatever the server does meanwhile: drip headers or
    say nothing.
    """
    timer = threading.Timer(seconds, cancellation.cancel)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _read_body(response: urllib3.BaseHTTPResponse) -> bytes:
    parts, size = [], 0
    try:
        while chunk := response.read1(CHUNK):
            parts.append(chunk)
            size += len(chunk)
            if size > MAX_BODY:
                raise PrometheusError(f"Prometheus answers with more than {MAX_BODY >> 20} MiB.")
    finally:
        response.close()
    return b"".join(parts)


def _parse_answer(body: bytes) -> GpuUse:
    try:
        answer = _answer_decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise PrometheusError("What answers there does not answer as Prometheus does.") from error
    if answer.status != "success" or answer.data.resultType != "vector":
        raise PrometheusError("What answers there does not answer as Prometheus does.")
    if len(answer.data.result) > MAX_SERIES:
        raise PrometheusError(f"Prometheus tells of more than {MAX_SERIES} devices.")
    use: dict[Pod, dict[str, float]] = {}
    for series in answer.data.result:
        labels = series.metric
        # Where both are there, `pod` is the exporter's own.
        pod = labels.get("exported_pod") or labels.get("pod", "")
        namespace = labels.get("exported_namespace") or labels.get("namespace", "")
        percent = _parse_percent(series.value[1])
        if not pod or not namespace or percent is None:
            continue
        device = labels.get("UUID") or f"{labels.get('Hostname', '')}/{labels.get('gpu', '')}"
        devices = use.setdefault((namespace, pod), {})
        name = f"{device}/{labels.get('GPU_I_ID', '')}"
        devices[name] = max(percent, devices.get(name, 0.0))
    return GpuUse(use)


def _parse_percent(text: str) -> float | None:
    """Parse a percentage; None for what is no share of a device."""
    try:
        percent = float(text)
    except ValueError:
        return None
    return percent if math.isfinite(percent) and 0 <= percent <= 100 else None


def _describe_refusal(status: int) -> str:
    if status in (401, 403):
        return (
            f"Prometheus wants to know who asks (HTTP {status}). Give an address at which it "
            "answers without signing in."
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
    if isinstance(
        error,
        (urllib3.exceptions.ConnectTimeoutError, urllib3.exceptions.ReadTimeoutError, TimeoutError),
    ):
        return _LATE_TEXT
    return "The connection to Prometheus broke off."
