"""What a cluster's Prometheus answers, asked over a real socket, becomes the figures of pods."""

from collections.abc import Sequence
from typing import Any

import pytest

from clusters.metrics.catalogue import METRICS, METRICS_BY_NAME, combine_figures
from tests.clusters.prometheus_answers import (
    TRAIN,
    TRAIN_LABELS,
    answering,
    name_figures,
    query,
    saying,
    series,
    sweep,
    vector,
)
from workloads.metrics.frames import decode_frames, encode_frame


def test_the_devices_of_a_pod_become_its_figures() -> None:
    devices = [
        series(TRAIN_LABELS | {"UUID": "GPU-1", "Hostname": "node-1"}, "0"),
        series(TRAIN_LABELS | {"UUID": "GPU-2", "Hostname": "node-1"}, "97.5"),
    ]
    found = sweep(answering(gpu_use=devices, gpus_unused=devices, gpu_memory=devices)).sweep
    wanted = {
        "gpu_use": 48.75,
        "gpus_measured": 2.0,
        "gpus_unused": 1.0,
        "gpu_memory": 97.5 * (1 << 20),
    }
    assert name_figures(found.pods[TRAIN]) == wanted
    assert name_figures(found.nodes["node-1"]) == wanted
    assert list(found.pods) == [TRAIN]


@pytest.mark.parametrize(
    ("values", "use", "unused"),
    [
        (["0"], 0.0, 1.0),
        (["30"], 30.0, 0.0),
        (["0", "0"], 0.0, 2.0),
        (["0", "30", "60"], 30.0, 1.0),
    ],
)
def test_any_number_of_devices_is_combined(values: list[str], use: float, unused: float) -> None:
    devices = [
        series(TRAIN_LABELS | {"UUID": f"GPU-{number}"}, value)
        for number, value in enumerate(values)
    ]
    found = sweep(answering(gpu_use=devices, gpus_unused=devices)).sweep
    assert name_figures(found.pods[TRAIN]) == {
        "gpu_use": use,
        "gpus_measured": float(len(values)),
        "gpus_unused": unused,
    }
    assert found.nodes == {}, "no label names a node"


def test_only_the_labels_that_name_pods_and_nodes_are_read() -> None:
    labels = TRAIN_LABELS | {"Hostname": "node-1", "UUID": "GPU-1", "modelName": "H200"}
    with saying(vector(series(labels, "5"), series({}, "6"), series(labels, "NaN"))) as server:
        [first, second] = query(server)
    assert (first.labels.namespace, first.labels.pod) == TRAIN
    assert (first.labels.hostname, first.value) == ("node-1", 5.0)
    assert (second.labels.pod, second.labels.hostname, second.value) == ("", "", 6.0)


def test_a_metric_is_asked_for_once_for_all_pods() -> None:
    server = saying(vector())
    sweep(server)
    queries = [request.query["query"] for request in server.requests]
    assert {request.path for request in server.requests} == {"/prom/api/v1/query"}
    assert queries == list(dict.fromkeys(metric.query for metric in METRICS if metric.query))


def test_labels_that_the_scrape_renamed_are_those_of_the_pod() -> None:
    labels = {
        "namespace": "gpu-operator",
        "pod": "dcgm-exporter-x",
        "exported_namespace": "muster-a",
        "exported_pod": "train-0",
        "Hostname": "n",
        "gpu": "3",
    }
    found = sweep(answering(gpu_use=[series(labels, "12")])).sweep
    assert list(found.pods) == [TRAIN]


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "101", "", "many"])
def test_what_is_no_share_of_a_device_is_not_known(value: str) -> None:
    assert sweep(answering(gpu_use=[series(TRAIN_LABELS, value)])).sweep.pods == {}


def devices_of(pods: Sequence[str], value: str, **labels: str) -> list[dict[str, Any]]:
    return [
        series({"namespace": "muster-a", "pod": pod, "Hostname": "node-1"} | labels, value)
        for pod in pods
    ]


@pytest.mark.parametrize("label", ["UUID", "gpu"])
def test_a_device_that_pods_share_is_one_device_of_the_node(label: str) -> None:
    pods = [f"part-{number}" for number in range(4)]
    shared, other = devices_of(pods, "60", **{label: "7"}), devices_of(["a"], "50", **{label: "8"})
    found = sweep(
        answering(gpu_use=shared + other, gpu_power=shared + other, gpus_unused=shared + other)
    ).sweep
    assert name_figures(found.nodes["node-1"]) == {
        "gpu_use": 55.0,
        "gpus_measured": 2.0,
        "gpus_unused": 0.0,
        "gpu_power": 110.0,
    }
    for pod in pods:
        assert found.pods["muster-a", pod][METRICS_BY_NAME["gpu_power"].code] == 60.0


