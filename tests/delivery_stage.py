"""Data delivery on an installation with an embedded cluster: submits the example, follows it over
REST, and ends its processes behind everybody's back.

For the journey, the campaign and the benchmark.
"""

import contextlib
import itertools
import json
import os
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.conformance.api import Api, Object
from tests.installation import Installation, eventually
from tests.rest import Body, Program, Reader, Refused

PASSWORD = "correct horse battery"
COMPUTE = {"gpuDevicesRequest": 1, "cpuCoreRequest": 0.05, "cpuMemoryRequest": "50M"}
WORKER_COMPUTE = {"cpuCoreRequest": 0.05, "cpuMemoryRequest": "50M"}
CHECKPOINTS = {
    "path": "/checkpoints",
    "existingPvc": False,
    "claimInfo": {"size": "1G", "accessModes": {"readWriteMany": True}},
}
STEP = re.compile(r"^step (\d+) loss \S+ waited ([\d.]+) elements ((?:\d+ ?)+)$", re.MULTILINE)
NOTHING_PROVED = "no epoch is whole"
MEASURE_PREPARATION = """
import json
from workloads.models import DataPreparation, Pod
preparation = DataPreparation.objects.get(workload={id!r}, attempt={attempt})
pods = Pod.objects.filter(workload={id!r}, attempt={attempt}).exclude(role="data-worker")
def measure(begin, end):
    return (end - begin).total_seconds()
# A cluster tells when a pod was made to the second, rounded down.
ready = preparation.ready_at.replace(microsecond=0)
early = sum(max(0.0, measure(pod.created_at, ready)) * float(pod.gpus or 0)
    for pod in Pod.objects.filter(workload={id!r}, attempt={attempt}))
print(json.dumps([early, measure(preparation.created_at, preparation.ready_at),
    max(0.0, measure(ready, min(pod.created_at for pod in pods)))]))
"""
"""Prints the GPU seconds that pods of an attempt were there before its data was ready, how long
that took, and how long after it the first pod of the training was there.
"""


@dataclass(frozen=True)
class Delivered:
    """A workload of the stage, and what its pods print."""

    stage: "DeliveryStage"
    id: str
    name: str
    collection: str = "/workloads/distributed"
    """Where REST has it."""

    @property
    def whole(self) -> Body:
        """Everything that REST says of it."""
        return dict(self.stage.program.workload(self.id))

    @property
    def phase(self) -> str:
        return str(self.whole["phase"])

    def wait_for(self, condition: Callable[[], Any], within: float = 360.0) -> float:
        """Wait until it is so, and return the seconds that it took; else fail with what is."""
        started = time.monotonic()
        while not condition():
            if time.monotonic() - started > within:
                raise AssertionError(f"not within {within:g} s; {self.describe()}")
            time.sleep(0.1)
        return time.monotonic() - started

    def wait_for_phase(self, *phases: str, within: float = 360.0) -> None:
        self.wait_for(lambda: self.phase in phases, within)

    def pods(self, *, data_workers: bool = False) -> dict[str, Object]:
        """Its ranks' pods, or those of its data workers, as the cluster has them now, by name."""
        role = "muster.dev/role" + ("=data-worker" if data_workers else "!=data-worker")
        path = f"/api/v1/namespaces/{self.stage.namespace}/pods"
        listed = self.stage.kube.get(path, labelSelector=f"muster.dev/workload={self.id},{role}")
        return {each["metadata"]["name"]: each for each in listed.ok()["items"]}

    def objects(self) -> list[str]:
        """What the cluster has of it beside its job, pods and claims."""
        found = []
        for path in ("/apis/batch/v1/{}jobs", "/api/v1/{}services", "/api/v1/{}secrets"):
            whole = path.format(f"namespaces/{self.stage.namespace}/")
            listed = self.stage.kube.get(whole, labelSelector=f"muster.dev/workload={self.id}")
            found += [f"{each['metadata']['name']}" for each in listed.ok()["items"]]
        return found

    def kept_pods(self) -> list[Body]:
        """Its pods of all attempts as Muster keeps them."""
        return list(self.stage.program.ask("GET", f"/workloads/{self.id}/pods?limit=500")["pods"])

    def log(self, pod: str) -> str:
        """What a pod wrote in all runs of its container, as Muster keeps it."""
        path = f"/workloads/{self.id}/pods/{pod}/logs"
        whole = ""
        with contextlib.suppress(Refused):
            for run in itertools.count():
                whole += self.stage.program.ask("GET", f"{path}?run={run}", read=bytes.decode)
        return whole

    def rank_pod(self, rank: int = 0) -> str:
        """The newest pod of a rank, as Muster keeps it; "" before there is one."""
        pods = [each for each in self.kept_pods() if "-data-" not in each["name"]]
        of_rank = [each for each in pods if (each.get("rank") or 0) == rank]
        return max(of_rank, key=lambda each: str(each["createdAt"]), default={"name": ""})["name"]

    def waits(self, pod: str) -> dict[int, float]:
        """The seconds that each step of a rank waited for its batch."""
        return {int(step): float(waited) for step, waited, _ in STEP.findall(self.log(pod))}

    def steps(self, pod: str) -> dict[int, tuple[int, ...]]:
        """The elements of each step of a rank: of a step that was taken twice the last ones."""
        return {
            int(step): tuple(int(each) for each in elements.split())
            for step, _, elements in STEP.findall(self.log(pod))
        }

    def processes(self, role: str) -> dict[str, int]:
        """The process ids of its ranks or data workers on this machine, by pod."""
        return self.stage.processes(self.name, role)

    def remove(self) -> None:
        """Delete it and wait until nothing of it is left in its cluster."""
        self.stage.program.ask("DELETE", f"{self.collection}/{self.id}")
        eventually(lambda: not {**self.pods(), **self.pods(data_workers=True)}, within=270)

    def describe(self) -> str:
        """What is known of it, for a failure's message."""
        state: dict[str, Any] = {}
        with contextlib.suppress(Refused, OSError):
            whole = self.whole
            state |= {name: whole.get(name) for name in ("phase", "phaseMessage", "dataDelivery")}
        for name, pod in {**self.pods(), **self.pods(data_workers=True)}.items():
            state[name] = [pod["status"].get("phase"), self.log(name)[-400:]]
        return f"{self.name}: {json.dumps(state, indent=1)}"


