"""The node's object, its lease, and what is measured on it."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from localkube.event_recorder import EventRecorder
from localkube.kubelet import proctree, retention
from localkube.kubelet.container_starter import ContainerStarter
from localkube.kubelet.gpus import Gpu
from localkube.kubelet.machine_division import NodeShare, divide_machine, measure_memory
from localkube.kubelet.node import NodeReporter, build_labels, is_nearly_full
from localkube.kubelet.pod_admission import PodAdmission
from localkube.kubelet.retention import Leftover
from localkube.kubelet.run_specs import NodeContext
from localkube.kubelet.stats import UsageStats
from localkube.metadata import Object, find_condition
from localkube.options import NODE_NAME
from localkube.resources import LEASES, NODES, PODS
from tests.localkube.kubelets import TEAM, Machine, machine, pod, shell

VIRTUAL = [Gpu(index, f"virtual-{index}", "Virtual-GPU", 16384, virtual=True) for index in range(2)]


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Machine]:
    """A cluster whose kubelet is not started."""
    made = Machine(tmp_path / "data", cpus=6.0, memory=8 << 30)
    yield made
    made.store.close()


def share(idle: Machine, devices: Sequence[Gpu]) -> NodeShare:
    (whole,) = divide_machine(idle.options, devices)
    return whole


def report_node(idle: Machine, devices: Sequence[Gpu]) -> NodeReporter:
    return NodeReporter(idle.objects, idle.options, share(idle, devices))


def get_node(idle: Machine) -> Object:
    return idle.objects.get(NODES, "", NODE_NAME)


def test_the_node_says_what_it_has(idle: Machine) -> None:
    report_node(idle, VIRTUAL).register()
    node = get_node(idle)
    expected = {"cpu": "6", "memory": "8Gi", "pods": "250", "nvidia.com/gpu": "2"}
    assert node["status"]["capacity"].items() >= expected.items()
    assert node["status"]["allocatable"] == node["status"]["capacity"]
    assert (
        node["metadata"]["labels"].items()
        >= {
            "kubernetes.io/hostname": "localkube",
            "kubernetes.io/os": "linux",
            "nvidia.com/gpu.count": "2",
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.memory": "16384",
            "localkube.muster.dev/virtual-gpu": "true",
        }.items()
    )


def test_a_node_with_real_devices_is_not_called_virtual() -> None:
    found = build_labels(NodeShare("n", {}, [Gpu(0, "GPU-a", "NVIDIA-H200", 143771)]))
    assert found["nvidia.com/gpu.product"] == "NVIDIA-H200"
    assert "localkube.muster.dev/virtual-gpu" not in found


def test_without_devices_there_is_no_such_resource(idle: Machine) -> None:
    report_node(idle, VIRTUAL).register()
    report_node(idle, []).register()
    assert "nvidia.com/gpu" not in get_node(idle)["status"]["capacity"]
    assert not any(key.startswith("nvidia.com/") for key in get_node(idle)["metadata"]["labels"])


def test_the_node_has_a_real_nodes_conditions(idle: Machine) -> None:
    report_node(idle, []).register()
    conditions = {
        entry["type"]: (entry["status"], entry["reason"])
        for entry in get_node(idle)["status"]["conditions"]
    }
    assert conditions == {
        "Ready": ("True", "KubeletReady"),
        "MemoryPressure": ("False", "KubeletHasSufficientMemory"),
        "DiskPressure": ("False", "KubeletHasNoDiskPressure"),
        "PIDPressure": ("False", "KubeletHasSufficientPID"),
    }


def test_a_renewal_mends_conditions_that_others_wrote_incomplete(idle: Machine) -> None:
    def write_incomplete(node: Object) -> None:
        node["status"]["conditions"] = [
            {},
            {"type": "Ready"},
            {"type": "PIDPressure", "status": "x"},
        ]

    node = report_node(idle, VIRTUAL)
    node.register()
    idle.objects.modify(NODES, "", NODE_NAME, write_incomplete, subresource="status")
    node.renew()
    ready = find_condition(get_node(idle)["status"]["conditions"], "Ready")
    assert ready is not None
    assert (ready["status"], ready["reason"]) == ("True", "KubeletReady")


def test_a_deleted_node_is_back_with_the_next_renewal(idle: Machine) -> None:
    node = report_node(idle, VIRTUAL)
    node.register()
    idle.objects.delete(NODES, "", NODE_NAME)
    node.renew()
    assert get_node(idle)["status"]["allocatable"]["nvidia.com/gpu"] == "2"
    assert get_node(idle)["metadata"]["labels"]["nvidia.com/gpu.count"] == "2"


def test_a_renewal_writes_the_lease_and_not_the_unchanged_node(idle: Machine) -> None:
    node = report_node(idle, VIRTUAL)
    node.register()
    before, lease = (
        get_node(idle)["metadata"]["resourceVersion"],
        idle.objects.get(LEASES, "kube-node-lease", NODE_NAME),
    )
    node.renew()
    assert get_node(idle)["metadata"]["resourceVersion"] == before
    assert (
        idle.objects.get(LEASES, "kube-node-lease", NODE_NAME)["spec"]["renewTime"]
        > lease["spec"]["renewTime"]
    )
    assert (
        lease["spec"].items() >= {"holderIdentity": NODE_NAME, "leaseDurationSeconds": 40}.items()
    )


def test_only_another_boot_counts_as_a_reboot(idle: Machine) -> None:
    assert report_node(idle, []).register() is False
    assert report_node(idle, []).register() is False
    idle.objects.modify(
        NODES,
        "",
        NODE_NAME,
        lambda node: node["status"]["nodeInfo"].update(bootID="other"),
        subresource="status",
    )
    assert report_node(idle, []).register() is True


def test_a_node_that_leaves_is_not_ready_until_it_comes_back(idle: Machine) -> None:
    node = report_node(idle, [])
    node.register()
    node.report_shutdown()
    assert (find_condition(get_node(idle)["status"]["conditions"], "Ready") or {})[
        "status"
    ] == "False"
    node.register()
    assert (find_condition(get_node(idle)["status"]["conditions"], "Ready") or {})[
        "status"
    ] == "True"


@pytest.mark.parametrize(
    ("free", "total", "full"),
    [
        (2 << 30, 1 << 40, False),
        (1 << 29, 1 << 40, True),
        (1 << 29, 2 << 30, False),
        (1 << 20, 2 << 30, True),
    ],
)
def test_a_disk_is_nearly_full_below_a_share_or_a_gigabyte(
    free: int, total: int, full: bool
) -> None:
    assert is_nearly_full(free, total) is full


def test_on_a_full_disk_nothing_is_started_and_an_event_says_why(idle: Machine) -> None:
    site = NodeContext(
        idle.objects,
        EventRecorder(idle.objects, "kubelet"),
        idle.options,
        share(idle, VIRTUAL),
        PodAdmission(idle.objects, share(idle, VIRTUAL)),
        lambda: "the disk is nearly full",
        asyncio.Lock(),
    )
    idle.submit(pod(shell("true")))
    starter = ContainerStarter(site, site.pods_directory / "u")
    made = idle.objects.get(PODS, TEAM, "p")
    assert not starter.start_container(made, made["spec"]["containers"][0], None)
    assert idle.events() == [
        ("NodeHasDiskPressure", "No container is started: the disk is nearly full")
    ]


def test_the_machines_memory_is_never_more_than_it_has() -> None:
    assert 0 < measure_memory() < 1 << 50


def test_a_busy_container_is_measured() -> None:
    busy = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])",
        ]
    )
    stats = UsageStats()
    deadline = time.monotonic() + 90
    try:
        while not (usage := stats.pod_usage().get("uid", {}).get("main")) or not usage.nanocores:
            assert time.monotonic() < deadline
            stats.measure({("uid", "main"): busy.pid})
            time.sleep(0.05)
        assert usage.memory > 1 << 20
        node = stats.node_usage()
        assert node is not None
        assert node.memory > usage.memory
    finally:
        proctree.kill_all(lambda: [busy.pid], 5.0)
        busy.wait()


def test_what_no_longer_runs_is_no_longer_measured() -> None:
    stats = UsageStats()
    for running in ({("uid", "main"): 1}, {("uid", "main"): 1}, {}):
        stats.measure(running)
    assert stats.pod_usage() == {}


def test_usage_of_running_pods_is_told_by_pod_and_container(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell("while true; do :; done")))
            await here.running()
            uid = here.pod()["metadata"]["uid"]
            usage = await here.until(lambda: here.host.pod_usage().get(uid, {}).get("main"))
            assert usage is not None
            assert usage.nanocores > 0
            assert set(here.host.node_usage()) == {NODE_NAME}

    asyncio.run(scenario())


def leftovers(*sizes: int) -> list[Leftover]:
    """Directories that changed one second after the other, oldest first."""
    return [Leftover(Path(str(number)), float(number), size) for number, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "seconds", "size", "removed"),
    [
        ((10, 10, 10), 100, 100, []),
        ((10, 10, 10), 100, 20, ["0"]),
        ((10, 10, 10), 8.5, 100, ["1", "0"]),
        ((10, 50, 10), 100, 30, ["1", "0"]),
        ((10, 10, 50), 100, 20, ["2", "1", "0"]),
    ],
)
def test_finished_pods_give_way_oldest_first(
    sizes: tuple[int, ...], seconds: float, size: int, removed: list[str]
) -> None:
    assert [
        str(path)
        for path in retention.select_surplus(
            leftovers(*sizes), now=10.0, seconds=seconds, size=size
        )
    ] == removed


def test_a_survey_measures_what_finished_pods_left(tmp_path: Path) -> None:
    (tmp_path / "one" / "main").mkdir(parents=True)
    (tmp_path / "one" / "main" / "log").write_bytes(b"x" * 100_000)
    (found,) = retention.find_leftovers(tmp_path, ["one", "gone"])
    assert found.directory == tmp_path / "one"
    assert found.size >= 100_000
