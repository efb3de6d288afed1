"""The dashboard and the alerts name figures that a real installation has, and say what to do."""

import gzip
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from console import processes
from tests.cluster import ROOT
from tests.console.test_up import fetch_url
from tests.installation import Installation, eventually

MONITORING = ROOT / "deploy" / "monitoring"
DOCUMENT = ROOT / "docs" / "health.md"
FIGURE = re.compile(r"\b(?:muster|process)_[a-z_]+\b")
LABELS = {"process_id"}
POSTGRES_ONLY = {"muster_database_connections"}


class Collector(HTTPServer):
    """Takes traces as an OpenTelemetry collector does, and keeps their spans."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), TraceHandler)
        self.spans: list[tuple[str, Any]] = []
        """The service and the span."""

    def find_span(self, service: str, name: str) -> Any:
        """The first span of this name; None while there is none."""
        return next((span for of, span in self.spans if (of, span.name) == (service, name)), None)


class TraceHandler(BaseHTTPRequestHandler):
    """One request of an exporter."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        assert self.path == "/v1/traces"
        assert isinstance(self.server, Collector)
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            named = {each.key: each.value.string_value for each in group.resource.attributes}
            for scope in group.scope_spans:
                self.server.spans += [(named["service.name"], span) for span in scope.spans]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    """A collector on loopback."""
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def families(
    tmp_path_factory: pytest.TempPathFactory, collector: Collector
) -> Iterator[dict[str, Metric]]:
    """A scrape of an installation all of whose processes have reported."""
    data = tmp_path_factory.mktemp("monitoring") / "var"
    address = f"http://127.0.0.1:{collector.server_port}"
    with Installation(data, traces_url=address, poll_seconds=5).migrated() as installation:

        def scrape() -> dict[str, Metric] | None:
            status, text = fetch_url(f"{installation.url}/metrics")
            assert status == 200, text
            found = {each.name: each for each in text_string_to_metric_families(text)}
            running = {
                each.labels["process"]
                for each in found["muster_processes"].samples
                if each.value == 1
            }
            ages = {each.labels["step"] for each in found["muster_step_age_seconds"].samples}
            is_complete = running == set(processes.PROCESS_NAMES) and {"sweep", "poll_all"} <= ages
            is_watched = found.get("muster_watch_age_seconds")
            return found if is_complete and is_watched and is_watched.samples else None

        yield eventually(scrape, within=450)


def load_rules() -> list[dict[str, Any]]:
    """The alerts of the manifest."""
    manifest = yaml.safe_load((MONITORING / "prometheus-rule.yaml").read_text())
    assert (manifest["apiVersion"], manifest["kind"]) == (
        "monitoring.coreos.com/v1",
        "PrometheusRule",
    )
    return [rule for group in manifest["spec"]["groups"] for rule in group["rules"]]


def load_queries() -> list[str]:
    """The queries of the dashboard."""
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]


def list_figures(*texts: str) -> set[str]:
    return {name for text in texts for name in FIGURE.findall(text)} - LABELS


def list_names(families: dict[str, Metric]) -> set[str]:
    """Every name that a query may use of these families."""
    suffixes = {
        "counter": ("_total",),
        "gauge": ("",),
        "histogram": ("_bucket", "_sum", "_count"),
    }
    return {
        f"{name}{suffix}" for name, family in families.items() for suffix in suffixes[family.type]
    }


def test_every_figure_of_the_alerts_is_in_a_real_scrape(families: dict[str, Metric]) -> None:
    named = list_figures(*(rule["expr"] for rule in load_rules()))
    assert len(named) > 15
    assert named - list_names(families) == set()


def test_every_figure_of_the_dashboard_is_in_a_real_scrape(families: dict[str, Metric]) -> None:
    named = list_figures(*load_queries())
    assert len(named) > 25
    assert named - list_names(families) == POSTGRES_ONLY


def test_every_figure_stands_in_the_document_and_on_the_dashboard(
    families: dict[str, Metric],
) -> None:
    document = DOCUMENT.read_text()
    dashboard_figures = list_figures(*load_queries())
    for name, family in families.items():
        if not name.startswith("muster_"):
            continue
        # The table has the clusters' figures in one row.
        short = name.replace("muster_cluster_", "_") if "muster_cluster_" in name else name
        ending = "_total" if family.type == "counter" else ""
        assert f"{name}{ending}" in document or f"`{short}`" in document, name
    unseen = {
        name for name in list_names(families) if name.startswith("muster_")
    } - dashboard_figures
    assert {name for name in unseen if not name.endswith(("_sum", "_count"))} == {
        "muster_clusters_left_out",
        "muster_journal_failures_total",
    }


def test_the_processes_of_one_scrape_are_told_apart(families: dict[str, Metric]) -> None:
    memory = families["process_resident_memory_bytes"].samples
    assert {each.labels["process"] for each in memory} == set(processes.PROCESS_NAMES)
    assert all(each.value > 10 << 20 for each in memory)
    followed = families["muster_watch_age_seconds"].samples
    assert {each.labels["process"] for each in followed} == {"follow"}
    assert {each.labels["process"] for each in families["muster_steps"].samples} == {"worker"}


def test_no_figure_of_a_real_scrape_names_a_project_or_a_person(
    families: dict[str, Metric],
) -> None:
    values = {
        value
        for family in families.values()
        for sample in family.samples
        for value in sample.labels.values()
    }
    assert not [each for each in values if "team-" in each or each == "admin"]


def test_every_alert_says_what_is_and_what_to_do() -> None:
    document = DOCUMENT.read_text()
    rules = load_rules()
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"].keys() == {"summary", "action"}
        assert all(text.strip().endswith(".") for text in rule["annotations"].values()), rule
        assert rule["alert"] in document


def check_rules(tmp_path: Path, rules: dict[str, Any]) -> None:
    """Let Prometheus' own tool judge a rule file."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian's package prometheus): nothing is checked")
    file = tmp_path / "muster.rules.yaml"
    file.write_text(yaml.safe_dump(rules))
    done = subprocess.run([promtool, "check", "rules", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_are_ones_that_prometheus_takes(tmp_path: Path) -> None:
    check_rules(tmp_path, yaml.safe_load((MONITORING / "prometheus-rule.yaml").read_text())["spec"])


def test_the_queries_of_the_dashboard_are_ones_that_prometheus_takes(tmp_path: Path) -> None:
    rules = [
        {"record": f"query:{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, query in enumerate(load_queries())
    ]
    check_rules(tmp_path, {"groups": [{"name": "dashboard", "rules": rules}]})


def test_the_dashboard_has_panels_that_do_not_overlap() -> None:
    panels = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_a_collector_gets_the_spans_of_the_processes(
    families: dict[str, Metric], collector: Collector
) -> None:
    for service, name in (
        ("muster-web", "GET /metrics"),
        ("muster-worker", "step sweep"),
        ("muster-worker", "cluster GET nodes"),
        ("muster-follow", "cluster GET pods"),
    ):
        assert eventually(lambda: collector.find_span(service, name))  # noqa: B023 - it waits
    # Another step has asked for it, in a message of the broker.
    assert eventually(
        lambda: (
            {span.parent_span_id for _, span in collector.spans if span.name == "step poll"}
            & {span.span_id for _, span in collector.spans if span.name == "step poll_all"}
        )
    )
    # Of a call of a cluster it is known which step made it.
    assert all(
        span.parent_span_id
        for service, span in collector.spans
        if (service, span.name) == ("muster-worker", "cluster GET nodes")
    )
