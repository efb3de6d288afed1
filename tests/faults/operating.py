"""Objects and statuses as an operator and a kubelet would write them, for histories in which the
test is both.
"""

from collections.abc import Iterator
from typing import Any

from clusters.job_kinds import JOBS
from clusters.job_kinds.pytorch import PYTORCHJOBS
from clusters.kube.resources import Resource

Object = dict[str, Any]

PHASES = ("Pending", "Starting", "Running", "Unready", "Succeeded", "Failed", "Preempted")
CONDITIONS = ("Running", "Restarting", "Succeeded", "Failed")


def without_controller(obj: Object) -> None:
    """The cluster's own operators leave such a job to others."""
    if obj.get("kind") == "Job":
        obj["spec"]["managedBy"] = "example.com/history"
    elif obj.get("kind") == "PyTorchJob":
        obj["spec"].setdefault("runPolicy", {})["managedBy"] = "kueue.x-k8s.io/multikueue"


def resource_of(job: Object) -> Resource:
    """The kind of a job."""
    return JOBS if job["kind"] == "Job" else PYTORCHJOBS


def owned_by(job: Object) -> Object:
    """The owner reference of what a job controls."""
    metadata = job["metadata"]
    return {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


def replicas(job: Object) -> Iterator[tuple[str, int, Object]]:
    """The pods that a job wants: role, index and template."""
    if job["kind"] == "Job":
        yield "main", 0, job["spec"]["template"]
        return
    for role, replica in job["spec"]["pytorchReplicaSpecs"].items():
        for index in range(replica.get("replicas", 1)):
            yield role.lower(), index, replica["template"]


def replica_labels(role: str, index: int, job: Object) -> Object:
    """What the training operator writes on a pod."""
    if job["kind"] == "Job":
        return {}
    return {
        "training.kubeflow.org/replica-type": role,
        "training.kubeflow.org/replica-index": str(index),
    }


def pod_status(phase: str) -> Object:
    """The status of a pod that has come to one of PHASES."""
    ready = {"type": "Ready", "status": str(phase == "Running")}
    container: Object = {
        "name": "pytorch",
        "image": "any",
        "imageID": "",
        "ready": phase == "Running",
        "restartCount": 0,
    }
    if phase in ("Succeeded", "Failed", "Preempted"):
        container["state"] = {
            "terminated": {"exitCode": 0 if phase == "Succeeded" else 1, "reason": "Ended"}
        }
    elif phase == "Starting":
        container["state"] = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    else:
        container["state"] = {"running": {"startedAt": "2026-11-21T00:00:00Z"}}
    conditions = [
        ready,
        {
            "type": "PodScheduled",
            "status": str(phase != "Pending"),
            "reason": "Unschedulable",
            "message": "no room",
        },
    ]
    if phase == "Preempted":
        conditions.append(
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        )
    word = {"Starting": "Pending", "Unready": "Running", "Preempted": "Failed"}.get(phase, phase)
    return {
        "phase": word,
        "conditions": conditions,
        "containerStatuses": [] if phase == "Pending" else [container],
    }


def job_status(job: Object, kind: str) -> Object:
    """The status of a job that has come to one of CONDITIONS."""
    name = "Complete" if kind == "Succeeded" and job["kind"] == "Job" else kind
    at = "2026-11-21T00:00:00Z"
    condition = {
        "type": name,
        "status": "True",
        "reason": name,
        "message": f"it is {name}",
        "lastTransitionTime": at,
    }
    status: Object = {"conditions": [condition]}
    if job["kind"] != "Job":
        status["replicaStatuses"] = {"Worker": {"active": 1}}
    return {"status": status}
