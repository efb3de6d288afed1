"""Traces: nothing of OpenTelemetry while they are off; requests, steps and calls as spans."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusters.kube import calls
from clusters.kube.access import ClusterAccess
from clusters.kube.client import Client, describe_path
from clusters.kube.errors import Unavailable
from clusters.kube.resources import PODS
from console import processes, spans
from console.celery import app, step
from console.metrics.requests import ROUTE_KEY, measure_requests
from console.options import Options
from console.spans import tracing
from tests.cluster import ROOT
from tests.free_ports import pick_free_port

pytest.importorskip("opentelemetry.sdk", reason="requirements-otel.txt is not installed")

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from console.span_export import OpenTelemetryExport, build_export

NOTHING_LOADED = """
import sys
import django
django.setup()
import console.asgi, console.celery, workloads.tasks, workloads.management.commands.follow
from console.process_health import process_health
from console.spans import tracing
tracing.start("web")
with tracing.open_span("request", {}):
    assert tracing.build_headers() == {}
# redis has its own use for other parts of it, where it is installed.
ours = ("console.span_export", "opentelemetry.exporter", "opentelemetry.sdk.trace")
print(sorted(name for name in sys.modules if name.startswith(ours)))
"""


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    """What the spans of a test are sent to."""
    kept = InMemorySpanExporter()
    export = OpenTelemetryExport("test", SimpleSpanProcessor(kept))
    tracing.use_export(export)
    yield kept
    tracing.stop()


def find_span(exporter: InMemorySpanExporter, name: str) -> ReadableSpan:
    spans_of_name = [each for each in exporter.get_finished_spans() if each.name == name]
    assert len(spans_of_name) == 1, [each.name for each in exporter.get_finished_spans()]
    return spans_of_name[0]


def answer_request(path: str, content_type: bytes, inside: Any = None) -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        scope[ROUTE_KEY] = "workloads/<uuid:pk>"
        if inside is not None:
            inside()
        headers = [(b"content-type", content_type)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body"})

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        pass

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "headers": [(b"traceparent", b"00-" + b"1" * 32 + b"-" + b"2" * 16 + b"-01")],
    }

    async def measure_request() -> None:
        await measure_requests(application)(scope, receive, send)

    asyncio.run(measure_request())


def test_nothing_of_opentelemetry_is_imported_while_it_is_off(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOTHING_LOADED], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


def test_a_request_is_a_span_by_the_pattern_of_its_address(
    exporter: InMemorySpanExporter,
) -> None:
    answer_request("/workloads/train-of-alice", b"text/html")
    span = find_span(exporter, "GET /workloads/<uuid:pk>")
    assert span.attributes == {
        "http.route": "/workloads/<uuid:pk>",
        "http.request.method": "GET",
        "http.response.status_code": 200,
    }
    assert span.resource.attributes["service.name"] == "muster-test"
    # A stranger's trace is not ours to go on.
    assert span.parent is None
    assert span.context is not None
    assert f"{span.context.trace_id:032x}" != "1" * 32


def test_the_span_of_a_stream_ends_when_its_answer_begins(exporter: InMemorySpanExporter) -> None:
    answer_request("/live", b"text/event-stream")
    assert find_span(exporter, "GET /workloads/<uuid:pk>").end_time


def test_a_step_belongs_to_the_request_that_asked_for_it(exporter: InMemorySpanExporter) -> None:
    headers: dict[str, str] = {}
    answer_request("/any", b"text/html", lambda: headers.update(tracing.build_headers()))
    with tracing.open_span("step launch", {}, headers["traceparent"]):
        pass
    request, work = (
        find_span(exporter, name) for name in ("GET /workloads/<uuid:pk>", "step launch")
    )
    assert request.context is not None
    assert work.parent is not None
    assert work.parent.span_id == request.context.span_id


@step
def of_a_trace() -> None:
    """A step that does nothing."""


def test_a_step_that_is_run_is_a_span(exporter: InMemorySpanExporter, db: None) -> None:
    # A step looks at the connections to the database that its thread has.
    sender = "00-" + "3" * 32 + "-" + "4" * 16 + "-01"
    app.tasks[f"{__name__}.of_a_trace"].apply(headers={"traceparent": sender})
    span = find_span(exporter, "step of_a_trace")
    assert span.parent is not None
    assert f"{span.parent.trace_id:032x}" == "3" * 32


def test_a_call_of_a_cluster_is_a_span_without_names_and_texts(
    exporter: InMemorySpanExporter,
) -> None:
    port = pick_free_port()
    access = ClusterAccess(server=f"http://127.0.0.1:{port}")
    with Client(access) as client, pytest.raises(Unavailable):
        calls.get(client, PODS, "train-of-alice-0", namespace="muster-team-a")
    call, *_ = exporter.get_finished_spans()
    assert call.name == "cluster GET pods"
    assert call.attributes == {
        "http.request.method": "GET",
        "server.address": f"http://127.0.0.1:{port}",
        "error.type": "Unavailable",
    }
    assert not call.events


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api/v1/namespaces/team/pods/rank-0/log", "pods/log"),
        ("/api/v1/pods", "pods"),
        ("/api/v1/namespaces/team", "namespaces"),
        ("/api/v1/nodes/node-1", "nodes"),
        ("/apis/kubeflow.org/v1/namespaces/team/pytorchjobs/train/status", "pytorchjobs/status"),
        ("/apis/kubeflow.org/v1", "discovery"),
        ("/version", "version"),
        ("", ""),
    ],
)
def test_a_path_is_described_without_names(path: str, kind: str) -> None:
    assert describe_path(path) == kind


def test_a_collector_that_is_away_holds_up_nobody() -> None:
    port = pick_free_port()
    tracing.use_export(build_export("test", f"http://127.0.0.1:{port}"))
    with tracing.open_span("lost", {}):
        pass
    began = time.monotonic()
    tracing.stop()
    # OpenTelemetry itself would try again for half a minute.
    assert time.monotonic() - began < 20
    assert tracing.build_headers() == {}


def test_a_missing_package_is_named_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = Options(traces_url="http://127.0.0.1:4318")
    assert processes.find_refusals(options) == []
    monkeypatch.setattr(spans, "PACKAGES", ("opentelemetry_of_nobody",))
    (refusal,) = processes.find_refusals(options)
    assert "MUSTER_TRACES_URL" in refusal
    assert "requirements-otel.lock" in refusal