class DeliveryStage:
    """Starts and ends everything; see the module."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.muster = Installation(
            folder / "var", admin_password=PASSWORD, poll_seconds=5, **options
        )

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.muster)
            self.kube = Api.from_kubeconfig(self.muster.data / "localkube" / "kubeconfig")
            stack.callback(self.kube.close)
            self.program = Program(self.muster.url, PASSWORD)
            project = self.program.ask("GET", f"/org-unit/projects/{self.program.project}")
            self.namespace = str(project["namespace"])
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    def reader(self) -> Reader:
        return Reader(self.muster.url, PASSWORD)

    def submit(
        self,
        name: str,
        arguments: str,
        *,
        data_workers: int,
        units: int,
        ranks: int = 1,
        **spec: Any,
    ) -> Delivered:
        """Submit the example: of one rank as a standard workload, of more as a distributed one."""
        whole: Body = {
            "image": "muster/delivery",
            "args": f"{arguments} --print-elements --checkpoint /checkpoints",
            "compute": COMPUTE,
            "storage": {"pvc": [CHECKPOINTS]},
        }
        if data_workers:
            whole["dataDelivery"] = {
                "workers": data_workers,
                "units": units,
                "compute": WORKER_COMPUTE,
            }
        path = "/workloads/trainings"
        if ranks > 1:
            path = "/workloads/distributed"
            whole |= {"distributedFramework": "PyTorch", "numWorkers": ranks - 1}
        program = self.program
        body = {
            "name": name,
            "projectId": program.project,
            "clusterId": program.cluster,
            "spec": whole | spec,
        }
        answer = program.ask("POST", path, body)
        return Delivered(self, str(answer["workloadId"]), name, path)

    def processes(self, workload: str, role: str) -> dict[str, int]:
        """The processes of a workload that have a role, by the host names of their pods.

        A supervisor has none of a container's variables, so it is never among them.
        """
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                environment = _read_environment(entry)
            except OSError:
                continue
            host = environment.get("HOSTNAME", "")
            is_ours = str(self.muster.data) in environment.get("HOME", "")
            has_role = environment.get("MUSTER_DELIVERY_ROLE") == role
            if is_ours and has_role and host.startswith(f"{workload}-"):
                found[host] = int(entry.name)
        return found

    def measure_preparation(self, workload: Delivered) -> tuple[float, float, float]:
        """Return the GPU seconds allocated before data was ready, how long that took, and how long
        after it the first pod of the training was made. Reads rows.
        """
        code = MEASURE_PREPARATION.format(id=workload.id, attempt=1)
        printed = self.muster.manage("shell", "--verbosity", "0", "--command", code)
        early, lasted, later = json.loads(printed.splitlines()[-1])
        return float(early), float(lasted), float(later)


def find_wrong_elements(
    delivered: Delivered, *, batches: int, batch_size: int, ranks: int = 1
) -> list[str]:
    """Find elements that were lost or doubled in what the ranks acknowledged, epoch by epoch.

    A step that was taken again after a restart counts as its last time.
    """
    taken = [merge_steps(delivered, rank) for rank in range(ranks)]
    return compare_epochs(taken, batches // ranks, set(range(batches * batch_size)))


def compare_epochs(
    taken: Sequence[Mapping[int, Sequence[int]]], steps: int, whole: set[int]
) -> list[str]:
    """Compare the elements of each whole epoch, of so many steps of each rank, with the dataset.

    `taken` has the elements of each step of each rank. Of no whole epoch nothing is proved.
    """
    wrong = []
    epochs = min(max(each, default=0) for each in taken) // steps
    for epoch in range(epochs):
        numbers = [
            number
            for each in taken
            for step in range(epoch * steps + 1, (epoch + 1) * steps + 1)
            for number in each.get(step, ())
        ]
        lost, doubled = len(whole - set(numbers)), len(numbers) - len(set(numbers))
        if lost or doubled:
            wrong.append(f"epoch {epoch}: {lost} lost, {doubled} doubled")
    return wrong if epochs else [NOTHING_PROVED]


def merge_steps(delivered: Delivered, rank: int) -> dict[int, tuple[int, ...]]:
    """Merge what all pods of a rank printed, the older ones first."""
    pods = [each for each in delivered.kept_pods() if "-data-" not in each["name"]]
    merged: dict[int, tuple[int, ...]] = {}
    for pod in sorted(pods, key=lambda each: str(each["createdAt"])):
        if (pod.get("rank") or 0) == rank:
            merged |= delivered.steps(str(pod["name"]))
    return merged


def _read_environment(process: Path) -> Mapping[str, str]:
    text = (process / "environ").read_text(errors="replace")
    pairs = (each.partition("=") for each in text.split("\0"))
    return {name: value for name, _, value in pairs}


def kill(pid: int) -> None:
    """End a process without any chance to clean up; one that is gone is well."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
