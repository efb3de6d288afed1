"""Measured usage of disks and real GPUs: real processes, and nvidia-smi a script on the PATH."""

import asyncio
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from localkube.api.metrics import MetricsSource
from localkube.kubelet import gpu_usage, host, proctree
from localkube.kubelet.gpu_usage import GpuMeter, combine_readings, find_holder
from localkube.kubelet.gpus import Gpu
from localkube.kubelet.stats import UsageStats
from localkube.machine import GpuUsage
from localkube.metadata import Object
from localkube.options import GPU_DEVICES_ANNOTATION
from tests.localkube.container_runs import pods, start_shell, wait_until, wait_until_running
from tests.localkube.kubelets import Machine, machine, pod, shell

__all__ = ["pods"]

MIB = 1 << 20
GIB = 1 << 30
MAIN = ("uid", "main")
REAL = [Gpu(index, f"GPU-{index}", "H200", 143771) for index in range(4)]
IDLE, BUSY = "0, 4, 143771, 75.5, 30, 345", "95, 71885.5, 143771, 650, 61, 1980"


class NvidiaSmi:
    """A program of that name, first on the PATH; counts how often it is asked for figures."""

    def __init__(self, directory: Path) -> None:
        self.script = directory / "nvidia-smi"
        self._calls = directory / "calls"
        self._calls.touch()

    @property
    def calls(self) -> int:
        return len(self._calls.read_text())

    def answer(self, *devices: str, devices_offered: int = 0) -> None:
        """Tell these devices' figures, in the order of their indexes."""
        lines = "".join(f"{index}, {figures}\\n" for index, figures in enumerate(devices))
        self.do(f"printf '{lines}'", devices_offered=devices_offered)

    def do(self, command: str, devices_offered: int = 0) -> None:
        """Run a command when asked for figures."""
        offered = "".join(f"{i}, GPU-{i}, NVIDIA H200, 143771\\n" for i in range(devices_offered))
        script = self.script.with_suffix(".new")
        script.write_text(
            f"#!/bin/sh\ncase \"$*\" in *uuid*) printf '{offered}'; exit ;; esac\n"
            f"printf x >> {self._calls}\n{command}\n"
        )
        script.chmod(0o755)
        script.rename(self.script)


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NvidiaSmi:
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}:/bin:/usr/bin")
    monkeypatch.setattr(host, "MEASURE_SECONDS", 0.05)
    monkeypatch.setattr(gpu_usage, "QUERY_SECONDS", 60.0)
    return NvidiaSmi(directory)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A directory whose writes the kernel counts: not those of one in memory."""
    before = read_own_writes()
    with (tmp_path / "probe").open("wb") as file:
        file.write(b"x" * MIB)
        file.flush()
        os.fsync(file.fileno())
    if read_own_writes() - before < MIB:
        pytest.skip("the writes of this file system are not counted")
    return tmp_path


@pytest.fixture
def meter(nvidia_smi: NvidiaSmi) -> GpuMeter:
    return GpuMeter()


def read_own_writes() -> int:
    rows = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(rows["write_bytes"])


def list_pod_usage(here: Machine, name: str) -> Mapping[str, Mapping[str, str]]:
    """Return the usage of a pod's containers as it is served."""
    for record in MetricsSource(here.objects, here.host).list_pod_metrics():
        if record.name == name:
            containers = json.loads(record.raw)["containers"]
            return {container["name"]: container["usage"] for container in containers}
    return {}


def list_node_usage(here: Machine) -> Mapping[str, Mapping[str, str]]:
    return {
        record.name: json.loads(record.raw)["usage"]
        for record in MetricsSource(here.objects, here.host).list_node_metrics()
    }


def select_ours(usage: Mapping[str, str]) -> Mapping[str, str]:
    """Return what is told of GPUs, without our domain."""
    return {
        name.removeprefix("muster.io/"): amount
        for name, amount in usage.items()
        if name.startswith("muster.io/") and "disk" not in name
    }


# Disks


