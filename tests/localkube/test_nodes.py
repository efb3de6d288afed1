"""Several nodes on one machine: what each has of it, whose pods it runs, and how it is stopped."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from localkube.__main__ import parse_options
from localkube.errors import ApiError
from localkube.kubelet import proctree
from localkube.kubelet.gpus import Gpu
from localkube.kubelet.machine_division import CannotDivide, divide_machine
from localkube.metadata import Object, find_condition, name_of
from localkube.options import GPU_DEVICES_ANNOTATION, STOPPED_ANNOTATION, Options
from localkube.quantities import parse_quantity
from localkube.resources import EVENTS, LEASES, NODES, PODS
from tests.localkube.kubelets import TEAM, Machine, machine, pod, shell

REAL = [Gpu(index, f"GPU-{index}", "NVIDIA-H200", 143771) for index in range(4)]
SLEEP = "echo begun; exec sleep 600"


def options(tmp_path: Path, *arguments: str) -> Options:
    return parse_options(["--data", str(tmp_path), *arguments])


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("1", (None,)),
        ("4", (None,) * 4),
        ("64", (None,) * 64),
        ("4x1gpu", (1,) * 4),
        ("1x8gpu", (8,)),
        ("4x1gpu,2x0gpu", (1, 1, 1, 1, 0, 0)),
    ],
)
def test_nodes_are_a_number_or_shapes(
    tmp_path: Path, text: str, nodes: tuple[int | None, ...]
) -> None:
    assert options(tmp_path, "--nodes", text).nodes == nodes


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["--nodes", "0"], "from 1 to 64 nodes: write a number as 4, or shapes as 4x1gpu,2x0gpu"),
        (["--nodes", "65"], "from 1 to 64 nodes"),
        (["--nodes", "999999x1gpu,999999x1gpu"], "from 1 to 64 nodes"),
        (["--nodes", "9" * 5000], "is no number of nodes"),
        (["--nodes", "four"], "is no number of nodes: write a number as 4, or shapes"),
        (["--nodes", "4x1"], "is no number of nodes"),
        (["--nodes", "4x1gpu,"], "is no number of nodes"),
        (["--nodes", "2,2x1gpu"], "is no number of nodes"),
        (["--nodes", "-1"], "--nodes"),
        (["--nodes", "2x999gpu"], "more than 1024 GPUs in all"),
        (["--nodes", "4x1gpu", "--gpus", "5"], "--nodes has 4 GPUs in all: leave --gpus out"),
        (["--nodes", "4", "--cpus", "3m"], "give at least 4m, or fewer --nodes"),
        (["--nodes", "4", "--memory", "3Mi"], "give at least 4Mi, or fewer --nodes"),
        (["--node-monitor-grace-period", "1"], "from 4 to"),
        (["--default-unreachable-toleration-seconds", "-1"], "from 0 to"),
    ],
)
def test_nonsense_is_refused_with_what_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], advice: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        options(tmp_path, *arguments)
    assert ended.value.code == 2
    assert advice in capsys.readouterr().err


def test_one_node_is_called_as_ever_and_several_are_numbered(tmp_path: Path) -> None:
    assert options(tmp_path).node_names == ("localkube",)
    assert options(tmp_path, "--nodes", "2").node_names == ("localkube-0", "localkube-1")


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("given", [[], ["--cpus", "3.5", "--memory", "1000000Ki"]])
def test_the_shares_add_up_to_the_machine(tmp_path: Path, count: int, given: list[str]) -> None:
    whole = divide_machine(options(tmp_path, *given), REAL)[0].capacity
    shares = divide_machine(options(tmp_path, "--nodes", str(count), *given), REAL)
    for name in ("cpu", "memory", "ephemeral-storage"):
        assert sum(parse_quantity(share.capacity[name]) for share in shares) == parse_quantity(
            whole[name]
        )
    assert {share.capacity["pods"] for share in shares} == {"250"}


@pytest.mark.parametrize(
    ("nodes", "indexes"),
    [
        ("1", [[0, 1, 2, 3]]),
        ("2", [[0, 1], [2, 3]]),
        ("3", [[0, 1], [2], [3]]),
        ("6", [[0], [1], [2], [3], [], []]),
        ("1x0gpu,2x1gpu", [[], [0], [1]]),
    ],
)
def test_devices_are_divided_in_their_order(
    tmp_path: Path, nodes: str, indexes: list[list[int]]
) -> None:
    shares = divide_machine(options(tmp_path, "--nodes", nodes), REAL)
    assert [[gpu.index for gpu in share.devices] for share in shares] == indexes
    assert [share.capacity.get("nvidia.com/gpu") for share in shares] == [
        str(len(each)) if each else None for each in indexes
    ]


def test_more_real_devices_than_there_are_cannot_be_had(tmp_path: Path) -> None:
    with pytest.raises(CannotDivide, match="has 6 GPUs in all, and this machine has 4") as refusal:
        divide_machine(options(tmp_path, "--nodes", "6x1gpu"), REAL)
    assert str(refusal.value).endswith("as --nodes 4x1gpu,2x0gpu")


def test_virtual_devices_are_made_as_the_shapes_need_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    async def scenario() -> None:
        async with machine(tmp_path / "data", nodes=(3, 3, 0)) as here:
            nodes = here.objects.list(NODES)
            assert [name_of(node) for node in nodes] == [
                "localkube-0",
                "localkube-1",
                "localkube-2",
            ]
            assert [node["status"]["allocatable"].get("nvidia.com/gpu") for node in nodes] == [
                "3",
                "3",
                None,
            ]
            assert [
                node["metadata"]["labels"].get("localkube.muster.dev/virtual-gpu") for node in nodes
            ] == ["true", "true", None]
            for node in nodes:
                assert node["metadata"]["labels"]["kubernetes.io/hostname"] == name_of(node)
                assert here.objects.get(LEASES, "kube-node-lease", name_of(node))["spec"][
                    "holderIdentity"
                ] == name_of(node)

    asyncio.run(scenario())


# Running


def pod_on(node: str, name: str, script: str = SLEEP, **spec: Any) -> Object:
    return pod(shell(script), name=name, **{"nodeName": node, **spec})


def process_of(here: Machine, name: str) -> tuple[int, int]:
    """Return the pid and start time of a pod's supervisor."""
    uid = here.pod(name)["metadata"]["uid"]
    supervisors = {
        pod_uid: pid
        for kubelet in here.host.kubelets.values()
        for (pod_uid, _), pid in kubelet.list_supervisors().items()
    }
    pid = supervisors[uid]
    return pid, proctree.start_ticks(pid) or 0


