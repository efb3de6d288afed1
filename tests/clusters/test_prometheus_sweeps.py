"""Sweeps of a Prometheus of which queries fail, or that is slow: what comes counts."""

import time
from itertools import pairwise

import pytest

from clusters.metrics import prometheus, sources
from tests.clusters.kube.faults import Exchange, FaultServer
from tests.clusters.prometheus_answers import (
    ASKED,
    MEASURED,
    QUERY,
    TRAIN,
    TRAIN_LABELS,
    answering_unless,
    list_asked,
    name_figures,
    saying,
    series,
    sweep,
    sweep_again,
    vector,
)


def test_what_it_gave_before_it_failed_is_kept() -> None:
    def answer(exchange: Exchange) -> None:
        if exchange.request.query["query"] == QUERY:
            exchange.answer(200, vector(series(TRAIN_LABELS, "50")))
        else:
            exchange.answer(500, b"")

    result = sweep(FaultServer(answer))
    assert name_figures(result.sweep.pods[TRAIN]) == {"gpu_use": 50.0, "gpus_measured": 1.0}
    assert result.has_answers
    assert result.problem.startswith("Prometheus did not give Unused GPUs, GPU memory, GPU ")
    assert result.problem.endswith("NVLink errors: Prometheus answers with an error (HTTP 500).")


@pytest.mark.parametrize("status", [400, 404, 422, 429, 500, 502, 503])
def test_a_query_that_fails_leaves_out_its_metric_only(status: int) -> None:
    server = answering_unless("disk_read", lambda exchange: exchange.answer(status, b"{}"))
    result = sweep(server)
    assert name_figures(result.sweep.pods[TRAIN]).keys() == MEASURED - {"disk_read"}
    assert result.has_answers
    assert result.problem == (
        f"Prometheus did not give Disk read: Prometheus answers with an error (HTTP {status})."
    )
    assert list_asked(server) == ASKED


@pytest.mark.parametrize(
    ("limit", "body", "words"),
    [
        ("MAX_SERIES", vector(*[series(TRAIN_LABELS)] * 4), "more than 3 series"),
        ("MAX_BODY", b" " * (2 << 20), "more than 0 MiB"),
    ],
)
def test_an_answer_that_is_too_large_leaves_out_its_metric_only(
    monkeypatch: pytest.MonkeyPatch, limit: str, body: bytes, words: str
) -> None:
    monkeypatch.setattr(prometheus, limit, {"MAX_SERIES": 3, "MAX_BODY": 1 << 19}[limit])
    result = sweep(answering_unless("cpu", lambda exchange: exchange.answer(200, body)))
    assert name_figures(result.sweep.pods[TRAIN]).keys() == MEASURED - {"cpu"}
    assert result.problem.startswith("Prometheus did not give CPU: ")
    assert words in result.problem


def test_silence_about_one_metric_leaves_out_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "READ", 0.5)
    result = sweep(answering_unless("gpu_use", lambda exchange: exchange.silence()))
    assert name_figures(result.sweep.pods[TRAIN]).keys() == MEASURED - {"gpu_use", "gpus_measured"}
    assert result.problem == "Prometheus did not give GPU use: Prometheus did not answer in time."


@pytest.mark.parametrize("status", [302, 401, 403])
def test_a_refusal_to_sign_in_or_a_redirect_ends_the_sweep(status: int) -> None:
    server = answering_unless("gpu_memory", lambda exchange: exchange.answer(status, b""))
    result = sweep(server)
    assert list_asked(server) == ["gpu_use", "gpus_unused", "gpu_memory"]
    assert f"HTTP {status}" in result.problem
    assert result.has_answers


def test_a_broken_connection_ends_the_sweep_and_its_query_waits_its_turn() -> None:
    with answering_unless("gpu_memory", Exchange.reset) as server:
        result = sweep_again(server)
        assert (result.problem, result.has_answers) == (
            "The connection to Prometheus broke off.",
            True,
        )
        server.requests.clear()
        assert name_figures(sweep_again(server).sweep.pods[TRAIN]).keys() == (
            MEASURED - {"gpu_memory"}
        )
    assert list_asked(server)[0] == "gpu_memory_use"
    assert list_asked(server)[-1] == "gpu_memory"


def test_nothing_is_answered_where_every_query_fails() -> None:
    result = sweep(saying(b"", 503))
    assert result.problem == "Prometheus answers with an error (HTTP 503)."
    assert not result.has_answers


def test_silence_about_every_metric_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "READ", 0.3)
    monkeypatch.setattr(prometheus, "WHOLE", 0.5)
    with FaultServer(lambda exchange: exchange.silence()) as server:
        began = time.monotonic()
        result = sweep_again(server)
        assert time.monotonic() - began < 3
    assert (result.problem, result.has_answers) == ("Prometheus did not answer in time.", False)
    assert list_asked(server) == ["gpu_use", "gpus_unused"]


def test_a_slow_prometheus_gives_each_metric_within_few_sweeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prometheus, "WHOLE", 0.5)

    def answer(exchange: Exchange) -> None:
        exchange.over.wait(0.09)
        exchange.answer(200, vector(series(TRAIN_LABELS)))

    found: set[str] = set()
    with FaultServer(answer) as server:
        # Four sweeps, more on a busy machine.
        for _ in range(20):
            result = sweep_again(server)
            assert result.problem == "Prometheus did not answer in time."
            found |= name_figures(result.sweep.pods.get(TRAIN, {})).keys()
            if found == MEASURED:
                break
    assert found == MEASURED
    metric_names = list_asked(server)
    cut_short = {name for name, after in pairwise(metric_names) if name == after}
    assert cut_short, "a sweep begins with the query that the one before did not finish"


def test_a_query_that_takes_all_of_the_time_does_not_keep_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prometheus, "WHOLE", 1.0)

    def drip(exchange: Exchange) -> None:
        exchange.head(200, "Transfer-Encoding: chunked")
        try:
            while not exchange.over.wait(0.02):
                exchange.chunk(b" ")
        except OSError:
            exchange.close()

    with answering_unless("gpu_use", drip) as server:
        first, second = sweep_again(server), sweep_again(server)
    assert (first.problem, first.has_answers) == ("Prometheus did not answer in time.", False)
    assert name_figures(second.sweep.pods[TRAIN]).keys() == MEASURED - {"gpu_use", "gpus_measured"}


def test_where_sweeps_begin_is_kept_of_few_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_ROTATIONS", 2)
    for _ in range(4):
        sweep(saying(b"", 401))
    assert len(sources._first_queries) == 2
