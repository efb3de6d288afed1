"""The queries of the catalogue on a real Prometheus, which scrapes an exposition in the form of
dcgm-exporter's and counters as cAdvisor has them.
"""

import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from clusters.metrics import sources
from clusters.metrics.catalogue import METRICS, METRICS_BY_NAME
from clusters.metrics.figures import Figures, Name, Sweep
from clusters.metrics.prometheus import Prometheus, PrometheusError
from clusters.metrics.sign_in import SignIn
from tests.console_server import BOUND_TO_US
from tests.free_ports import pick_free_port
from tests.installation import eventually

DEVICES = (Path(__file__).parent / "data" / "dcgm-exporter.txt").read_text()
TRAIN = ("muster-a", "train-0")
CPU_CORES, READ_RATE = 1.5, 4e6
BEGAN = int(time.time())
READS = "container_fs_reads_bytes_total"
SLICED = [("muster-a", f"slice-{number}") for number in range(4)]
"""Pods that share one GPU by time slicing."""
PARTS, OTHER_PART = ("muster-a", "parts-0"), ("muster-a", "parts-1")
"""Pods that have two instances and one of a GPU which MIG divides into three."""
BROKEN_FOR = 4.0
"""Seconds after the first scrape of faulty devices at which their counters change, once."""
EXEC = "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"
"""Becomes Prometheus, which so ends with these tests."""


def write_counters(milliseconds: int) -> str:
    """Counters of a pod that uses 1.5 cores, and whose second container begins anew now and then.

    They carry their moment, so that a scrape that comes late changes no rate.
    """
    seconds = milliseconds / 1000 - BEGAN
    labels = 'namespace="muster-a",pod="train-0",image="x"'
    lines = [
        f'container_cpu_usage_seconds_total{{{labels},container="pytorch"}} {seconds:.3f}',
        # Began anew every ten seconds, as one that is restarted.
        f'container_cpu_usage_seconds_total{{{labels},container="side"}} {seconds % 10 / 2:.3f}',
        f'container_cpu_usage_seconds_total{{{labels},container=""}} {seconds * 9:.3f}',
        f'container_memory_working_set_bytes{{{labels},container="pytorch"}} {3 << 30}',
        f'container_memory_working_set_bytes{{{labels},container="side"}} {1 << 30}',
        f'container_network_receive_bytes_total{{{labels},interface="eth0"}} {seconds * 1e6:.0f}',
        f'container_network_transmit_bytes_total{{{labels},interface="eth0"}} {seconds * 2e6:.0f}',
        f'container_fs_reads_bytes_total{{{labels},container="pytorch",device="/dev/sda"}}'
        f" {seconds * READ_RATE:.0f}",
    ]
    return "".join(f"{line} {milliseconds}\n" for line in lines)


def write_divided_devices() -> str:
    """What dcgm-exporter tells of a GPU that pods share, and of one that MIG divides."""
    lines = []
    for _, pod in SLICED:
        labels = f'gpu="0",UUID="GPU-sliced",Hostname="gpu-2",namespace="muster-a",pod="{pod}"'
        lines += [
            f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} 80",
            f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} 400",
            f"DCGM_FI_DEV_FB_USED{{{labels}}} 1000",
        ]
    for instance, active, used in ((7, "0.000000", 100), (8, "0.500000", 200), (9, "1.000000", 50)):
        namespace, pod = PARTS if instance < 9 else OTHER_PART
        labels = (
            f'gpu="0",UUID="GPU-mig",GPU_I_PROFILE="1g.10gb",GPU_I_ID="{instance}",'
            f'Hostname="gpu-3",namespace="{namespace}",pod="{pod}"'
        )
        lines += [
            f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{labels}}} {active}",
            f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} 300",
            f"DCGM_FI_DEV_GPU_TEMP{{{labels}}} 50",
            f"DCGM_FI_DEV_SM_CLOCK{{{labels}}} 1410",
            f"DCGM_FI_DEV_FB_USED{{{labels}}} {used}",
        ]
    return "".join(f"{line}\n" for line in sorted(lines))


def write_faulty_devices(*, is_broken: bool) -> str:
    """What dcgm-exporter tells of four devices before a fault and after it, which ends the pod.

    The driver of the third is loaded again; the fourth has one of the two counters of NVLink.
    """
    changes = {
        "DCGM_FI_DEV_XID_ERRORS": {0: (0, 48), 1: (31, 31), 2: (79, 0)},
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": {0: (5, 7), 1: (3, 3), 2: (9, 1)},
        "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": {0: (10, 15), 1: (4, 4)},
        "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": {0: (1, 2), 1: (2, 2), 3: (0, 4)},
    }
    pod = "" if is_broken else ',namespace="muster-a",pod="doomed-0"'
    return "".join(
        f'{name}{{gpu="{gpu}",UUID="GPU-{gpu}",Hostname="faulty-{gpu}"{pod}}} {values[is_broken]}\n'
        for name, by_device in changes.items()
        for gpu, values in by_device.items()
    )


