"""What is read of a cluster's metrics server, asked over a real socket."""

import json
from typing import Any

import pytest

from clusters.kube.client import Client
from clusters.kube.sockets import Cancellation
from clusters.metrics import metrics_server, sources
from clusters.metrics.catalogue import METRICS, METRICS_BY_NAME
from clusters.metrics.figures import Figures, Name, Sweep
from tests.clusters.kube.faults import Exchange, FaultServer, answer_plain

TRAIN = ("muster-a", "train-0")
CPU, MEMORY = METRICS_BY_NAME["cpu"].code, METRICS_BY_NAME["memory"].code
GPUS = {
    "muster.io/gpu-use": "57500m",
    "muster.io/gpus-measured": "8",
    "muster.io/gpus-unused": "0",
    "muster.io/gpu-memory": "75380031488",
    "muster.io/gpu-memory-use": "25001m",
    "muster.io/gpu-power": "725500m",
    "muster.io/gpu-temperature": "61",
    "muster.io/sm-clock": "1162500m",
}
GPU_FIGURES = {
    "gpu_use": 57.5,
    "gpus_measured": 8.0,
    "gpus_unused": 0.0,
    "gpu_memory": 75380031488.0,
    "gpu_memory_use": 25.001,
    "gpu_power": 725.5,
    "gpu_temperature": 61.0,
    "sm_clock": 1162.5,
}


def pod_metrics(*usages: dict[str, Any], name: str = "train-0") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "muster-a"},
        "containers": [{"name": f"c{index}", "usage": used} for index, used in enumerate(usages)],
    }


def node_metrics(usage: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "node-1"}, "usage": usage}


def listing(*items: dict[str, Any]) -> bytes:
    return json.dumps({"metadata": {}, "items": items}).encode()


def serving(pods: bytes = listing(), nodes: bytes = listing()) -> FaultServer:
    def answer(exchange: Exchange) -> None:
        exchange.answer(200, nodes if exchange.request.path.endswith("/nodes") else pods)

    return FaultServer(answer)


def add_up(*usages: dict[str, Any]) -> Figures | None:
    """Return the figures of a pod whose containers have these usages; None for no figures."""
    sweep = Sweep()
    with serving(listing(pod_metrics(*usages))) as server, Client(server.access) as client:
        metrics_server.add_pod_usage(sweep, client, Cancellation())
    return sweep.pods.get(TRAIN)


def name_figures(figures: Figures | None) -> dict[str, float]:
    return {METRICS[code].name: value for code, value in (figures or {}).items()}


def test_what_containers_use_adds_up() -> None:
    rank = {"cpu": "1500000000n", "memory": "2048Ki", "muster.io/disk-read": "100"}
    side = {"cpu": "250m", "memory": "1Mi", "muster.io/disk-written": "1k"}
    assert name_figures(add_up(rank | GPUS, side)) == pytest.approx(
        {
            "cpu": 1.75,
            "memory": 3.0 * (1 << 20),
            "disk_read": 100.0,
            "disk_written": 1000.0,
            **GPU_FIGURES,
        }
    )


def test_nodes_have_figures_of_their_gpus() -> None:
    sweep = Sweep()
    usage = {"cpu": "12", "memory": "1Gi", "ephemeral-storage": "5", **GPUS}
    with (
        serving(nodes=listing(node_metrics(usage))) as server,
        Client(server.access) as client,
    ):
        assert sources.add_metrics_server(sweep, client, [TRAIN]) == ""
    assert name_figures(sweep.nodes["node-1"]) == pytest.approx(
        {"cpu": 12.0, "memory": float(1 << 30), **GPU_FIGURES}
    )
    assert sweep.pods == {}


@pytest.mark.parametrize(
    ("quantity", "amount"),
    [
        ("0", 0.0),
        ("12345678n", 0.012345678),
        ("5u", 5e-6),
        ("1.5", 1.5),
        (".5", 0.5),
        ("+2", 2.0),
        ("2e3", 2000.0),
        ("1E2", 100.0),
        ("1k", 1000.0),
        (3, 3.0),
        (0.25, 0.25),
    ],
)
def test_every_form_of_a_quantity_is_read(quantity: object, amount: float) -> None:
    assert name_figures(add_up({"cpu": quantity})) == pytest.approx({"cpu": amount})