def switch(here: Machine, node: str, stopped: str) -> None:
    here.objects.modify(
        NODES,
        "",
        node,
        lambda obj: obj["metadata"].update(annotations={STOPPED_ANNOTATION: stopped}),
    )


def test_each_node_runs_its_pods_and_names_itself(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data", nodes=(0, 0)) as here:
            script = "echo on $NODE"
            variable = {
                "name": "NODE",
                "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}},
            }
            for number in range(2):
                node = f"localkube-{number}"
                here.submit(pod(shell(script, env=[variable]), name=f"p{number}", nodeName=node))
                await here.finished(f"p{number}")
                assert await here.log(f"p{number}") == f"on {node}\n"
                hosts = {
                    event["source"]["host"]
                    for event in here.objects.list(EVENTS, TEAM)
                    if event["involvedObject"]["name"] == f"p{number}"
                }
                assert hosts == {node}

    asyncio.run(scenario())


def test_a_pod_sees_the_real_devices_of_its_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "bin" / "nvidia-smi"
    script.parent.mkdir()
    lines = "".join(f"{index}, GPU-{index}, NVIDIA H200, 143771\\n" for index in range(4))
    script.write_text(f"#!/bin/sh\nprintf '{lines}'\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:/bin:/usr/bin")

    async def scenario() -> None:
        async with machine(tmp_path / "data", nodes=(None, None)) as here:
            for number, device in ((0, "1"), (1, "3")):
                made = pod(
                    shell("echo $CUDA_VISIBLE_DEVICES"),
                    name=f"p{number}",
                    annotations={GPU_DEVICES_ANNOTATION: "1"},
                    nodeName=f"localkube-{number}",
                )
                here.submit(made)
                await here.finished(f"p{number}")
                assert await here.log(f"p{number}") == f"{device}\n"

    asyncio.run(scenario())


def test_a_nodes_usage_is_that_of_its_pods(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data", nodes=(0, 0)) as here:
            here.submit(pod_on("localkube-1", "busy", "while :; do :; done"))
            await here.running("busy")
            uid = here.pod("busy")["metadata"]["uid"]
            await here.until(lambda: here.host.pod_usage().get(uid))
            used = here.host.node_usage()
            assert used["localkube-0"].memory == 0
            assert used["localkube-1"].nanocores > 0

    asyncio.run(scenario())


def test_a_stopped_kubelet_takes_its_pods_with_it_and_no_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data", nodes=(0, 0)) as here:
            for number in range(2):
                here.submit(pod_on(f"localkube-{number}", f"p{number}"))
                await here.running(f"p{number}")
            await here.logged("begun", "p0")
            lost, kept = process_of(here, "p0"), process_of(here, "p1")
            status = here.status("p0")
            switch(here, "localkube-0", "true")
            await here.until(lambda: not proctree.is_alive(*lost))
            assert proctree.is_alive(*kept)
            await here.until(lambda: not here.host.kubelets["localkube-0"].is_running)
            assert here.status("p0") == status, "a node without power reports nothing"
            lease = here.objects.get(LEASES, "kube-node-lease", "localkube-0")
            with pytest.raises(ApiError, match="kubelet of node localkube-0 does not answer"):
                await here.log("p0")
            assert list(here.host.node_usage()) in ([], ["localkube-1"])
            here.submit(pod_on("localkube-0", "late"))
            here.delete("p0")
            await asyncio.sleep(0.2)
            assert here.status("late")["phase"] == "Pending"
            assert lease == here.objects.get(LEASES, "kube-node-lease", "localkube-0")

            switch(here, "localkube-0", "false")
            await here.gone("p0")
            await here.running("late")
            assert proctree.is_alive(*kept)

    asyncio.run(scenario())


def test_what_ran_when_the_power_went_has_failed_when_it_is_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data", nodes=(0, 0)) as here:
            here.submit(pod_on("localkube-1", "p", restartPolicy="OnFailure"))
            await here.running("p")
            switch(here, "localkube-1", "true")
            await here.until(lambda: not here.host.kubelets["localkube-1"].is_running)
            switch(here, "localkube-1", "")
            status = await here.finished("p")
            assert (status["phase"], status["reason"]) == ("Failed", "NodeShutdown")
            target = find_condition(status["conditions"], "DisruptionTarget") or {}
            assert target["reason"] == "TerminationByKubelet"

    asyncio.run(scenario())


def test_a_node_stays_stopped_over_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data", keep_pods=True, nodes=(0, 0)) as here:
            for number in range(2):
                here.submit(pod_on(f"localkube-{number}", f"p{number}"))
                await here.running(f"p{number}")
            lost, kept = process_of(here, "p0"), process_of(here, "p1")
        # The annotation may come when nobody follows it any more.
        with_annotation = Machine(tmp_path / "data", nodes=(0, 0))
        switch(with_annotation, "localkube-0", "true")
        with_annotation.store.close()
        async with machine(tmp_path / "data", nodes=(0, 0)) as here:
            assert not proctree.is_alive(*lost)
            assert proctree.is_alive(*kept)
            assert not here.host.kubelets["localkube-0"].is_running

    asyncio.run(scenario())


def test_a_node_that_was_deleted_while_it_stood_still_comes_back_when_it_is_created(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data", nodes=(0, 0)) as here:
            kubelet = here.host.kubelets["localkube-0"]
            switch(here, "localkube-0", "true")
            await here.until(lambda: not kubelet.is_running)
            here.objects.delete(NODES, "", "localkube-0")
            await asyncio.sleep(0.1)
            assert here.objects.find(NODES, "", "localkube-0") is None
            here.objects.create(NODES, "", {"metadata": {"name": "localkube-0"}})
            await here.until(lambda: kubelet.is_running)
            node = here.objects.get(NODES, "", "localkube-0")
            ready = find_condition(node["status"]["conditions"], "Ready") or {}
            assert ready["status"] == "True"

    asyncio.run(scenario())


def test_nodes_that_the_options_no_longer_name_are_removed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data", keep_pods=True, nodes=(0, 0, 0)) as here:
            here.submit(pod_on("localkube-2", "p"))
            await here.running("p")
            lost = process_of(here, "p")
            here.objects.create(NODES, "", {"metadata": {"name": "somebody-elses"}})
        async with machine(tmp_path / "data", nodes=(0, 0)) as here:
            assert [name_of(node) for node in here.objects.list(NODES)] == [
                "localkube-0",
                "localkube-1",
                "somebody-elses",
            ]
            assert here.objects.find(LEASES, "kube-node-lease", "localkube-2") is None
            assert not proctree.is_alive(*lost)
            assert here.objects.find(PODS, TEAM, "p") is not None, "it is for its collector"

    asyncio.run(scenario())
