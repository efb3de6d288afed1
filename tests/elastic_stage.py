"""Elastic training between two projects: an embedded cluster of four nodes with a virtual GPU each,
Muster on it, and a department whose project-a and project-b have two guaranteed GPUs each.

For the journey and the benchmark. The cluster is a process of its own, so that it goes on while
Muster does not run. Everything is asked over REST, but for what only a cluster tells at once.
"""

import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from tests.cluster import ROOT, LocalKube
from tests.conformance.api import MERGE, Api, Object
from tests.free_ports import pick_free_port
from tests.installation import Installation, eventually
from tests.rest import Body, Client, Reader, Refused

PASSWORD = "correct horse battery"
NODES = "4x1gpu"
NODE_COUNT = 4
EVERY = 10
"""Steps between checkpoints."""
TRAINING = f"--steps 100000 --slow 0.1 --checkpoint /checkpoints --checkpoint-every {EVERY}"
COMPUTE = {"gpuDevicesRequest": 1, "cpuCoreRequest": 0.05, "cpuMemoryRequest": "20M"}
CHECKPOINTS = {
    "path": "/checkpoints",
    "existingPvc": False,
    "claimInfo": {"size": "1G", "accessModes": {"readWriteMany": True}},
}
LOST_NODE = ("--node-monitor-grace-period", "5", "--default-unreachable-toleration-seconds", "5")
STOPPED = "localkube.muster.dev/stopped"
REGISTER = """
import pathlib, sys
from clusters import actions
actions.register("localkube", pathlib.Path({kubeconfig!r}).read_text(), is_local=True)
"""
FORGET_KAI = """
import time
from dataclasses import replace
from datetime import timedelta
from django.utils import timezone
from clusters.models import Cluster
# One that is on its way would write KAI back: shortly after one has ended there is none.
while timezone.now() - Cluster.objects.get().probed_at > timedelta(seconds=15):
    time.sleep(0.5)
cluster = Cluster.objects.get()
served = frozenset(each for each in cluster.can.served if "scheduling.run.ai" not in each)
later = timezone.now() + timedelta(hours=1)
Cluster.objects.update(capabilities=replace(cluster.can, served=served).to_json(), probed_at=later)
"""
ASK_AGAIN = """
from clusters.models import Cluster
from clusters.tasks import heartbeat
Cluster.objects.update(probed_at=None)
heartbeat(str(Cluster.objects.get().pk))
"""
PODS = "/api/v1/namespaces/{namespace}/pods"
STEP = re.compile(r"^step (\d+) loss (\S+) rank (\d+) world (\d+)$", re.MULTILINE)
RESUMED = re.compile(r"^(?:resumed|no checkpoint: began anew) at step (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Training:
    """A workload of the stage, and what its pods print."""

    stage: "ElasticStage"
    id: str
    name: str
    namespace: str

    @property
    def phase(self) -> str:
        return str(self.whole["phase"])

    @property
    def whole(self) -> Body:
        """Everything that REST says of it."""
        return dict(self.stage.ask("GET", f"/workloads/{self.id}"))

    @property
    def history(self) -> list[Body]:
        return list(self.stage.ask("GET", f"/workloads/{self.id}/history?limit=100")["records"])

    @property
    def is_over(self) -> bool:
        return self.phase in ("Completed", "Failed", "Stopped")

    def pods(self) -> dict[str, Object]:
        """Its pods as its cluster has them now, by name."""
        selector = f"training.kubeflow.org/job-name={self.name}"
        listed = self.stage.kube.get(
            PODS.format(namespace=self.namespace), labelSelector=selector
        ).ok()
        return {each["metadata"]["name"]: each for each in listed["items"]}

    def schedulers(self) -> set[str]:
        """The schedulers that its pods are for."""
        return {pod["spec"]["schedulerName"] for pod in self.pods().values()}

    def wanted(self) -> int:
        """How many pods its job has now in the cluster, there or not."""
        path = f"/apis/kubeflow.org/v1/namespaces/{self.namespace}/pytorchjobs/{self.name}"
        replicas = self.stage.kube.get(path).ok()["spec"]["pytorchReplicaSpecs"]
        return sum(int(each["replicas"]) for each in replicas.values())

    def evicted(self) -> set[str]:
        """The names of the pods that give way."""
        return {
            name
            for name, pod in self.pods().items()
            if "deletionTimestamp" in pod["metadata"]
            or any(
                each["type"] == "DisruptionTarget" for each in pod["status"].get("conditions", [])
            )
        }

    def running(self) -> set[str]:
        """The names of the pods that run and are to stay."""
        return {
            name
            for name, pod in self.pods().items()
            if pod["status"].get("phase") == "Running"
            and "deletionTimestamp" not in pod["metadata"]
        }

    def log(self, pod: str = "worker-0", **query: int) -> str:
        """The log of one of its pods, as the cluster has it; "" while there is none."""
        path = f"{PODS.format(namespace=self.namespace)}/{self.name}-{pod}/log"
        answer = self.stage.kube.get(path, accept="*/*", **query)
        return answer.text if answer.status == 200 else ""

    def losses(self, pod: str = "worker-0") -> dict[int, float]:
        return {int(step): float(loss) for step, loss, _, _ in STEP.findall(self.log(pod))}

    def world(self) -> int:
        """How many ranks took part in the group's last step; 0 before its first."""
        found = STEP.findall(self.log(tailLines=10).rpartition("the group forms anew")[2])
        return int(found[-1][3]) if found else 0

    def wait_for_world(self, world: int, within: float) -> None:
        """Wait until a step was made by so many ranks."""
        self.stage.wait(lambda: self.world() == world, within, self)

    def wait_for_phase(self, phase: str, within: float) -> None:
        self.stage.wait(lambda: self.phase == phase, within, self)

    def delete_pod(self, pod: str) -> None:
        """Delete one of its pods in the cluster, as somebody with kubectl does."""
        path = f"{PODS.format(namespace=self.namespace)}/{self.name}-{pod}"
        self.stage.kube.delete(path).ok()

    def stop(self) -> None:
        """Request its stop."""
        self.stage.ask("POST", f"/workloads/distributed/{self.id}/suspend")

    def remove(self) -> None:
        """Delete it and wait until nothing of it is left in its cluster."""
        with contextlib.suppress(Refused):
            self.stage.ask("DELETE", f"/workloads/distributed/{self.id}")
        eventually(lambda: not self.pods(), within=270)

    def describe(self) -> str:
        """What is known of it, for a failure's message."""
        state: dict[str, Any] = {"pods": {}}
        for name, pod in self.pods().items():
            conditions = pod["status"].get("conditions", [])
            state["pods"][name] = [
                pod["status"].get("phase"),
                pod["spec"].get("nodeName"),
                pod["metadata"].get("deletionTimestamp"),
                [each.get("message") for each in conditions if each.get("message")],
            ]
        with contextlib.suppress(Refused, OSError):
            state |= {"phase": self.phase, "message": self.whole.get("phaseMessage")}
            events = [each["spec"].get("event", {}) for each in self.history]
            state["causes"] = [each["cause"] for each in events if "cause" in each]
        return f"{self.name}: {json.dumps(state)}\n{self.log(tailLines=5)}"


class ElasticStage:
    """Starts and ends everything; see the module."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.folder = folder
        self.cluster = LocalKube(folder / "kube", "--nodes", NODES, *LOST_NODE)
        self.muster = Installation(
            folder / "var", localkube=0, localkube_gpus="", admin_password=PASSWORD, **options
        )
        del self.muster.options["localkube_gpus"]
        self.projects: dict[str, Body] = {}
        self._token = ""

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.cluster)
            stack.enter_context(self.muster)
            self.kube = Api.from_kubeconfig(self.cluster.kubeconfig)
            stack.callback(self.kube.close)
            self._prepare()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    def _prepare(self) -> None:
        self._run(REGISTER.format(kubeconfig=str(self.cluster.kubeconfig)))
        self.program = Client(self.muster.url, PASSWORD)
        cluster = self.ask("GET", "/clusters")[0]["uuid"]
        department = self.ask("POST", "/org-unit/departments", {"name": "vision"})
        for name in ("project-a", "project-b"):
            resources = [{"gpu": {"deserved": 2, "limit": -1, "overQuotaWeight": 1}}]
            body = {
                "name": name,
                "clusterId": cluster,
                "departmentId": department["id"],
                "resources": resources,
            }
            made = self.ask("POST", "/org-unit/projects", body)
            self.projects[name] = made
        for name, made in self.projects.items():
            path = f"/org-unit/projects/{made['id']}"
            eventually(partial(self._is_ready, path), within=180)
            self.projects[name] = self.ask("GET", path)
        eventually(lambda: len(self.ask("GET", "/nodes")["nodes"]) == NODE_COUNT, within=180)

    def _is_ready(self, path: str) -> bool:
        return bool(self.ask("GET", path)["status"]["phase"] == "Ready")

    def ask(self, method: str, path: str, body: Body | None = None) -> Any:
        return self.program.ask(method, path, body)

    def restart_muster(self) -> None:
        """Start Muster again after `muster.stop`."""
        self.muster.start()
        self.program.url = self.muster.url

    def submit(self, project: str, name: str, **spec: Any) -> Training:
        """Submit a workload of PyTorch with a GPU for each pod."""
        made = self.projects[project]
        whole = {"distributedFramework": "PyTorch", "compute": COMPUTE} | spec
        body = {
            "name": name,
            "projectId": str(made["id"]),
            "clusterId": made["clusterId"],
            "spec": whole,
        }
        answer = self.ask("POST", "/workloads/distributed", body)
        return Training(self, str(answer["workloadId"]), name, made["namespace"])

    def submit_elastic(self, name: str, *, workers: int = 3, **spec: Any) -> Training:
        """Submit the issue's training to project-a: 2 to 4 pods, the master among them."""
        elastic = {
            "image": "muster/elastic",
            "args": TRAINING,
            "numWorkers": workers,
            "minReplicas": 2,
            "maxReplicas": 4,
            "storage": {"pvc": [CHECKPOINTS]},
        }
        return self.submit("project-a", name, **(elastic | spec))

    def submit_rival(self, name: str, steps: int = 1000, **spec: Any) -> Training:
        """Submit two pods to project-b, which end by themselves: ten steps a second."""
        arguments = f"--steps {steps} --slow 0.1"
        rival = {"image": "muster/allreduce", "args": arguments, "numWorkers": 1}
        return self.submit("project-b", name, **(rival | spec))

    @contextlib.contextmanager
    def without_kai(self) -> Iterator[None]:
        """Let Muster know of no KAI in the cluster: pods go to the default scheduler."""
        self._run(FORGET_KAI)
        yield
        self._run(ASK_AGAIN)

    def _run(self, code: str) -> None:
        """Run a few lines of Python with Django on Muster's data."""
        self.muster.manage("shell", "--verbosity", "0", "--command", code)

    def close_node(self, node: str, *, is_closed: bool = True) -> None:
        """Cordon a node, or let it take pods again."""
        self.kube.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": is_closed}}, MERGE).ok()

    def set_quota(self, project: str, gpus: int) -> None:
        """Give a project another quota, and wait until its cluster has it."""
        path = f"/org-unit/projects/{self.projects[project]['id']}"
        self.ask("PATCH", f"{path}/resources", {"resources": [{"gpu": {"deserved": gpus}}]})
        eventually(lambda: self._is_ready(path), within=180)

    def stop_kubelet(self, node: str, *, stopped: bool = True) -> None:
        """Cut a node's power, or give it back."""
        annotations = {STOPPED: "true" if stopped else None}
        self.kube.patch(
            f"/api/v1/nodes/{node}", {"metadata": {"annotations": annotations}}, MERGE
        ).ok()

    def wait(self, condition: Callable[[], Any], within: float, *trainings: Training) -> float:
        """Wait until it is so, and return the seconds that it took; else fail with what is."""
        started = time.monotonic()
        while not condition():
            if time.monotonic() - started > within:
                descriptions = "\n".join(each.describe() for each in trainings)
                raise AssertionError(f"not within {within:g} s; {descriptions}")
            time.sleep(0.05)
        return time.monotonic() - started

    def reader(self) -> Reader:
        """Somebody who looks at Muster's pages."""
        return Reader(self.muster.url, PASSWORD)


def train_uninterrupted(steps: int) -> Mapping[int, float]:
    """Return the loss of each step of a training that one rank makes without interruption."""
    command = [sys.executable, str(ROOT / "examples" / "elastic.py"), "--slow", "0"]
    environment = {
        "PET_RDZV_ENDPOINT": f"127.0.0.1:{pick_free_port()}",
        "PET_RDZV_CONF": "is_host=1",
        "PET_NNODES": "1",
    }
    done = subprocess.run(
        [*command, "--steps", str(steps)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return {int(step): float(loss) for step, loss, _, _ in STEP.findall(done.stdout)}


def find_lost_steps(log: str) -> Iterator[int]:
    """Return how many steps were made again after each interruption, by the log of one rank."""
    last = 0
    for line in log.splitlines():
        if made := STEP.match(line):
            last = int(made[1])
        elif resumed := RESUMED.match(line):
            yield last - int(resumed[1])