def test_what_a_container_writes_is_measured(pods: Path, disk: Path) -> None:
    # Each dd ends before the next begins: most of what is counted is that of ended processes.
    script = f"while :; do dd if=/dev/zero of={disk}/out bs=64k count=32 conv=fsync; done"
    state = wait_until_running(start_shell(pods, script))
    stats = UsageStats()
    rates: list[int] = []

    def is_measured() -> bool:
        stats.measure({MAIN: state.supervisor})
        usage = stats.pod_usage().get("uid", {}).get("main")
        if usage is not None:
            assert usage.disk_read is not None
            assert usage.disk_written is not None
            rates.append(usage.disk_written)
        time.sleep(0.1)
        return len(rates) >= 5 and sum(rate > 0 for rate in rates) >= 3

    wait_until(is_measured)
    assert all(0 <= rate < 1 << 40 for rate in rates)


def test_ended_processes_count_and_the_supervisor_does_not(disk: Path) -> None:
    write = "import sys; open(sys.argv[1], 'wb').write(bytes(int(sys.argv[2])))"
    script = (
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, '-c', {write!r}, '{disk}/child', '{4 * MIB}'])\n"
        f"open('{disk}/own', 'wb').write(bytes({16 * MIB}))\n"
        "print('written', flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        counted = proctree.measure_disk_bytes(process.pid)
        process.kill()
    assert counted is not None
    assert 4 * MIB <= counted[1] < 8 * MIB


def test_a_process_that_ends_during_the_look_makes_no_absurd_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[tuple[int, int] | None] = [
        (9 * GIB, 5 * GIB),
        (0, 5 * GIB),
        (9 * GIB, 5 * GIB),
        None,
        (9 * GIB, 5 * GIB),
        (9 * GIB, 5 * GIB),
    ]
    remaining = iter(looks)
    monkeypatch.setattr(proctree, "measure_disk_bytes", lambda root: next(remaining))
    stats = UsageStats()
    rates = []
    for _ in looks:
        stats.measure({MAIN: os.getpid()})
        if usage := stats.pod_usage().get("uid", {}).get("main"):
            rates.append((usage.disk_read, usage.disk_written))
    assert rates == [(0, 0), (0, 0), (None, None), (None, None), (0, 0)]


def test_what_is_not_ours_to_look_into_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proctree.measure_disk_bytes(1 << 30) is None
    own = proctree.measure_disk_bytes(os.getpid())
    with subprocess.Popen(["sleep", "60"]) as child:
        read_file = proctree._read_file
        monkeypatch.setattr(
            proctree,
            "_read_file",
            lambda path: b"" if path == f"/proc/{child.pid}/io" else read_file(path),
        )
        assert own is not None
        # Its threads may have written meanwhile.
        known = proctree.measure_disk_bytes(os.getpid())
        assert known is not None
        assert all(later >= before for later, before in zip(known, own, strict=True))
        child.kill()


# nvidia-smi


def test_the_devices_of_a_pod_become_its_figures(nvidia_smi: NvidiaSmi, meter: GpuMeter) -> None:
    nvidia_smi.answer(IDLE, BUSY, BUSY)
    memory_use: Any = pytest.approx(100 * 71889.5 / 143771 / 2)
    assert combine_readings(meter.measure(), [0, 1]) == GpuUsage(
        use=47.5,
        measured=2,
        unused=1,
        memory=round(71889.5 * MIB),
        memory_use=memory_use,
        power=725.5,
        temperature=61.0,
        sm_clock=1162.5,
    )
    assert nvidia_smi.calls == 1


@pytest.mark.parametrize("unknown", ["[N/A]", "[Unknown Error]", "nan", "inf", "-1", "1e999", ""])
def test_what_a_device_does_not_tell_is_left_out(
    nvidia_smi: NvidiaSmi, meter: GpuMeter, unknown: str
) -> None:
    nvidia_smi.answer(", ".join([unknown] * 6), BUSY)
    readings = meter.measure()
    assert combine_readings(readings, [0]) == GpuUsage()
    assert combine_readings(readings, [0, 1]) == combine_readings(readings, [1])
    assert combine_readings(readings, [5]) is None


