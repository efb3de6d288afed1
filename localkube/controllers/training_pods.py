"""The pods and headless services of training jobs as plain objects: what they are called and
carry.
"""

from collections.abc import Mapping

from localkube.controllers.framework import (
    FindAddress,
    Framework,
    Replica,
    TrainingJob,
    operator_name,
)
from localkube.metadata import Object, annotations_of, deep_copy, labels_of, uid_of
from localkube.options import ADDRESS_ANNOTATION, DOMAIN

JOB_NAME = "training.kubeflow.org/job-name"
OPERATOR_NAME = "training.kubeflow.org/operator-name"
REPLICA_TYPE = "training.kubeflow.org/replica-type"
REPLICA_INDEX = "training.kubeflow.org/replica-index"
JOB_ROLE = "training.kubeflow.org/job-role"

RESTARTS_ANNOTATION = f"{DOMAIN}/restarts"
"""Annotation of a replica's Service: how often its pods were restarted before the present one, and
the uid of the last one counted.

It is there because a pod that the operator makes anew starts its own count at 0: without it a
replica with restartPolicy ExitCode would restart for ever, whatever backoffLimit says.
"""

ReplicaKey = tuple[str, int]
"""A replica: its type and index."""


def find_replica_key(child: Object, job: TrainingJob) -> ReplicaKey | None:
    """The replica that a pod or service was made for, by its labels; of a type that the job no
    longer has, the type as labelled.
    """
    labels = labels_of(child)
    type, index = labels.get(REPLICA_TYPE, ""), labels.get(REPLICA_INDEX, "")
    if not type or not index.isdecimal():
        return None
    return next((known for known in job.replicas if known.lower() == type), type), int(index)


def build_labels(framework: Framework, job: TrainingJob, type: str) -> dict[str, str]:
    """What selects all pods of one replica type."""
    return {JOB_NAME: job.name, OPERATOR_NAME: operator_name(framework), REPLICA_TYPE: type.lower()}


def format_selector(framework: Framework, job: TrainingJob, type: str) -> str:
    return ",".join(
        f"{key}={value}" for key, value in sorted(build_labels(framework, job, type).items())
    )


def build_pod(
    framework: Framework, job: TrainingJob, replica: Replica, index: int, find_address: FindAddress
) -> Object:
    """The pod of one replica. Of the template's metadata only labels and annotations count; the
    operator's labels win.
    """
    template = deep_copy(replica.template)
    given, spec = template.get("metadata") or {}, template["spec"]
    marked = (
        (given.get("labels") or {})
        | build_labels(framework, job, replica.type)
        | {REPLICA_INDEX: str(index)}
    )
    if framework.is_master(job, replica.type, index):
        marked[JOB_ROLE] = "master"
    metadata: Object = {"name": replica.pod_name(job.name, index), "labels": marked}
    if given.get("annotations"):
        metadata["annotations"] = given["annotations"]
    # ExitCode is the operator's own: to the kubelet such a pod is one that is not restarted.
    spec["restartPolicy"] = (
        "Never" if replica.restart_policy == "ExitCode" else replica.restart_policy
    )
    container = next(
        each for each in spec["containers"] if each.get("name") == framework.container_name
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
    """The headless service of one replica. Here it does not give a name to its pod; it keeps the
    address that is the pod's.
    """
    marked = build_labels(framework, job, replica.type) | {REPLICA_INDEX: str(index)}
    port = {"name": framework.port_name, "port": framework.port}
    return {
        "metadata": {
            "name": replica.pod_name(job.name, index),
            "labels": marked,
            "annotations": {ADDRESS_ANNOTATION: address},
        },
        "spec": {"clusterIP": "None", "selector": dict(marked), "ports": [port]},
    }


def parse_restarts(service: Object) -> int:
    """How often the replica of a service was restarted before its present pod."""
    text, _, _ = annotations_of(service).get(RESTARTS_ANNOTATION, "0").partition(" ")
    return int(text) if text.isdecimal() else 0


def build_restart_annotations(service: Object, pod: Object, in_place: int) -> Mapping[str, str]:
    """The annotations of a service after its pod is made anew, which counts once a pod, with the
    pod's restarts in place.
    """
    known = annotations_of(service)
    if known.get(RESTARTS_ANNOTATION, "").endswith(uid_of(pod)):
        return known
    return known | {RESTARTS_ANNOTATION: f"{parse_restarts(service) + in_place + 1} {uid_of(pod)}"}
