"""Which pods a node takes, whoever bound them to it: a kubelet's check before the first start."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from localkube.metadata import Object, annotations_of
from localkube.options import GPU_DEVICES_ANNOTATION, NODE_NAME
from localkube.resources import NODES, PODS
from localkube.resources.gpu_sharing import FRACTION_ANNOTATION
from tests.localkube.kubelets import TEAM, Machine, machine, pod, shell

GPU = "nvidia.com/gpu"
GIB = 1 << 30
MISMATCH = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
UNTOLERATED = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
NOWHERE = {"key": "zone", "operator": "In", "values": ["nowhere"]}


def build_pod(
    name: str, limits: Mapping[str, str], script: str = "sleep 600", **spec: Any
) -> Object:
    return pod(shell(script, resources={"limits": dict(limits)}), name=name, **spec)


def describe_devices(requested: int, available: int) -> str:
    return (
        f"Allocate failed due to requested number of devices unavailable for {GPU}. "
        f"Requested: {requested}, Available: {available}, which is unexpected"
    )


def describe_shortage(name: str, requested: int, used: int, capacity: int) -> str:
    return (
        f"Node didn't have enough resource: {name}, requested: {requested}, used: {used}, "
        f"capacity: {capacity}"
    )


async def expect_rejection(here: Machine, name: str, reason: str, message: str) -> None:
    status = await here.finished(name)
    assert (status["phase"], status["reason"]) == ("Failed", reason)
    assert status["message"] == f"Pod was rejected: {message}"
    assert status["startTime"]
    assert "containerStatuses" not in status
    await here.until(lambda: here.events(name))
    assert here.events(name) == [(reason, message)]


@pytest.mark.parametrize(
    ("limits", "spec", "reason", "message"),
    [
        ({GPU: "99"}, {}, "UnexpectedAdmissionError", describe_devices(99, 4)),
        ({"cpu": "1000"}, {}, "OutOfcpu", describe_shortage("cpu", 1_000_000, 0, 2000)),
        (
            {"memory": "100Ti", "cpu": "1"},
            {},
            "OutOfmemory",
            describe_shortage("memory", 100 << 40, 0, 4 * GIB),
        ),
        (
            {"hugepages-2Mi": "2Mi", "cpu": "1"},
            {},
            "OutOfhugepages-2Mi",
            describe_shortage("hugepages-2Mi", 2 << 20, 0, 0),
        ),
        ({}, {"nodeSelector": {"zone": "nowhere"}}, "NodeAffinity", MISMATCH),
        (
            {},
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [NOWHERE]}]
                        }
                    }
                }
            },
            "NodeAffinity",
            MISMATCH,
        ),
    ],
    ids=["devices", "processors", "memory", "huge pages", "selector", "affinity"],
)
def test_a_pod_that_its_node_cannot_hold_is_rejected(
    tmp_path: Path, limits: Mapping[str, str], spec: Object, reason: str, message: str
) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data", cpus=2, memory=4 * GIB, gpus=4) as here:
            marker = tmp_path / "started"
            here.submit(build_pod("p", limits, f"touch {marker}", **spec))
            await expect_rejection(here, "p", reason, message)
            assert not marker.exists()
            here.delete()
            await here.gone()

    asyncio.run(scenario())


def test_what_admitted_pods_hold_is_taken_until_they_have_ended(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data", cpus=2, gpus=4) as here:
            done = tmp_path / "done"
            script = f"until [ -e {done} ]; do sleep 0.05; done"
            here.submit(build_pod("first", {GPU: "3", "cpu": "1500m"}, script))
            await here.running("first")
            here.submit(build_pod("second", {GPU: "2"}))
            await expect_rejection(
                here, "second", "UnexpectedAdmissionError", describe_devices(2, 1)
            )
            here.submit(build_pod("third", {"cpu": "1"}))
            await expect_rejection(
                here, "third", "OutOfcpu", describe_shortage("cpu", 1000, 1500, 2000)
            )
            done.touch()
            await here.finished("first")
            # What has ended, and what was rejected, holds nothing.
            here.submit(build_pod("fourth", {GPU: "4", "cpu": "2"}))
            await here.running("fourth")

    asyncio.run(scenario())


def test_a_pod_that_is_being_deleted_holds_its_devices_while_it_runs(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data", gpus=1) as here:
            ready = tmp_path / "ready"
            script = f"trap '' TERM; touch {ready}; while :; do sleep 0.05; done"
            here.submit(build_pod("old", {GPU: "1"}, script))
            await here.until(ready.exists)
            here.delete("old", grace=60)
            here.submit(build_pod("new", {GPU: "1"}))
            await expect_rejection(here, "new", "UnexpectedAdmissionError", describe_devices(1, 0))
            # Deleted by force: to everybody, the scheduler too, its devices are free at once.
            here.delete("old", grace=0)
            here.submit(build_pod("newer", {GPU: "1"}))
            await here.running("newer")

    asyncio.run(scenario())


def test_pods_that_fill_a_node_together_all_run(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data", cpus=2, gpus=4, max_pods=4) as here:
            for index in range(4):
                here.submit(build_pod(f"p{index}", {GPU: "1", "cpu": "500m"}))
            for index in range(4):
                await here.running(f"p{index}")
            here.submit(build_pod("late", {}))
            await expect_rejection(here, "late", "OutOfpods", describe_shortage("pods", 1, 4, 4))

    asyncio.run(scenario())


def test_a_pod_that_names_its_node_gets_devices_that_nobody_has(tmp_path: Path) -> None:
    def devices_of(here: Machine, name: str) -> str:
        return annotations_of(here.pod(name)).get(GPU_DEVICES_ANNOTATION, "")

    async def scenario() -> None:
        async with machine(tmp_path / "data", gpus=4) as here:
            scheduled = build_pod("scheduled", {GPU: "1"})
            scheduled["metadata"]["annotations"] = {GPU_DEVICES_ANNOTATION: "1"}
            # Of the two the one without devices comes first, and leaves the other its own.
            for made in (build_pod("own", {GPU: "2"}), scheduled, build_pod("none", {})):
                here.submit(made)
            for name in ("own", "scheduled", "none"):
                await here.running(name)
            assert (devices_of(here, "own"), devices_of(here, "scheduled")) == ("0,2", "1")
            assert devices_of(here, "none") == ""

    asyncio.run(scenario())


def test_no_two_pods_get_the_same_device(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data", gpus=4) as here:
            for name in ("first", "second"):
                made = build_pod(name, {GPU: "1"})
                made["metadata"]["annotations"] = {GPU_DEVICES_ANNOTATION: "3"}
                here.submit(made)
            await here.running("first")
            await expect_rejection(
                here, "second", "UnexpectedAdmissionError", describe_devices(1, 0)
            )

    asyncio.run(scenario())


def test_a_shared_device_is_no_whole_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data", gpus=2) as here:
            for name in ("half", "other-half"):
                annotations = {FRACTION_ANNOTATION: "0.5", GPU_DEVICES_ANNOTATION: "0"}
                here.submit(pod(shell("sleep 600"), name=name, annotations=annotations))
                await here.running(name)
            here.submit(build_pod("both", {GPU: "2"}))
            await expect_rejection(here, "both", "UnexpectedAdmissionError", describe_devices(2, 1))
            here.submit(build_pod("one", {GPU: "1"}))
            await here.running("one")

    asyncio.run(scenario())


def test_a_resource_of_others_that_the_node_does_not_know_is_left_out(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.submit(build_pod("p", {"example.com/licence": "3"}))
            await here.running()

    asyncio.run(scenario())


def test_a_label_of_the_node_that_somebody_added_counts(tmp_path: Path) -> None:
    def add_label(node: Object) -> None:
        node["metadata"]["labels"]["zone"] = "here"

    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.objects.modify(NODES, "", NODE_NAME, add_label)
            here.submit(build_pod("p", {}, nodeSelector={"zone": "here"}))
            await here.running()

    asyncio.run(scenario())


def test_a_pod_that_names_a_node_whose_taint_it_does_not_tolerate_is_rejected(
    tmp_path: Path,
) -> None:
    taints = [
        {"key": "broken", "value": "fan", "effect": "NoExecute"},
        # What keeps pods from being placed does not keep those that name their node.
        {"key": "reserved", "effect": "NoSchedule"},
    ]

    async def scenario() -> None:
        async with machine(tmp_path / "data") as here:
            here.objects.modify(
                NODES, "", NODE_NAME, lambda node: node["spec"].update(taints=taints)
            )
            here.submit(build_pod("p", {}))
            await expect_rejection(here, "p", "TaintToleration", UNTOLERATED)
            toleration = {"key": "broken", "operator": "Exists", "effect": "NoExecute"}
            here.submit(build_pod("tolerant", {}, tolerations=[toleration]))
            await here.running("tolerant")

    asyncio.run(scenario())


def test_a_restart_checks_no_pod_again_and_counts_what_runs(tmp_path: Path) -> None:
    async def scenario() -> None:
        data = tmp_path / "data"
        async with machine(data, keep_pods=True, gpus=4, cpus=2) as here:
            here.submit(build_pod("old", {GPU: "3", "cpu": "2"}))
            await here.running("old")
        before = Machine(data)
        before.submit(build_pod("bound-meanwhile", {GPU: "1"}))
        before.store.close()
        # The node has become smaller than what runs on it.
        async with machine(data, gpus=2, cpus=1) as here:
            await expect_rejection(
                here, "bound-meanwhile", "UnexpectedAdmissionError", describe_devices(1, 0)
            )
            assert "running" in here.container("old")["state"]
            here.submit(build_pod("late", {"cpu": "100m"}))
            await expect_rejection(
                here, "late", "OutOfcpu", describe_shortage("cpu", 100, 2000, 1000)
            )

    asyncio.run(scenario())


def test_a_pod_whose_start_was_not_reported_before_a_kill_is_not_checked(tmp_path: Path) -> None:
    def forget_report(made: Object) -> None:
        made["status"] = {"phase": "Pending"}

    async def scenario() -> None:
        data = tmp_path / "data"
        async with machine(data, keep_pods=True, gpus=4) as here:
            here.submit(build_pod("p", {GPU: "3"}))
            await here.running()
        between = Machine(data)
        between.objects.modify(PODS, TEAM, "p", forget_report, subresource="status")
        between.store.close()
        async with machine(data, gpus=2) as here:
            await here.running()
            assert here.status()["phase"] == "Running"

    asyncio.run(scenario())