def test_memory_of_unknown_size_has_no_share(nvidia_smi: NvidiaSmi, meter: GpuMeter) -> None:
    nvidia_smi.answer("3, 100, 0, [N/A], 40, 345")
    usage = combine_readings(meter.measure(), [0])
    assert usage == GpuUsage(3.0, 1, 0, 100 * MIB, None, None, 40.0, 345.0)


@pytest.mark.parametrize("output", ["", "No devices were found", "0, 1", "x, " + BUSY, "\\377"])
def test_lines_of_another_form_are_no_figures(
    nvidia_smi: NvidiaSmi, meter: GpuMeter, output: str
) -> None:
    nvidia_smi.do(f"printf '{output}'")
    assert meter.measure() == {}


def test_a_failure_is_logged_once_until_it_answers(
    nvidia_smi: NvidiaSmi, meter: GpuMeter, caplog: pytest.LogCaptureFixture
) -> None:
    def count_warnings() -> int:
        return sum(record.levelno == logging.WARNING for record in caplog.records)

    nvidia_smi.do(f"echo '0, {BUSY}'; exit 15")
    assert [meter.measure() for _ in range(3)] == [{}, {}, {}]
    assert count_warnings() == 1
    nvidia_smi.script.unlink()
    assert meter.measure() == {}
    assert count_warnings() == 1
    nvidia_smi.answer(BUSY)
    assert list(meter.measure()) == [0]
    nvidia_smi.do("exit 9")
    assert meter.measure() == {}
    assert count_warnings() == 2


def test_one_that_hangs_is_ended(
    nvidia_smi: NvidiaSmi, meter: GpuMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_usage, "QUERY_SECONDS", 0.3)
    nvidia_smi.do("exec sleep 600")
    begun = time.monotonic()
    assert meter.measure() == {}
    assert time.monotonic() - begun < 60
    wait_until(lambda: not find_processes(["sleep", "600"]))
    nvidia_smi.answer(BUSY)
    # The limit is no longer what is tested.
    monkeypatch.setattr(gpu_usage, "QUERY_SECONDS", 60.0)
    assert list(meter.measure()) == [0]


def test_one_that_cannot_be_ended_is_not_asked_again(
    nvidia_smi: NvidiaSmi, meter: GpuMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_usage, "QUERY_SECONDS", 1.0)
    nvidia_smi.do("exec sleep 601")
    with monkeypatch.context() as patch:
        # As a process that waits for a driver: no signal ends it.
        patch.setattr(subprocess.Popen, "kill", lambda process: None)
        assert [meter.measure() for _ in range(3)] == [{}, {}, {}]
    wait_until(lambda: nvidia_smi.calls)
    assert nvidia_smi.calls == 1
    nvidia_smi.answer(BUSY)
    monkeypatch.setattr(gpu_usage, "QUERY_SECONDS", 60.0)
    proctree.kill_all(lambda: find_processes(["sleep", "601"]), 10.0)
    wait_until(lambda: list(meter.measure()) == [0])


def find_processes(command: list[str]) -> list[int]:
    """Return the processes below this one that run a command."""
    line = "\0".join([*command, ""]).encode()
    return [
        pid
        for pid in proctree.list_descendants(os.getpid())
        if proctree._read_file(f"/proc/{pid}/cmdline") == line
    ]


# Pods and nodes


def wants(count: int, name: str) -> Object:
    return shell("sleep 600", name, resources={"limits": {"nvidia.com/gpu": str(count)}})


@pytest.mark.parametrize(
    ("containers", "running", "holder"),
    [
        ([wants(0, "a"), wants(2, "b"), wants(1, "c")], "a b c", ("b", [0, 2, 3])),
        ([wants(0, "a"), wants(2, "b"), wants(1, "c")], "a c", ("c", [0, 2, 3])),
        ([wants(0, "a"), wants(2, "b"), wants(1, "c")], "a", None),
        ([wants(0, "a"), wants(2, "b"), wants(1, "c")], "init", ("init", [0, 2, 3])),
        ([shell("", "a"), shell("", "b")], "a b", ("a", [0, 2, 3])),
    ],
)
def test_a_pods_devices_are_told_with_its_first_container_that_has_any(
    containers: list[Object], running: str, holder: object
) -> None:
    made = pod(
        *containers,
        annotations={GPU_DEVICES_ANNOTATION: "0,2,3,9"},
        initContainers=[shell("", "init")],
    )
    assert find_holder(made, running.split(), REAL) == holder


