"""A cluster of a store and a scheduler alone: the tests play the kubelet and the operators."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from localkube import options, resources
from localkube.controllers.loop import ControllerLoop
from localkube.lifecycle import DeleteOptions
from localkube.metadata import Object, annotations_of, find_condition
from localkube.objects import Objects
from localkube.resources import (
    EVENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODGROUPS,
    PODS,
    PRIORITYCLASSES,
    PYTORCHJOBS,
    QUEUES,
)
from localkube.resources.resource import Resource
from localkube.scheduler import Scheduler, build_default_priority_classes, build_default_queues
from localkube.scheduler.pending_writes import PAUSE_SECONDS
from localkube.store import Store

GPU = "nvidia.com/gpu"


class Bench:
    """A scheduler on a store of its own.

    Call `settle` after changes; everything else reads or writes at once.
    """

    def __init__(
        self, folder: Path, *, gpus: int = 4, cpus: str = "8", memory: str = "32Gi", pods: int = 100
    ) -> None:
        self._passed = 0.0
        self.store = Store(folder / "state.db", lambda key, obj: _fields(key, obj))
        self.objects = Objects(self.store)
        for name in ("default", "team"):
            self.make(NAMESPACES, {"metadata": {"name": name}}, "")
        for obj in build_default_priority_classes():
            self.make(PRIORITYCLASSES, obj, "")
        for obj in build_default_queues():
            self.make(QUEUES, obj, "")
        self.make(
            NODES,
            {"metadata": {"name": options.NODE_NAME, "labels": {"nvidia.com/gpu.memory": "16384"}}},
            "",
        )
        self.offer({"cpu": cpus, "memory": memory, GPU: str(gpus), "pods": str(pods)})
        self.restart()

    def restart(self) -> None:
        """Start a new scheduler on the same objects, as after a crash."""
        self.loop = ControllerLoop(self.objects, elapsed=lambda: self._passed)
        self.scheduler = Scheduler(self.objects)
        self.loop.add_controller(self.scheduler)

    def settle(self) -> None:
        """Let the scheduler work until it has nothing left to place or to write."""
        while self.loop.run_until_idle():
            self._passed += PAUSE_SECONDS

    def run_pass(self) -> None:
        """Let the scheduler finish one pass, however many slices a busy machine makes of it."""
        while self.scheduler.reconcile(("", "")) == 0:
            pass

    def make(self, resource: Resource, obj: Object, namespace: str = "default") -> Object:
        return self.objects.create(resource, namespace, obj)

    def offer(self, allocatable: Mapping[str, str], node_name: str = options.NODE_NAME) -> None:
        def change(node: Object) -> None:
            node.setdefault("status", {})["allocatable"] = dict(allocatable)

        self.objects.modify(NODES, "", node_name, change, subresource="status")

    def add_node(
        self, name: str, allocatable: Mapping[str, str], labels: Mapping[str, str] | None = None
    ) -> None:
        """Create another node."""
        self.make(NODES, {"metadata": {"name": name, "labels": dict(labels or {})}}, "")
        self.offer(allocatable, name)

    def pod(self, name: str, requests: Mapping[str, Any] | None = None, **spec: Any) -> Object:
        """Create a pod of one container.

        `annotations`, `labels` and `owner` are metadata, all else is its spec.
        """
        metadata: Object = {
            "name": name,
            "annotations": spec.pop("annotations", {}),
            "labels": spec.pop("labels", {}),
        }
        owner = spec.pop("owner", None)
        if owner is not None:
            reference = {
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": owner["metadata"]["name"],
                "controller": True,
            }
            metadata["ownerReferences"] = [reference | {"uid": owner["metadata"]["uid"]}]
        container = {
            "name": "main",
            "image": "busybox",
            "command": ["true"],
            "resources": {"limits": dict(requests or {})},
        }
        return self.make(PODS, {"metadata": metadata, "spec": {"containers": [container], **spec}})

    def queue(
        self, name: str, parent: str = "default-parent-queue", **resources: Mapping[str, float]
    ) -> Object:
        """Create a queue without limits but for what is given: `gpu={"quota": 1, "limit": 2}`."""
        every = {
            word: {"quota": 0, "limit": -1, "overQuotaWeight": 1}
            for word in ("cpu", "gpu", "memory")
        }
        spec = {
            "parentQueue": parent,
            "resources": every
            | {word: every[word] | dict(more) for word, more in resources.items()},
        }
        return self.make(QUEUES, {"metadata": {"name": name}, "spec": spec}, "")

    def job(self, name: str, spec: Object | None = None, **metadata: Any) -> Object:
        """Create a PyTorchJob of a master and two workers, whose pods the test makes."""
        template = {
            "spec": {"containers": [{"name": "pytorch", "image": "busybox", "command": ["true"]}]}
        }
        replicas = {
            "Master": {"replicas": 1, "template": template},
            "Worker": {"replicas": 2, "template": template},
        }
        given = {"pytorchReplicaSpecs": replicas} | (spec or {})
        return self.make(PYTORCHJOBS, {"metadata": {"name": name, **metadata}, "spec": given})

    def batch(self, name: str, **metadata: Any) -> Object:
        template = {
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "busybox", "command": ["true"]}],
            }
        }
        return self.make(
            JOBS, {"metadata": {"name": name, **metadata}, "spec": {"template": template}}
        )

    def gang(
        self, job: Object, requests: Mapping[str, Any], count: int = 3, **spec: Any
    ) -> Sequence[str]:
        """Create the pods of a job: a master and workers, as the operator names them."""
        base = job["metadata"]["name"]
        names = [f"{base}-master-0", *(f"{base}-worker-{index}" for index in range(count - 1))]
        for name in names:
            labels = {
                "training.kubeflow.org/replica-type": name.split("-")[-2],
                "training.kubeflow.org/replica-index": name[-1],
            }
            self.pod(name, requests, owner=job, labels=labels, **spec)
        return names

    def end(self, name: str, phase: str = "Succeeded") -> None:
        """End a pod, as the kubelet would."""

        def change(pod: Object) -> None:
            pod.setdefault("status", {})["phase"] = phase

        self.objects.modify(PODS, "default", name, change, subresource="status")

    def remove(self, name: str) -> None:
        self.objects.delete(PODS, "default", name, IMMEDIATELY)

    def read(self, name: str) -> Object:
        return self.objects.get(PODS, "default", name)

    def placed(self) -> set[str]:
        """Return the names of the unfinished pods on the node."""
        return {
            pod["metadata"]["name"]
            for pod in self.objects.list(PODS)
            if pod["spec"].get("nodeName") and _is_unfinished(pod)
        }

    def devices(self, name: str) -> str:
        return annotations_of(self.read(name)).get(options.GPU_DEVICES_ANNOTATION, "")

    def condition(self, name: str) -> Object:
        return (
            find_condition(self.read(name)["status"].get("conditions") or [], "PodScheduled") or {}
        )

    def events(self, name: str) -> Sequence[Object]:
        return [
            event for event in self.objects.list(EVENTS) if event["involvedObject"]["name"] == name
        ]

    def group(self, name: str) -> Object:
        """Return the PodGroup of a workload of that name."""
        return next(
            group
            for group in self.objects.list(PODGROUPS)
            if group["metadata"]["name"].startswith(f"pg-{name}-")
        )

    def reason(self, name: str) -> Object:
        """Return the one reason of a PodGroup's scheduling condition."""
        (condition,) = self.group(name)["status"]["schedulingConditions"]
        assert condition["type"] == "UnschedulableOnNodePool"
        reason: Object
        (reason,) = condition["reasons"]
        return reason


IMMEDIATELY = DeleteOptions(grace_seconds=0)


def _is_unfinished(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


def _fields(key: str, obj: Object) -> Mapping[str, str]:
    resource = resources.find_by_key(key)
    return (
        {}
        if resource is None
        else {path: value(obj) for path, value in resource.field_selectors.items()}
    )
