"""Many workloads of any size as objects in an API that does not run them, and the changes of their
pods.
"""

import functools
import json
import queue
import random
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import objects
from kubehttp import MERGE, ApiError, Connection, Server

NAMESPACES = 10
NODES = 100
NAMESPACE = "muster-scale"
THREADS = 8
WITHIN = 180.0
OF_NOBODY = "kueue.x-k8s.io/multikueue"
"""A job that is managed by this is left alone by the training operator, and by localkube."""
SINCE = "2026-11-21T08:00:00Z"
KINDS = (
    "/api/v1/namespaces/{}/pods",
    "/apis/kubeflow.org/v1/namespaces/{}/pytorchjobs",
)

Change = tuple[str, str, int]
"""A pod's uid, its new version, and when the API's reply was there (ns since 1970)."""
Item = TypeVar("Item")


@dataclass(frozen=True)
class Workload:
    """One simulated workload; `id` is the label of its objects."""

    id: str
    name: str
    namespace: str
    size: int

    @property
    def pods(self) -> list[str]:
        return [f"{self.name}-{role}-{index}" for role, index in _list_ranks(self.size)]


@dataclass
class SimulatedWorkloads:
    """The workloads in the API, and of each pod its path, its uid and its newest version."""

    server: Server
    workloads: Sequence[Workload]
    nodes: bool
    uids: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    job_uids: dict[str, str] = field(default_factory=dict)
    """The uids of the jobs, by the ids of their workloads."""
    down: set[str] = field(default_factory=set)
    """The paths of the pods that are not up."""

    @classmethod
    def plan(cls, server: Server, pods: int, size: int, *, nodes: bool) -> "SimulatedWorkloads":
        """Return workloads of `size` pods, with `pods` of them in all, without creating anything.

        With `nodes` the pods name nodes, which a real control plane would know not to exist.
        """
        workloads = [
            Workload(
                str(uuid.uuid5(uuid.NAMESPACE_URL, f"scale {size} {number}")),
                f"train-{size}-{number:05d}",
                f"{NAMESPACE}-{number % NAMESPACES}",
                size,
            )
            for number in range(pods // size)
        ]
        return cls(server, workloads, nodes)

    @property
    def paths(self) -> list[str]:
        """The paths of all pods."""
        return [path for each in self.workloads for path in list_paths(each)]

    def create_objects(self) -> None:
        """Create everything: every job runs, and every pod is up."""
        with Connection(self.server) as connection:
            for number in range(NAMESPACES):
                _create_if_missing(
                    connection,
                    "/api/v1/namespaces",
                    {"metadata": {"name": f"{NAMESPACE}-{number}"}},
                )
                # Where nobody makes it, no pod is admitted.
                _create_if_missing(
                    connection,
                    f"/api/v1/namespaces/{NAMESPACE}-{number}/serviceaccounts",
                    {"metadata": {"name": "default"}},
                )
        self._run_parallel(self.workloads, self._create_job)
        pods = [(each, rank) for each in self.workloads for rank in range(each.size)]
        self._run_parallel(pods, self._create_pod)

    def _create_job(self, connection: Connection, workload: Workload) -> None:
        path = f"/apis/kubeflow.org/v1/namespaces/{workload.namespace}/pytorchjobs"
        job = _parse_object(connection.post(path, _build_job(workload)))
        self.job_uids[workload.id] = job["metadata"]["uid"]
        status = {"status": _build_job_status(workload.size)}
        _patch_object(connection, f"{path}/{workload.name}/status", json.dumps(status).encode())

    def _create_pod(self, connection: Connection, place: tuple[Workload, int]) -> None:
        workload, rank = place
        pods = f"/api/v1/namespaces/{workload.namespace}/pods"
        metadata = _parse_object(connection.post(pods, self._build_pod(workload, rank)))["metadata"]
        path = f"{pods}/{metadata['name']}"
        self.uids[path] = metadata["uid"]
        self.set_pod_ready(connection, path, up=True)

    def set_pod_ready(self, connection: Connection, path: str, *, up: bool) -> str:
        """Set whether a pod is up, and return its new resource version."""
        answer = _patch_object(connection, f"{path}/status", _encode_pod_status(up))
        version: str = answer["metadata"]["resourceVersion"]
        self.versions[path] = version
        (self.down.discard if up else self.down.add)(path)
        return version

    def change_pods(
        self,
        rate: float,
        seconds: float,
        report: Callable[[Change], None] | None = None,
        paths: Sequence[str] = (),
        *,
        can_last: bool = True,
    ) -> list[Change]:
        """Take pods down, or up again, at this rate, and return the changes.

        `report` is called with each, from several threads; `paths` limits the pods. Unless it
        `can_last` longer, what an API that is slower has not taken by then is left out.
        """
        order = list(paths or self.paths)
        random.Random(7).shuffle(order)
        count = int(rate * seconds)
        numbers: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        changes: list[Change] = []
        began = time.monotonic()
        deadline = began + (WITHIN if can_last else seconds)

        def work() -> None:
            with Connection(self.server) as connection:
                while (number := numbers.get()) is not None:
                    if time.monotonic() > deadline:
                        continue
                    path = order[number % len(order)]
                    version = self.set_pod_ready(connection, path, up=path in self.down)
                    change = self.uids[path], version, time.time_ns()
                    changes.append(change)
                    if report is not None:
                        report(change)

        threads = [threading.Thread(target=work) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for number in range(count):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            numbers.put(number)
        for _ in threads:
            numbers.put(None)
        for thread in threads:
            thread.join()
        return changes

    def delete_objects(self) -> None:
        """Delete the pods and jobs, also where no controller would do it with their namespace."""
        options = json.dumps({"gracePeriodSeconds": 0}).encode()
        with Connection(self.server) as connection:
            for number in range(NAMESPACES):
                namespace = f"{NAMESPACE}-{number}"
                for kind in KINDS:
                    connection.request("DELETE", kind.format(namespace), options)

    def _run_parallel(self, items: Sequence[Item], run: Callable[[Connection, Item], None]) -> None:
        def work(share: Sequence[Item]) -> None:
            with Connection(self.server) as connection:
                for each in share:
                    run(connection, each)

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(work, [items[first::THREADS] for first in range(THREADS)]))

    def _build_pod(self, workload: Workload, rank: int) -> dict[str, Any]:
        role, index = _list_ranks(workload.size)[rank]
        pod = objects.build_pod(f"{workload.name}-{role}-{index}")
        metadata = pod["metadata"]
        metadata["labels"] |= {
            **_build_labels(workload),
            "training.kubeflow.org/replica-type": role,
            "training.kubeflow.org/replica-index": str(index),
        }
        metadata["ownerReferences"] = [
            {
                "apiVersion": "kubeflow.org/v1",
                "kind": "PyTorchJob",
                "name": workload.name,
                "uid": self.job_uids[workload.id],
                "controller": True,
            }
        ]
        pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1"
        if self.nodes:
            pod["spec"]["nodeName"] = f"node-{index % NODES}"
        return pod


def delete_namespaces(server: Server) -> None:
    """Begin the deletion of the namespaces."""
    with Connection(server) as connection:
        for number in range(NAMESPACES):
            connection.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}-{number}")


