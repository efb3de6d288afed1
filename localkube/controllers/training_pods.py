"""Builders of the pods and headless services of training jobs."""

from collections.abc import Mapping

from localkube.controllers.framework import (
    FindAddress,
    Framework,
    Replica,
    TrainingJob,
    operator_name,
)
from localkube.metadata import Object, annotations_of, deep_copy, uid_of
from localkube.options import ADDRESS_ANNOTATION
from localkube.tallies import RESTARTS_ANNOTATION, parse_replica_index, parse_restarts

JOB_NAME = "training.kubeflow.org/job-name"
OPERATOR_NAME = "training.kubeflow.org/operator-name"
REPLICA_TYPE = "training.kubeflow.org/replica-type"
REPLICA_INDEX = "training.kubeflow.org/replica-index"
JOB_ROLE = "training.kubeflow.org/job-role"

ReplicaKey = tuple[str, int]
"""A replica: its type and index."""


def find_replica_key(name: str, job: TrainingJob) -> ReplicaKey | None:
    """Return the replica that a pod or service of this name was made for, or None.

    For a type that the job no longer has, the type is as in the name.
    """
    stem, _, ending = name.rpartition("-")
    type, index = stem.removeprefix(f"{job.name}-"), parse_replica_index(ending)
    if type == stem or index is None:
        return None
    return next((job_type for job_type in job.replicas if job_type.lower() == type), type), index


def build_labels(framework: Framework, job: TrainingJob, type: str) -> dict[str, str]:
    """Build the labels that select all pods of one replica type."""
    return {JOB_NAME: job.name, OPERATOR_NAME: operator_name(framework), REPLICA_TYPE: type.lower()}


def format_selector(framework: Framework, job: TrainingJob, type: str) -> str:
    return ",".join(
        f"{key}={value}" for key, value in sorted(build_labels(framework, job, type).items())
    )


def build_pod(
    framework: Framework, job: TrainingJob, replica: Replica, index: int, find_address: FindAddress
) -> Object:
    """Build the pod of one replica.

    Of the template's metadata only labels and annotations count; the operator's labels win.
    """
    template = deep_copy(replica.template)
    template_metadata, spec = template.get("metadata") or {}, template["spec"]
    labels = (
        (template_metadata.get("labels") or {})
        | build_labels(framework, job, replica.type)
        | {REPLICA_INDEX: str(index)}
    )
    if framework.is_master(job, replica.type, index):
        labels[JOB_ROLE] = "master"
    metadata: Object = {"name": replica.pod_name(job.name, index), "labels": labels}
    if template_metadata.get("annotations"):
        metadata["annotations"] = template_metadata["annotations"]
    # ExitCode is a policy of the operator alone; the kubelet must not restart such a pod.
    spec["restartPolicy"] = (
        "Never" if replica.restart_policy == "ExitCode" else replica.restart_policy
    )
    container = next(
        container
        for container in spec["containers"]
        if container.get("name") == framework.container_name
    )
    ports = container.setdefault("ports", [])
    if all(port.get("name") != framework.port_name for port in ports):
        ports.append(
            {"name": framework.port_name, "containerPort": framework.port, "protocol": "TCP"}
        )
    framework.configure_pod(job, replica.type, index, find_address, spec)
    return {"metadata": metadata, "spec": spec}


def build_service(
    framework: Framework, job: TrainingJob, replica: Replica, index: int, address: str
) -> Object:
    """Build the headless service of one replica.

    Here it does not name its pod; it stores the pod's address.
    """
    labels = build_labels(framework, job, replica.type) | {REPLICA_INDEX: str(index)}
    port = {"name": framework.port_name, "port": framework.port}
    return {
        "metadata": {
            "name": replica.pod_name(job.name, index),
            "labels": labels,
            "annotations": {ADDRESS_ANNOTATION: address},
        },
        "spec": {"clusterIP": "None", "selector": dict(labels), "ports": [port]},
    }


def build_restart_annotations(service: Object, pod: Object, in_place: int) -> Mapping[str, str]:
    """Build a service's annotations after its pod is replaced.

    A replacement counts once a pod, together with the pod's restarts in place.
    """
    annotations = annotations_of(service)
    if annotations.get(RESTARTS_ANNOTATION, "").endswith(uid_of(pod)):
        return annotations
    return annotations | {
        RESTARTS_ANNOTATION: f"{parse_restarts(service) + in_place + 1} {uid_of(pod)}"
    }
