"""Cluster objects for tests of the code that reads them."""

from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]

JOB_UID = "1111"


def condition(type: str, status: bool = True, **more: str) -> Object:
    return {"type": type, "status": str(status), **more}


def pytorch_job(
    *conditions: Object,
    workers: int = 2,
    master: bool = True,
    counts: Object | None = None,
    **spec: Any,
) -> Object:
    """Return a PyTorchJob with this status."""
    replicas: Object = {"Worker": {"replicas": workers}} | (
        {"Master": {"replicas": 1}} if master else {}
    )
    status: Object = {"conditions": list(conditions)} | (
        {"replicaStatuses": counts} if counts else {}
    )
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "train1", "uid": JOB_UID},
        "spec": {"pytorchReplicaSpecs": replicas, **spec},
        "status": status,
    }


def training_job(kind: str, replicas: Mapping[str, int], *conditions: Object) -> Object:
    """A training job of any kind, as an attempt of ours: MPIJob, TFJob and so on; of a TrainJob the
    nodes are given as {"nodes": n}.
    """
    spec: Object = {
        "anyReplicaSpecs": {type: {"replicas": count} for type, count in replicas.items()}
    }
    if kind == "TrainJob":
        spec = {"trainer": {"numNodes": replicas["nodes"]}}
    metadata = {"name": "train1", "uid": JOB_UID, "labels": {"muster.dev/attempt": "1"}}
    return {
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
        "status": {"conditions": list(conditions)},
    }


def pod_of_batch_job(
    made: Object, *, job: str = "train1-launcher", labels: Mapping[str, str], attempt: str = "1"
) -> Object:
    """Return the pod as one of a batch Job that an operator made for the training job."""
    made["metadata"]["ownerReferences"] = [
        {"kind": "Job", "name": job, "uid": "between", "controller": True}
    ]
    made["metadata"]["labels"] = {"muster.dev/attempt": attempt, **labels}
    return made


def batch_job(
    *conditions: Object, completions: int = 1, parallelism: int = 1, **status: Any
) -> Object:
    """Return a batch Job with this status."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "solo", "uid": JOB_UID},
        "spec": {"completions": completions, "parallelism": parallelism},
        "status": {"conditions": list(conditions), **status},
    }


def pod(
    role: str = "worker",
    index: int = 0,
    *,
    node: str = "n1",
    phase: str = "Running",
    ready: bool = True,
    **more: Any,
) -> Object:
    """A pod of the job. `state` and `last` are of its container; `conditions`, `requests`,
    `annotations`, `message` and so on are added.
    """
    container: Object = {"name": "pytorch", "ready": ready, "restartCount": more.pop("restarts", 0)}
    container |= {"state": more.pop("state", {"running": {}}), "lastState": more.pop("last", {})}
    conditions = [
        condition("PodScheduled", bool(node)),
        condition("Ready", ready),
        *more.pop("conditions", ()),
    ]
    metadata: Object = {
        "name": more.pop("name", f"train1-{role}-{index}"),
        "uid": f"{role}{index}",
        "labels": {
            "training.kubeflow.org/replica-type": role,
            "training.kubeflow.org/replica-index": str(index),
        }
        if role
        else {},
        "annotations": more.pop("annotations", {}),
        "ownerReferences": [{"uid": more.pop("owner", JOB_UID), "controller": True}],
    }
    if more.pop("terminating", False):
        metadata["deletionTimestamp"] = "2026-11-21T00:00:00Z"
    resources: Mapping[str, Any] = more.pop("resources", {})
    spec = {
        "containers": [{"name": "pytorch", "image": "train:1", "resources": resources}],
        **more.pop("spec", {}),
    }
    if node:
        spec["nodeName"] = node
    statuses = [container] if node else []
    return {
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": phase, "conditions": conditions, "containerStatuses": statuses, **more},
    }


def queued_pod(role: str = "worker", index: int = 0, message: str = "", **more: Any) -> Object:
    """Return a pod without a node."""
    made = pod(role, index, node="", phase="Pending", ready=False, **more)
    made["status"]["conditions"] = [
        condition("PodScheduled", False, reason="Unschedulable", message=message)
    ]
    return made


def starting_pod(
    role: str = "worker",
    index: int = 0,
    reason: str = "ContainerCreating",
    message: str = "",
    **more: Any,
) -> Object:
    """Return a pod that has a node and does not run yet."""
    return pod(
        role,
        index,
        phase="Pending",
        ready=False,
        state={"waiting": {"reason": reason, "message": message}},
        **more,
    )


def ended_pod(
    role: str = "worker",
    index: int = 0,
    code: int = 0,
    at: str = "2026-11-21T00:00:10Z",
    **more: Any,
) -> Object:
    """Return a pod whose container has ended."""
    end = {
        "exitCode": code,
        "reason": "Completed" if code == 0 else "Error",
        "finishedAt": at,
    } | more.pop("end", {})
    phase = more.pop("phase", "Failed" if code else "Succeeded")
    return pod(role, index, phase=phase, ready=False, state={"terminated": end}, **more)


def pod_group(reason: str = "", message: str = "") -> Object:
    """Return a PodGroup that waits, if a reason is given."""
    reasons = [{"reason": reason, "message": message}]
    waiting = [
        {
            "type": "UnschedulableOnNodePool",
            "status": "True",
            "reason": "Unschedulable",
            "reasons": reasons,
        }
    ]
    return {
        "kind": "PodGroup",
        "spec": {"minMember": 3},
        "status": {"schedulingConditions": waiting if reason else []},
    }


def event(name: str, reason: str, message: str, at: str = "2026-11-21T00:00:00Z") -> Object:
    return {
        "involvedObject": {"name": name},
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
    }