def list_paths(workload: Workload) -> list[str]:
    """List the paths of a workload's pods in the API."""
    return [f"/api/v1/namespaces/{workload.namespace}/pods/{name}" for name in workload.pods]


@functools.cache
def _list_ranks(size: int) -> list[tuple[str, int]]:
    return [("master", 0), *(("worker", index) for index in range(size - 1))]


def _build_labels(workload: Workload) -> dict[str, str]:
    return {
        "app.kubernetes.io/managed-by": "muster",
        "muster.dev/workload": workload.id,
        "muster.dev/attempt": "1",
    }


def _build_job(workload: Workload) -> dict[str, Any]:
    job = objects.build_job(workload.name)
    job["metadata"]["labels"] = _build_labels(workload)
    job["spec"]["runPolicy"] = {"managedBy": OF_NOBODY}
    replicas = job["spec"]["pytorchReplicaSpecs"]
    if workload.size > 1:
        replicas["Worker"]["replicas"] = workload.size - 1
    else:
        del replicas["Worker"]
    return job


def _build_job_status(size: int) -> dict[str, Any]:
    conditions = [
        {
            "type": kind,
            "status": "True",
            "reason": f"PyTorchJob{kind}",
            "message": "",
            "lastTransitionTime": SINCE,
            "lastUpdateTime": SINCE,
        }
        for kind in ("Created", "Running")
    ]
    return {
        "conditions": conditions,
        "replicaStatuses": {"Master": {"active": 1}, "Worker": {"active": size - 1}},
        "startTime": SINCE,
    }


@functools.cache
def _encode_pod_status(up: bool) -> bytes:
    """Return the patch of a pod's status. Its QoS class is not in it: that is immutable."""

    def condition(kind: str, holds: bool) -> dict[str, Any]:
        return {
            "type": kind,
            "status": "True" if holds else "False",
            "lastProbeTime": None,
            "lastTransitionTime": SINCE,
        }

    container = {
        "name": "pytorch",
        "image": "registry.example.com/team/train:2026.11",
        "imageID": "registry.example.com/team/train@sha256:" + "0" * 64,
        "containerID": "containerd://" + "0" * 64,
        "ready": up,
        "started": up,
        "restartCount": 0,
        "state": {"running": {"startedAt": SINCE}},
        "lastState": {},
    }
    status = {
        "phase": "Running",
        "conditions": [
            condition(kind, up or kind in ("Initialized", "PodScheduled"))
            for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "containerStatuses": [container],
        "hostIP": "10.0.0.1",
        "podIP": "10.1.0.1",
        "podIPs": [{"ip": "10.1.0.1"}],
        "startTime": SINCE,
    }
    return json.dumps({"status": status}).encode()


def _create_if_missing(connection: Connection, path: str, obj: dict[str, Any]) -> None:
    try:
        connection.post(path, obj)
    except ApiError as error:
        if " 409 " not in f" {error} ":
            raise


def _patch_object(connection: Connection, path: str, change: bytes) -> Any:
    return _parse_object(connection.request("PATCH", path, change, media=MERGE))


def _parse_object(answer: bytes) -> Any:
    return json.loads(answer)