class Exporter(http.server.BaseHTTPRequestHandler):
    """All exporters."""

    first_faulty_scrape: float | None = None

    def do_GET(self) -> None:
        if self.path == "/counters":
            text = write_counters(int(time.time() * 1000))
        elif self.path == "/faulty-devices":
            Exporter.first_faulty_scrape = Exporter.first_faulty_scrape or time.monotonic()
            is_broken = time.monotonic() - Exporter.first_faulty_scrape >= BROKEN_FOR
            text = write_faulty_devices(is_broken=is_broken)
        else:
            text = DEVICES if self.path == "/devices" else write_divided_devices()
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def prometheus_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus that has scraped some rounds. Skips where there is none, save in CI."""
    program = shutil.which("prometheus")
    if program is None:
        reason = "no Prometheus on this machine; install it (Debian: apt-get install prometheus)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("prometheus")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    exporter = f"127.0.0.1:{server.server_port}"
    own = {"namespace": "gpu-operator", "pod": "dcgm-exporter-x"}

    def scrape(name: str, path: str, labels: dict[str, str]) -> dict[str, Any]:
        return {
            "job_name": name,
            "metrics_path": path,
            "static_configs": [{"targets": [exporter], "labels": {"cluster": "a"} | labels}],
        }

    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [
            # Twice, as where two service monitors choose one exporter; its labels are renamed.
            scrape("dcgm", "/devices", own),
            scrape("dcgm-again", "/devices", own),
            scrape("divided", "/divided-devices", own),
            scrape("faulty", "/faulty-devices", {}),
            scrape("faulty-again", "/faulty-devices", {}),
            # Once as it is, and once with its labels renamed.
            scrape("cadvisor", "/counters", {}),
            scrape("cadvisor-again", "/counters", {"namespace": "kube-system", "pod": "kubelet-x"}),
            # Those of another cluster.
            scrape("dcgm-of-b", "/devices", own | {"cluster": "b"}),
            scrape("cadvisor-of-b", "/counters", {"cluster": "b"}),
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = pick_free_port()
    command = [
        program,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", BOUND_TO_US, str(os.getpid()), "-c", EXEC, *command],
            stdout=log,
            stderr=log,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        eventually(lambda: count_points(url) >= 8)
        eventually(lambda: has_only_broken_devices(url))
        yield url
    finally:
        process.terminate()
        process.wait(60)
        server.shutdown()
        server.server_close()


def query_api(url: str, query: str) -> list[dict[str, Any]]:
    """What Prometheus itself answers; nothing while it does not answer."""
    try:
        with urllib.request.urlopen(f"{url}/api/v1/query?{urlencode({'query': query})}") as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
            return found
    except OSError:
        return []


def count_points(url: str) -> int:
    """How often the counters were scraped."""
    counts = [len(each["values"]) for each in query_api(url, f"{READS}[1m]")]
    return max(counts, default=0)


def has_only_broken_devices(url: str) -> bool:
    """Whether both scrapes of the faulty devices have been made again since the fault."""
    found = query_api(url, 'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{Hostname="faulty-0"}')
    return [each["value"][1] for each in found] == ["7", "7"]


def sweep_all(url: str) -> Sweep:
    address = sources.PrometheusAddress(url, SignIn(), lambda _: "")
    result = sources.sweep_prometheus(address)
    assert (result.problem, result.has_answers) == ("", True)
    assert result.sweep.pods.keys() == {TRAIN, PARTS, OTHER_PART, *SLICED}
    return result.sweep


def sweep(url: str) -> dict[str, float]:
    return name_figures(sweep_all(url).pods[TRAIN])


def name_figures(figures: Figures) -> dict[str, float]:
    return {METRICS[code].name: value for code, value in figures.items()}


def test_a_device_that_pods_share_counts_once_on_its_node(prometheus_url: str) -> None:
    found = sweep_all(prometheus_url)
    wanted = {
        "gpu_use": 80.0,
        "gpus_measured": 1.0,
        "gpus_unused": 0.0,
        "gpu_memory": 1000.0 * (1 << 20),
        "gpu_power": 400.0,
    }
    assert name_figures(found.nodes["gpu-2"]) == wanted
    for pod in SLICED:
        assert name_figures(found.pods[pod]) == wanted


def test_instances_are_devices_but_for_what_is_of_the_whole(prometheus_url: str) -> None:
    found = sweep_all(prometheus_url)
    of_device = {"gpu_power": 300.0, "gpu_temperature": 50.0, "sm_clock": 1410.0}
    assert name_figures(found.nodes["gpu-3"]) == {
        "gpu_use": 50.0,
        "gpus_measured": 3.0,
        "gpus_unused": 1.0,
        "gpu_memory": 350.0 * (1 << 20),
        **of_device,
    }
    assert name_figures(found.pods[PARTS]) == {
        "gpu_use": 25.0,
        "gpus_measured": 2.0,
        "gpus_unused": 1.0,
        "gpu_memory": 300.0 * (1 << 20),
        **of_device,
    }


def test_every_metric_is_within_two_percent(prometheus_url: str) -> None:
    found = sweep(prometheus_url)
    wanted = {
        "gpu_use": 48.5,
        "gpus_measured": 2,
        "gpus_unused": 1,
        "gpu_memory": 60615 * (1 << 20),
        "gpu_memory_use": (60610 / 80999 + 5 / 80999) * 50,
        "gpu_power": 612.371 + 118.902,
        "gpu_temperature": 61,
        "sm_activity": 0.871234 * 50,
        "sm_clock": (1980 + 1755) / 2,
        "nvlink": 98123312210 + 98054410002,
        "pcie": 812331221 + 1290883120,
        "cpu": CPU_CORES,
        "memory": 4 << 30,
        "network_received": 1e6,
        "network_sent": 2e6,
        "disk_read": READ_RATE,
        "xid": 79,
        # However many there are, they have not grown.
        "ecc_errors": 0,
        "nvlink_errors": 0,
    }
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        if name != "cpu":
            assert found[name] == pytest.approx(value, rel=0.02), name
    # One of its two counters begins anew now and then: it is never less than the other's.
    assert 0.98 <= found["cpu"] <= CPU_CORES * 1.02


def test_rates_are_those_of_prometheus_itself(prometheus_url: str) -> None:
    query = METRICS_BY_NAME["disk_read"].query
    found = query_api(prometheus_url, query)
    assert len(found) == 2, "one by its own labels, and one by renamed ones"
    for own in found:
        assert sweep(prometheus_url)["disk_read"] == pytest.approx(float(own["value"][1]), rel=0.02)


def test_errors_that_ended_a_pod_have_grown_on_its_node(prometheus_url: str) -> None:
    nodes = sweep_all(prometheus_url).nodes
    assert [name_figures(nodes[f"faulty-{gpu}"]) for gpu in range(4)] == [
        {"xid": 48.0, "ecc_errors": 2.0, "nvlink_errors": 6.0},
        {"xid": 31.0, "ecc_errors": 0.0, "nvlink_errors": 0.0},
        # Its counter began anew, below what it was.
        {"xid": 0.0, "ecc_errors": 0.0},
        {"nvlink_errors": 4.0},
    ]


def test_the_growth_of_errors_is_that_of_prometheus_own_samples(prometheus_url: str) -> None:
    found = sweep_all(prometheus_url).nodes
    for gpu in range(3):
        series = query_api(
            prometheus_url, f'DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{Hostname="faulty-{gpu}"}}[5m]'
        )
        assert len(series) == 4, "with and without the pod, by two scrapes"
        samples = sorted((at, float(value)) for each in series for at, value in each["values"])
        grown = samples[-1][1] - min(value for _, value in samples)
        assert name_figures(found[f"faulty-{gpu}"])["ecc_errors"] == grown


@pytest.mark.parametrize(
    ("matchers", "names"),
    [
        ('cluster="a"', {TRAIN, PARTS, OTHER_PART, *SLICED}),
        ('cluster=~"[bc]{1}",job=~"(dcgm|cadvisor)-of-b"', {TRAIN}),
        ('cluster="c"', set()),
    ],
)
def test_matchers_choose_the_series_of_one_cluster(
    prometheus_url: str, matchers: str, names: set[Name]
) -> None:
    address = sources.PrometheusAddress(prometheus_url, SignIn(), lambda _: "", matchers)
    result = sources.sweep_prometheus(address)
    assert result.problem == ""
    assert result.sweep.pods.keys() == names
    if names:
        figures = name_figures(result.sweep.pods[TRAIN])
        assert figures.keys() == sweep(prometheus_url).keys()
        assert figures["disk_read"] == pytest.approx(READ_RATE, rel=0.02)


def test_a_query_that_it_refuses_is_an_error_in_words(prometheus_url: str) -> None:
    with (
        Prometheus(prometheus_url, find_address_problem=lambda _: "") as opened,
        pytest.raises(PrometheusError, match="HTTP 400"),
    ):
        opened.query("sum by (")
