"""Data that is prepared before GPUs are taken, end to end: real processes, which are killed.

Data workers and ranks are shells that write the lines of the library; a file lets the data workers
say that they are ready.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.api import Api, Object
from tests.elastic_stage import ASK_AGAIN, FORGET_KAI
from tests.installation import PROCESSES, Installation, eventually
from tests.rest import COMPUTE, Body, Program

pytestmark = pytest.mark.timeout(900)

PASSWORD = "correct horse battery"
WITHIN = 450.0
"""Seconds that interpreters and pods may take on a busy machine."""
SAY = 'echo \'muster-delivery: {"event":"%s","worker":\'$n\',"units":%d,"of":50}\' >&2'
DATA_WORKER = f"""n=$JOB_COMPLETION_INDEX; {SAY % ("preparing", 25)}
while [ ! -e %s ]; do sleep 0.2; done; {SAY % ("ready", 50)}; exec sleep 600"""
SCRIPT = 'if [ "$MUSTER_DELIVERY_ROLE" = worker ]; then %s; fi; echo training; exec sleep 600'
PODS = "/api/v1/namespaces/{}/pods"
SMALL = {"cpuCoreRequest": 0.05, "cpuMemoryRequest": "20M"}


@dataclass(frozen=True)
class Stage:
    """An installation with its embedded cluster, and a program that asks it."""

    muster: Installation
    program: Program
    kube: Api
    folder: Path

    def submit(self, name: str, compute: Body = COMPUTE) -> "Slow":
        """Submit a workload of a master and a worker, with two data workers and 100 units."""
        gate = self.folder / name
        script = SCRIPT % (DATA_WORKER % gate)
        workload = self.program.submit(
            name,
            command="/bin/sh",
            args="-c " + "'" + script.replace("'", "'\\''") + "'",
            compute=compute,
            dataDelivery={"workers": 2, "units": 100, "compute": SMALL},
        )
        return Slow(self, workload, name, gate)


@dataclass(frozen=True)
class Slow:
    """A workload whose data takes as long as the test wants."""

    stage: Stage
    id: str
    name: str
    gate: Path

    @property
    def whole(self) -> Mapping[str, Any]:
        return self.stage.program.workload(self.id)

    @property
    def prepared(self) -> int:
        """Units that are prepared, as REST says; -1 where nothing is being prepared."""
        delivery = self.whole["dataDelivery"]
        return -1 if delivery is None else int(delivery["preparedUnits"])

    def pods(self) -> list[Object]:
        """Its pods in the cluster, data workers among them."""
        selector = f"muster.dev/workload={self.id}"
        items: list[Object] = self.stage.kube.get("/api/v1/pods", labelSelector=selector).ok()[
            "items"
        ]
        return items

    def roles(self) -> list[str]:
        """What its unended pods are."""
        return sorted(
            each["metadata"]["labels"].get("muster.dev/role", "rank")
            for each in self.pods()
            if "deletionTimestamp" not in each["metadata"]
        )

    def wait_until_it_prepares(self) -> None:
        eventually(lambda: self.prepared == 50, within=WITHIN)
        assert self.roles() == ["data-worker"] * 2
        assert self.whole["phase"] == "Initializing"

    def open_gate(self) -> None:
        self.gate.touch()

    def wait_until_it_trains(self) -> None:
        eventually(lambda: self.whole["phase"] == "Running", within=WITHIN)
        assert self.roles() == ["data-worker"] * 2 + ["rank"] * 2
        path = f"/workloads/{self.id}/history?limit=100&sortOrder=asc"
        records = self.stage.program.ask("GET", path)["records"]
        events = [each["spec"].get("event", {}).get("reason") for each in records]
        assert events.count("DataReady") == 1
        assert "NotSuspended" not in events

    def remove(self) -> None:
        """Delete it, and wait until nothing of it is left in the cluster."""
        self.stage.program.delete(self.id)
        eventually(lambda: not self.pods(), within=WITHIN)
        for kind in ("services", "secrets"):
            path = f"/api/v1/{kind}"
            selector = f"muster.dev/workload={self.id}"

            def is_gone(path: str = path, selector: str = selector) -> bool:
                return not self.stage.kube.get(path, labelSelector=selector).ok()["items"]

            eventually(is_gone, within=WITHIN)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("gates")
    muster = Installation(folder / "var", admin_password=PASSWORD, localkube_gpus=4, poll_seconds=5)
    with muster.migrated():
        eventually(lambda: set(muster.pids()) == PROCESSES)
        kube = Api.from_kubeconfig(muster.data / "localkube" / "kubeconfig")
        yield Stage(muster, Program(muster.url, PASSWORD), kube, folder)
        kube.close()


_numbers = itertools.count()


@pytest.fixture
def slow(stage: Stage) -> Iterator[Slow]:
    made = stage.submit(f"slow-{next(_numbers)}")
    yield made
    made.remove()


def test_kills_while_it_prepares_and_around_its_start_change_nothing(
    stage: Stage, slow: Slow
) -> None:
    eventually(lambda: "data-worker" in slow.roles(), within=WITHIN)
    for each in ("capture", "follow", "worker", "beat"):
        stage.muster.kill_one(each)
    slow.wait_until_it_prepares()
    slow.open_gate()
    for each in ("worker", "capture", "follow"):
        eventually(lambda: set(stage.muster.pids()) == PROCESSES)
        stage.muster.kill_one(each)
    slow.wait_until_it_trains()


def test_a_data_worker_that_is_killed_prepares_its_part_anew(stage: Stage, slow: Slow) -> None:
    slow.wait_until_it_prepares()
    first = next(each for each in slow.pods())
    metadata = first["metadata"]
    stage.kube.delete(f"{PODS.format(metadata['namespace'])}/{metadata['name']}").ok()

    def is_replaced() -> bool:
        uids = {each["metadata"]["uid"] for each in slow.pods()}
        return metadata["uid"] not in uids and len(uids) == 2

    eventually(is_replaced, within=WITHIN)
    slow.wait_until_it_prepares()
    slow.open_gate()
    slow.wait_until_it_trains()


def test_stop_and_run_while_it_prepares_begin_anew(stage: Stage, slow: Slow) -> None:
    slow.wait_until_it_prepares()
    stage.program.suspend(slow.id)
    eventually(lambda: slow.whole["phase"] == "Stopped", within=WITHIN)
    eventually(lambda: not slow.pods(), within=WITHIN)
    stage.program.resume(slow.id)
    slow.wait_until_it_prepares()
    slow.open_gate()
    slow.wait_until_it_trains()


def test_without_kai_it_waits_for_its_data_all_the_same(stage: Stage) -> None:
    stage.muster.manage("shell", "--verbosity", "0", "--command", FORGET_KAI)
    try:
        slow = stage.submit("plain", {"gpuDevicesRequest": 1, **SMALL})
        slow.wait_until_it_prepares()
        assert {each["spec"]["schedulerName"] for each in slow.pods()} == {"default-scheduler"}
        slow.open_gate()
        slow.wait_until_it_trains()
        slow.remove()
    finally:
        stage.muster.manage("shell", "--verbosity", "0", "--command", ASK_AGAIN)