def test_a_pod_without_devices_holds_none() -> None:
    assert find_holder(pod(shell("")), ["main"], REAL) is None
    virtual = [Gpu(0, "virtual-0", "Virtual-GPU", 16384, virtual=True)]
    made = pod(shell(""), annotations={GPU_DEVICES_ANNOTATION: "0"})
    assert find_holder(made, ["main"], virtual) is None


def test_real_devices_are_served_of_pods_and_nodes(tmp_path: Path, nvidia_smi: NvidiaSmi) -> None:
    nvidia_smi.answer(IDLE, BUSY, BUSY, IDLE, devices_offered=4)

    async def scenario() -> None:
        async with machine(tmp_path / "data", nodes=(None, None)) as here:
            gang = [wants(0, "log"), wants(2, "train")]
            devices = {GPU_DEVICES_ANNOTATION: "0,1"}
            here.submit(pod(*gang, name="gpu", annotations=devices, nodeName="localkube-1"))
            here.submit(pod(shell("sleep 600"), name="cpu", nodeName="localkube-1"))
            await here.until(
                lambda: "train" in list_pod_usage(here, "gpu") and list_pod_usage(here, "cpu")
            )
            await here.until(lambda: select_ours(list_pod_usage(here, "gpu")["train"]))
            usage = list_pod_usage(here, "gpu")
            expected = {
                "gpu-use": "47500m",
                "gpus-measured": "2",
                "gpus-unused": "1",
                "gpu-memory": str(round(71889.5 * MIB)),
                "gpu-memory-use": "25001m",
                "gpu-power": "725500m",
                "gpu-temperature": "61",
                "sm-clock": "1162500m",
            }
            assert select_ours(usage["train"]) == expected
            assert select_ours(usage["log"]) == {}
            assert usage["train"].keys() >= {"cpu", "memory", "muster.io/disk-read"}
            assert select_ours(list_pod_usage(here, "cpu")["main"]) == {}
            nodes = list_node_usage(here)
            assert select_ours(nodes["localkube-0"]) == expected
            assert select_ours(nodes["localkube-1"]) == expected

            nvidia_smi.do("exit 9", devices_offered=4)
            await here.until(lambda: not select_ours(list_pod_usage(here, "gpu")["train"]))
            await here.until(lambda: not select_ours(list_node_usage(here)["localkube-0"]))
            assert "cpu" in list_pod_usage(here, "gpu")["train"]

    asyncio.run(scenario())


def test_virtual_devices_are_never_asked(tmp_path: Path, nvidia_smi: NvidiaSmi) -> None:
    nvidia_smi.answer(BUSY, BUSY)

    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(pod(shell("sleep 600"), annotations={GPU_DEVICES_ANNOTATION: "0"}))
            await here.until(lambda: "main" in list_pod_usage(here, "p"))
            assert select_ours(list_pod_usage(here, "p")["main"]) == {}
            assert [select_ours(usage) for usage in list_node_usage(here).values()] == [{}]

    asyncio.run(scenario())
    assert nvidia_smi.calls == 0


def test_the_event_loop_does_not_wait_for_nvidia_smi(
    tmp_path: Path, nvidia_smi: NvidiaSmi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_usage, "QUERY_SECONDS", 0.5)
    nvidia_smi.do("exec sleep 602", devices_offered=1)

    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            await here.until(lambda: nvidia_smi.calls)
            turns = 0
            while nvidia_smi.calls < 2:
                await asyncio.sleep(0.001)
                turns += 1
            assert turns > 20
            await here.until(lambda: list_node_usage(here))
            assert [select_ours(usage) for usage in list_node_usage(here).values()] == [{}]

    asyncio.run(scenario())
