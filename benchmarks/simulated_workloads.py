"""Many workloads of four pods as objects in an API that does not run them, and the changes of those
pods.
"""

import json
import queue
import random
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import objects
from kubehttp import MERGE, ApiError, Connection, Server

PODS = 4
NAMESPACES = 10
NAMESPACE = "muster-scale"
THREADS = 8
OF_NOBODY = "kueue.x-k8s.io/multikueue"
"""A job that is managed by this is left alone by the training operator, and by localkube."""
SINCE = "2026-11-21T08:00:00Z"


@dataclass(frozen=True)
class Workload:
    """One simulated workload; `id` is the label of its objects."""

    id: str
    name: str
    namespace: str

    @property
    def pods(self) -> list[str]:
        return [f"{self.name}-{role}-{index}" for role, index in _list_ranks()]


@dataclass
class SimulatedWorkloads:
    """The workloads in the API, and of each pod its path, its uid and its newest version."""

    server: Server
    workloads: Sequence[Workload]
    nodes: bool
    uids: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    """The paths of the pods that are not up."""

    @classmethod
    def plan(cls, server: Server, count: int, *, nodes: bool) -> "SimulatedWorkloads":
        """Return the workloads without creating anything.

        With `nodes` the pods name nodes, which a real control plane would know not to exist.
        """
        made = [
            Workload(
                str(uuid.uuid5(uuid.NAMESPACE_URL, f"scale {number}")),
                f"train-{number:05d}",
                f"{NAMESPACE}-{number % NAMESPACES}",
            )
            for number in range(count)
        ]
        return cls(server, made, nodes)

    @property
    def paths(self) -> list[str]:
        """The paths of all pods."""
        return [
            f"/api/v1/namespaces/{each.namespace}/pods/{name}"
            for each in self.workloads
            for name in each.pods
        ]

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
        self._run_parallel(self.workloads, self._create_workload)

    def _create_workload(self, connection: Connection, workload: Workload) -> None:
        path = f"/apis/kubeflow.org/v1/namespaces/{workload.namespace}/pytorchjobs"
        job = _parse_object(connection.post(path, _build_job(workload)))
        _patch_object(connection, f"{path}/{workload.name}/status", {"status": _build_job_status()})
        for rank, (role, index) in enumerate(_list_ranks()):
            made = _parse_object(
                connection.post(
                    f"/api/v1/namespaces/{workload.namespace}/pods",
                    self._build_pod(workload, job, role, index),
                )
            )
            place = f"/api/v1/namespaces/{workload.namespace}/pods/{made['metadata']['name']}"
            self.uids[place] = made["metadata"]["uid"]
            self.set_pod_ready(connection, place, up=True, rank=rank)

    def set_pod_ready(self, connection: Connection, path: str, *, up: bool, rank: int = 0) -> str:
        """Set whether a pod is up, and return its new resource version."""
        answer = _patch_object(
            connection, f"{path}/status", {"status": _build_pod_status(up, rank)}
        )
        version: str = answer["metadata"]["resourceVersion"]
        self.versions[path] = version
        (self.down.discard if up else self.down.add)(path)
        return version

    def change_pods(self, rate: int, seconds: float) -> list[tuple[str, str, int]]:
        """Take pods down, or up again, at this rate; return of each its uid, its version, and when
        its reply was there (ns).
        """
        order = self.paths
        random.Random(7).shuffle(order)
        count = int(rate * seconds)
        numbers: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        done: list[tuple[str, str, int]] = []

        def work() -> None:
            with Connection(self.server) as connection:
                while (number := numbers.get()) is not None:
                    path = order[number % len(order)]
                    version = self.set_pod_ready(connection, path, up=path in self.down)
                    done.append((self.uids[path], version, time.time_ns()))

        threads = [threading.Thread(target=work) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        for number in range(count):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            numbers.put(number)
        for _ in threads:
            numbers.put(None)
        for thread in threads:
            thread.join()
        return done

    def delete_all(self) -> None:
        """Begin the deletion of everything that was created."""
        with Connection(self.server) as connection:
            for number in range(NAMESPACES):
                connection.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}-{number}")

    def _run_parallel(
        self, workloads: Sequence[Workload], run: Callable[[Connection, Workload], None]
    ) -> None:
        def work(share: Sequence[Workload]) -> None:
            with Connection(self.server) as connection:
                for each in share:
                    run(connection, each)

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(work, [workloads[first::THREADS] for first in range(THREADS)]))

    def _build_pod(
        self, workload: Workload, job: dict[str, Any], role: str, index: int
    ) -> dict[str, Any]:
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
                "uid": job["metadata"]["uid"],
                "controller": True,
            }
        ]
        pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1"
        if self.nodes:
            pod["spec"]["nodeName"] = f"node-{index}"
        return pod


def _list_ranks() -> list[tuple[str, int]]:
    return [("master", 0), *(("worker", index) for index in range(PODS - 1))]


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
    return job


def _build_job_status() -> dict[str, Any]:
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
        "replicaStatuses": {"Master": {"active": 1}, "Worker": {"active": PODS - 1}},
        "startTime": SINCE,
    }


def _build_pod_status(up: bool, rank: int) -> dict[str, Any]:
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
    return {
        "phase": "Running",
        "conditions": [
            condition(kind, up or kind in ("Initialized", "PodScheduled"))
            for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "containerStatuses": [container],
        "hostIP": f"10.0.0.{rank}",
        "podIP": f"10.1.0.{rank}",
        "podIPs": [{"ip": f"10.1.0.{rank}"}],
        "startTime": SINCE,
        "qosClass": "Burstable",
    }


def _create_if_missing(connection: Connection, path: str, obj: dict[str, Any]) -> None:
    try:
        connection.post(path, obj)
    except ApiError as error:
        if " 409 " not in f" {error} ":
            raise


def _patch_object(connection: Connection, path: str, change: dict[str, Any]) -> Any:
    return _parse_object(
        connection.request("PATCH", path, json.dumps(change).encode(), media=MERGE)
    )


def _parse_object(answer: bytes) -> Any:
    return json.loads(answer)
