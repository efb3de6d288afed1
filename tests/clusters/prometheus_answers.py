"""What servers answer that the tests of Prometheus start, and how they are asked."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from clusters.metrics import sources
from clusters.metrics.catalogue import METRICS, METRICS_BY_NAME
from clusters.metrics.prometheus import Prometheus, PrometheusError, Series
from clusters.metrics.sign_in import SignIn
from tests.clusters.kube.faults import Exchange, FaultServer

QUERY = METRICS_BY_NAME["gpu_use"].query
TRAIN = ("muster-a", "train-0")
TRAIN_LABELS = {"namespace": "muster-a", "pod": "train-0"}
MEASURED = {metric.name for metric in METRICS if metric.query}
ASKED = [metric.name for metric in METRICS if metric.query and metric.name != "gpus_measured"]
"""What a sweep asks for, in order: one answer has both the use and the number of GPUs."""


def fine(_: str) -> str:
    return ""


def series(labels: dict[str, str], value: object = "0") -> dict[str, Any]:
    return {"metric": labels, "value": [1763760000.781, value]}


def vector(*found: dict[str, Any]) -> bytes:
    return json.dumps(
        {"status": "success", "data": {"resultType": "vector", "result": list(found)}}
    ).encode()


def saying(body: bytes, status: int = 200, *more: str) -> FaultServer:
    return FaultServer(lambda exchange: exchange.answer(status, body, *more))


def answering(**series_by_metric: list[dict[str, Any]]) -> FaultServer:
    """A Prometheus that has these series of metrics, and none of others."""
    bodies = {METRICS_BY_NAME[name].query: vector(*s) for name, s in series_by_metric.items()}

    def answer(exchange: Exchange) -> None:
        exchange.answer(200, bodies.get(exchange.request.query["query"], vector()))

    return FaultServer(answer)


def sweep(server: FaultServer, sign_in: SignIn | None = None) -> sources.SweepResult:
    with server:
        return sweep_again(server, sign_in)


def sweep_again(server: FaultServer, sign_in: SignIn | None = None) -> sources.SweepResult:
    """Sweep a server that goes on."""
    url = f"http://127.0.0.1:{server.port}/prom/"
    return sources.sweep_prometheus(sources.PrometheusAddress(url, sign_in or SignIn(), fine))


def answering_unless(name: str, step: Callable[[Exchange], None]) -> FaultServer:
    """A Prometheus that has a zero of every metric, save of one, where it takes that step."""

    def answer(exchange: Exchange) -> None:
        if exchange.request.query["query"] == METRICS_BY_NAME[name].query:
            step(exchange)
        else:
            exchange.answer(200, vector(series(TRAIN_LABELS)))

    return FaultServer(answer)


def list_asked(server: FaultServer) -> list[str]:
    """Return the names of the metrics that were asked for, the first of each query."""
    names = {metric.query: metric.name for metric in reversed(METRICS)}
    return [names[request.query["query"]] for request in server.requests]


def name_figures(figures: dict[int, float]) -> dict[str, float]:
    return {METRICS[code].name: value for code, value in figures.items()}


def query(
    server: FaultServer, bars: Callable[[str], str] = fine, sign_in: SignIn | None = None
) -> list[Series]:
    url = f"http://127.0.0.1:{server.port}/prom/"
    with Prometheus(url, find_address_problem=bars, sign_in=sign_in) as opened:
        return opened.query(QUERY)


def describe_error(
    server: FaultServer, bars: Callable[[str], str] = fine, sign_in: SignIn | None = None
) -> str:
    with server, pytest.raises(PrometheusError) as refusal:
        query(server, bars, sign_in)
    return str(refusal.value)
