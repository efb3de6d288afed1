"""Many workloads of four pods as objects in an API that does not run them, and what happens to
those pods.
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
from kubehttp import MERGE, Connection, Refused, Server

PODS = 4
NAMESPACES = 10
NAMESPACE = "muster-scale"
THREADS = 8
OF_NOBODY = "kueue.x-k8s.io/multikueue"
"""A job that is managed by this is left alone by the training operator, and by localkube."""
SINCE = "2026-11-21T08:00:00Z"


@dataclass(frozen=True)
class Workload:
    """One of the estate: `id` is what its objects carry as a label."""

    id: str
    name: str
    namespace: str

    @property
    def pods(self) -> list[str]:
        return [f"{self.name}-{role}-{index}" for role, index in _ranks()]


@dataclass
class Estate:
    """What there is in the API: the workloads, and of each pod its path, its uid and the newest
    version of it.
    """

    server: Server
    workloads: Sequence[Workload]
    nodes: bool
    uids: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    """The paths of the pods that are not up."""

    @classmethod
    def planned(cls, server: Server, count: int, *, nodes: bool) -> "Estate":
        """Nothing is made yet. `nodes`: pods say that they are on nodes, which a real control plane
        would know to be none.
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
        """Of all pods."""
        return [
            f"/api/v1/namespaces/{each.namespace}/pods/{name}"
            for each in self.workloads
            for name in each.pods
        ]

    def fill(self) -> None:
        """Make all of it: every job says that it runs, and every pod that it is up."""
        with Connection(self.server) as connection:
            for number in range(NAMESPACES):
                _made(
                    connection,
                    "/api/v1/namespaces",
                    {"metadata": {"name": f"{NAMESPACE}-{number}"}},
                )
                # Where nobody makes it, no pod is admitted.
                _made(
                    connection,
                    f"/api/v1/namespaces/{NAMESPACE}-{number}/serviceaccounts",
                    {"metadata": {"name": "default"}},
                )
        self._each(self.workloads, self._make)

    def _make(self, connection: Connection, workload: Workload) -> None:
        path = f"/apis/kubeflow.org/v1/namespaces/{workload.namespace}/pytorchjobs"
        job = _object(connection.post(path, _job(workload)))
        _patch(connection, f"{path}/{workload.name}/status", {"status": _job_status()})
        for rank, (role, index) in enumerate(_ranks()):
            made = _object(
                connection.post(
                    f"/api/v1/namespaces/{workload.namespace}/pods",
                    self._pod(workload, job, role, index),
                )
            )
            place = f"/api/v1/namespaces/{workload.namespace}/pods/{made['metadata']['name']}"
            self.uids[place] = made["metadata"]["uid"]
            self.stand(connection, place, up=True, rank=rank)

    def stand(self, connection: Connection, path: str, *, up: bool, rank: int = 0) -> str:
        """Say of a pod that it is up or is not; the version of that."""
        answer = _patch(connection, f"{path}/status", {"status": _pod_status(up, rank)})
        version: str = answer["metadata"]["resourceVersion"]
        self.versions[path] = version
        (self.down.discard if up else self.down.add)(path)
        return version

    def change(self, rate: int, seconds: float) -> list[tuple[str, str, int]]:
        """Take pods down, and those that are down up, at this rate; of each the uid, the version,
        and when its reply was there (ns).
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
                    version = self.stand(connection, path, up=path in self.down)
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

    def remove(self) -> None:
        """Ask for the end of everything that was made."""
        with Connection(self.server) as connection:
            for number in range(NAMESPACES):
                connection.raw("DELETE", f"/api/v1/namespaces/{NAMESPACE}-{number}")

    def _each(
        self, workloads: Sequence[Workload], do: Callable[[Connection, Workload], None]
    ) -> None:
        def work(mine: Sequence[Workload]) -> None:
            with Connection(self.server) as connection:
                for each in mine:
                    do(connection, each)

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(work, [workloads[first::THREADS] for first in range(THREADS)]))

    def _pod(
        self, workload: Workload, job: dict[str, Any], role: str, index: int
    ) -> dict[str, Any]:
        pod = objects.pod(f"{workload.name}-{role}-{index}")
        metadata = pod["metadata"]
        metadata["labels"] |= {
            **_labels(workload),
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


def _ranks() -> list[tuple[str, int]]:
    return [("master", 0), *(("worker", index) for index in range(PODS - 1))]


def _labels(workload: Workload) -> dict[str, str]:
    return {
        "app.kubernetes.io/managed-by": "muster",
        "muster.dev/workload": workload.id,
        "muster.dev/attempt": "1",
    }


def _job(workload: Workload) -> dict[str, Any]:
    job = objects.job(workload.name)
    job["metadata"]["labels"] = _labels(workload)
    job["spec"]["runPolicy"] = {"managedBy": OF_NOBODY}
    return job


def _job_status() -> dict[str, Any]:
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


def _pod_status(up: bool, rank: int) -> dict[str, Any]:
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


def _made(connection: Connection, path: str, obj: dict[str, Any]) -> None:
    try:
        connection.post(path, obj)
    except Refused as error:
        if " 409 " not in f" {error} ":
            raise


def _patch(connection: Connection, path: str, change: dict[str, Any]) -> Any:
    return _object(connection.raw("PATCH", path, json.dumps(change).encode(), media=MERGE))


def _object(answer: bytes) -> Any:
    return json.loads(answer)