@pytest.mark.parametrize(
    "quantity",
    [
        "-1",
        "NaN",
        "Inf",
        "",
        "many",
        "1 Gi",
        "1Xi",
        "1e99",
        "100001",
        "1E",
        "٣",
        "1" * 41,
        -1,
        -0.5,
        1e300,
        int("9" * 400),
    ],
)
def test_what_no_container_can_use_is_not_known(quantity: object) -> None:
    assert add_up({"cpu": quantity}) is None
    assert name_figures(add_up({"cpu": quantity, "memory": "1Ki"})) == {"memory": 1024.0}
    assert add_up({"cpu": "1"}, {"cpu": quantity}) is None


def test_more_than_a_metric_can_be_is_left_out() -> None:
    used = {"muster.io/gpu-use": "100001m", "muster.io/gpu-temperature": "201", "memory": "2Pi"}
    assert name_figures(add_up(used | {"muster.io/gpu-power": "1"})) == {"gpu_power": 1.0}
    assert name_figures(add_up({"muster.io/gpu-use": "100"})) == {"gpu_use": 100.0}


def test_other_resources_are_ignored() -> None:
    assert add_up({"muster.io/other": "1", "nvidia.com/gpu": "many"}) is None
    assert add_up() is None


def test_what_prometheus_gave_is_kept() -> None:
    use = METRICS_BY_NAME["gpu_use"].code
    sweep = Sweep(pods={TRAIN: {use: 12.0}}, nodes={"node-1": {use: 34.0}})
    usage = {"cpu": "1", "muster.io/gpu-use": "99"}
    server = serving(listing(pod_metrics(usage)), listing(node_metrics(usage)))
    with server, Client(server.access) as client:
        assert sources.add_metrics_server(sweep, client, [TRAIN]) == ""
    assert sweep.pods == {TRAIN: {CPU: 1.0, use: 12.0}}
    assert sweep.nodes == {"node-1": {CPU: 1.0, use: 34.0}}


@pytest.mark.parametrize(
    ("pods", "is_asked"),
    [
        ([], False),
        ([TRAIN], False),
        ([TRAIN, ("muster-a", "without-memory")], True),
        ([TRAIN, ("muster-a", "without-cpu")], True),
        ([TRAIN, ("muster-a", "unknown")], True),
    ],
)
def test_pods_are_asked_for_unless_prometheus_gave_cpu_and_memory_of_each(
    pods: list[Name], is_asked: bool
) -> None:
    sweep = Sweep(
        pods={
            TRAIN: {CPU: 1.0, MEMORY: 2.0},
            ("muster-a", "without-memory"): {CPU: 1.0},
            ("muster-a", "without-cpu"): {MEMORY: 1.0},
        }
    )
    server = serving()
    with server, Client(server.access) as client:
        sources.add_metrics_server(sweep, client, pods)
    paths = [
        request.path.removeprefix("/apis/metrics.k8s.io/v1beta1") for request in server.requests
    ]
    assert paths == (["/pods", "/nodes"] if is_asked else ["/nodes"])


def test_each_figure_that_prometheus_lacks_is_added_to_its_pod() -> None:
    other = ("muster-a", "train-1")
    sweep = Sweep(pods={TRAIN: {CPU: 1.0}, ("muster-b", "somebody-elses"): {CPU: 9.0, MEMORY: 9.0}})
    body = listing(
        pod_metrics({"cpu": "2", "memory": "64"}),
        pod_metrics({"cpu": "3", "memory": "32"}, name="train-1"),
    )
    with serving(body) as server, Client(server.access) as client:
        assert sources.add_metrics_server(sweep, client, [TRAIN, other]) == ""
    assert sweep.pods[TRAIN] == {CPU: 1.0, MEMORY: 64.0}
    assert sweep.pods[other] == {CPU: 3.0, MEMORY: 32.0}


def test_a_pod_of_another_form_is_left_out_and_others_are_not() -> None:
    sweep = Sweep()
    odd = pod_metrics({"cpu": None}, name="odd")
    body = listing(odd, pod_metrics({"cpu": "1"}))
    with serving(body) as server, Client(server.access) as client:
        metrics_server.add_pod_usage(sweep, client, Cancellation())
    assert sweep.pods == {TRAIN: {CPU: 1.0}}


def test_an_answer_that_is_no_list_is_a_problem() -> None:
    with FaultServer(answer_plain(200, b"[]")) as server, Client(server.access) as client:
        assert sources.add_metrics_server(Sweep(), client, []) != ""
