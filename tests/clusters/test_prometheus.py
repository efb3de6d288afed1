"""What a cluster's Prometheus says of its GPUs, asked over a real socket; and what becomes of
answers that are none.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from clusters import prometheus
from clusters.prometheus import GpuUse, PrometheusError
from tests.clusters.kube.faults import Exchange, FaultServer

Labels = dict[str, str]


def fine(_: str) -> str:
    return ""


def series(labels: Labels, value: object = "0") -> dict[str, Any]:
    return {"metric": labels, "value": [1763760000.781, value]}


def vector(*found: dict[str, Any]) -> bytes:
    return json.dumps(
        {"status": "success", "data": {"resultType": "vector", "result": list(found)}}
    ).encode()


def saying(body: bytes, status: int = 200, *more: str) -> FaultServer:
    return FaultServer(lambda exchange: exchange.answer(status, body, *more))


def fetch_use(server: FaultServer, bars: Callable[[str], str] = fine) -> GpuUse:
    return prometheus.fetch_gpu_use(
        f"http://127.0.0.1:{server.port}/prom/", seconds=60, find_address_problem=bars
    )


def describe_error(server: FaultServer, bars: Callable[[str], str] = fine) -> str:
    with server, pytest.raises(PrometheusError) as refusal:
        fetch_use(server, bars)
    return str(refusal.value)


def test_each_device_of_a_pod_has_its_figure() -> None:
    body = vector(
        series({"namespace": "muster-a", "pod": "train-0", "UUID": "GPU-1"}, "0"),
        series({"namespace": "muster-a", "pod": "train-0", "UUID": "GPU-2"}, "97.5"),
    )
    with saying(body) as server:
        use = fetch_use(server)
    assert sorted(use.devices_of("muster-a", "train-0").values()) == [0.0, 97.5]
    assert use.devices_of("muster-a", "another") == {}


def test_one_question_is_asked_for_all_pods() -> None:
    with saying(vector()) as server:
        fetch_use(server)
    [request] = server.requests
    assert (request.method, request.path) == ("GET", "/prom/api/v1/query")
    assert "DCGM_FI_DEV_GPU_UTIL[60s]" in request.query["query"]


def test_labels_that_the_scrape_renamed_are_those_of_the_pod() -> None:
    labels = {
        "namespace": "gpu-operator",
        "pod": "dcgm-exporter-x",
        "exported_namespace": "muster-a",
        "exported_pod": "train-0",
    }
    with saying(vector(series(labels | {"Hostname": "n", "gpu": "3"}, "12"))) as server:
        use = fetch_use(server)
    assert list(use.devices_of("muster-a", "train-0").values()) == [12.0]
    assert use.devices_of("gpu-operator", "dcgm-exporter-x") == {}


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "101", "", "many"])
def test_what_is_no_share_of_a_device_is_not_known(value: str) -> None:
    with saying(vector(series({"namespace": "a", "pod": "b", "UUID": "1"}, value))) as server:
        assert fetch_use(server).devices_of("a", "b") == {}


@pytest.mark.parametrize(
    "body",
    [
        b"", b"<html>hello", b"[]", b"null", b'{"status": "success"}',
        b'{"status": "error", "data": {"resultType": "vector", "result": []}}',
        b'{"status": "success", "data": {"resultType": "matrix", "result": []}}',
        b"[" * 100_000, b"\xff\xfe",
        b'{"status": "success", "data": {"resultType": "vector",'
        b' "result": [{"metric": {"pod": 7}, "value": [1, "0"]}]}}',
    ],
)  # fmt: skip
def test_what_does_not_answer_as_prometheus_does_is_told_so(body: bytes) -> None:
    assert describe_error(saying(body)) == "What answers there does not answer as Prometheus does."


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "signing in"), (403, "signing in"), (500, "HTTP 500"), (302, "not followed")],
)
def test_a_refusal_says_what_to_do(status: int, words: str) -> None:
    assert words in describe_error(saying(b"no", status, "Location: http://127.0.0.1:1/"))


def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "MAX_BODY", 1 << 20)

    def endless(exchange: Exchange) -> None:
        exchange.head(200, "Transfer-Encoding: chunked")
        try:
            while True:
                exchange.chunk(b"x" * 65536)
        except OSError:
            exchange.close()

    assert "more than 1 MiB" in describe_error(FaultServer(endless))


def test_a_packed_answer_is_not_unpacked() -> None:
    assert (
        describe_error(saying(b"\x1f\x8b\x08" + b"\0" * 50, 200, "Content-Encoding: gzip"))
        == "What answers there does not answer as Prometheus does."
    )


def test_silence_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "READ", 0.2)
    assert (
        describe_error(FaultServer(lambda exchange: exchange.silence()))
        == "Prometheus did not answer in time."
    )


def test_an_answer_that_drips_ends_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "WHOLE", 0.5)

    def dripping(exchange: Exchange) -> None:
        exchange.send(b"HTTP/1.1 200 OK\r\nX: ")
        try:
            while not exchange.over.wait(0.02):
                exchange.send(b"y")
        except OSError:
            exchange.close()

    assert describe_error(FaultServer(dripping)) == "Prometheus did not answer in time."


def test_an_address_that_is_barred_is_sent_nothing() -> None:
    server = saying(vector())
    assert "it is another machine's" in describe_error(server, lambda _: "it is another machine's")
    assert server.requests == []


def test_nobody_there_is_told() -> None:
    with saying(vector()) as server:
        port = server.port
    with pytest.raises(PrometheusError, match="cannot be reached"):
        prometheus.fetch_gpu_use(f"http://127.0.0.1:{port}", seconds=60, find_address_problem=fine)