def test_what_instances_repeat_of_their_device_counts_once() -> None:
    def instances(values: Sequence[str], pod: str = "train-0") -> list[dict[str, Any]]:
        return [
            found
            for number, value in enumerate(values)
            for found in devices_of([pod], value, UUID="GPU-1", gpu="0", GPU_I_ID=str(number))
        ]

    found = sweep(
        answering(
            gpu_use=instances(["0", "50", "100"]),
            gpus_unused=instances(["0", "50", "100"]),
            gpu_memory=instances(["1", "2", "3"]),
            gpu_power=instances(["300"] * 3),
            gpu_temperature=instances(["50"] * 3),
            sm_clock=instances(["1980"] * 3),
            nvlink=instances(["10"] * 3),
            pcie=instances(["20"] * 3),
            xid=instances(["79"] * 3),
            ecc_errors=instances(["2"] * 3),
            nvlink_errors=instances(["7"] * 3),
        )
    ).sweep
    wanted = {
        "gpu_use": 50.0,
        "gpus_measured": 3.0,
        "gpus_unused": 1.0,
        "gpu_memory": 6.0 * (1 << 20),
        "gpu_power": 300.0,
        "gpu_temperature": 50.0,
        "sm_clock": 1980.0,
        "nvlink": 10.0,
        "pcie": 20.0,
        "xid": 79.0,
        "ecc_errors": 2.0,
        "nvlink_errors": 7.0,
    }
    assert name_figures(found.pods[TRAIN]) == wanted
    assert name_figures(found.nodes["node-1"]) == wanted


def test_a_device_is_not_counted_beside_its_instances() -> None:
    whole = devices_of([""], "6", UUID="GPU-1")
    parts = devices_of(["train-0"], "4", UUID="GPU-1", GPU_I_ID="1")
    found = sweep(answering(gpu_memory=whole + parts)).sweep
    assert name_figures(found.nodes["node-1"]) == {"gpu_memory": 4.0 * (1 << 20)}


def test_a_device_that_two_exporters_tell_of_is_one_by_the_larger_value() -> None:
    labels = {
        "exported_namespace": "muster-a",
        "exported_pod": "train-0",
        "UUID": "GPU-1",
        "gpu": "0",
    }
    device_series = [
        *devices_of(["dcgm-a"], "200", **labels),
        *devices_of(["dcgm-b"], "210", **labels),
    ]
    for order in (device_series, device_series[::-1]):
        found = sweep(answering(gpu_power=order, gpu_use=[])).sweep
        assert found.pods == {TRAIN: {METRICS_BY_NAME["gpu_power"].code: 210.0}}
        assert found.nodes == {"node-1": {METRICS_BY_NAME["gpu_power"].code: 210.0}}


def test_the_last_xid_of_several_devices_is_the_largest_and_errors_add_up() -> None:
    faults = [
        device
        for gpu, value in enumerate(["0", "79", "31"])
        for device in devices_of(["train-0"], value, UUID=f"GPU-{gpu}")
    ]
    found = sweep(answering(xid=faults, ecc_errors=faults, nvlink_errors=faults)).sweep
    wanted = {"xid": 79.0, "ecc_errors": 110.0, "nvlink_errors": 110.0}
    assert name_figures(found.pods[TRAIN]) == wanted
    assert name_figures(found.nodes["node-1"]) == wanted
    together = combine_figures([found.nodes["node-1"], {METRICS_BY_NAME["xid"].code: 13.0}])
    assert name_figures(together) == wanted


def test_a_node_that_no_pod_is_on_has_its_faults() -> None:
    device = series({"Hostname": "node-1", "UUID": "GPU-1"}, "79")
    found = sweep(answering(xid=[device])).sweep
    assert found.pods == {}
    assert name_figures(found.nodes["node-1"]) == {"xid": 79.0}


def test_every_number_of_an_xid_is_stored_as_it_is() -> None:
    code, most = METRICS_BY_NAME["xid"].code, int(METRICS_BY_NAME["xid"].most)
    data = encode_frame(0, {number: {code: float(number)} for number in range(most + 1)})
    [frame] = decode_frames(data)
    assert list(frame.values) == list(range(most + 1))
    assert sweep(answering(xid=[series(TRAIN_LABELS, str(most + 1))])).sweep.pods == {}


def test_a_pod_whose_labels_one_of_two_scrapes_renamed_counts_once() -> None:
    renamed = {
        "namespace": "kube-system",
        "exported_namespace": "muster-a",
        "exported_pod": "train-0",
        "pod": "cadvisor-x",
    }
    found = sweep(answering(cpu=[series(TRAIN_LABELS, "1.5"), series(renamed, "1.4")])).sweep
    assert found.pods == {TRAIN: {METRICS_BY_NAME["cpu"].code: 1.5}}
