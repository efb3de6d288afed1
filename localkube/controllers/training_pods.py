"""The pods and headless services of training jobs as plain objects: what they are called and
carry.
"""

from collections.abc import Mapping

from localkube.controllers.framework import Addresses, Framework, Replica, TrainingJob, operator_of
from localkube.metadata import Object, annotations_of, copied, labels_of, uid_of
from localkube.options import ADDRESS, DOMAIN

JOB_NAME = "training.kubeflow.org/job-name"
OPERATOR_NAME = "training.kubeflow.org/operator-name"
REPLICA_TYPE = "training.kubeflow.org/replica-type"
REPLICA_INDEX = "training.kubeflow.org/replica-index"
JOB_ROLE = "training.kubeflow.org/job-role"

RESTARTS = f"{DOMAIN}/restarts"
"""Annotation of a replica's Service: how often its pods were restarted before the present one, and
the uid of the last one counted.

It is there because a pod that the operator makes anew starts its own count at 0: without it a
replica with restartPolicy ExitCode would restart for ever, whatever backoffLimit says.
"""

Place = tuple[str, int]
"""A replica: its type and index."""


def place_of(child: Object, job: TrainingJob) -> Place | None:
    """The replica that a pod or service was made for, by its labels; of a type that the job no
    longer has, the type as labelled.
    """
    labels = labels_of(child)
    type, index = labels.get(REPLICA_TYPE, ""), labels.get(REPLICA_INDEX, "")
    if not type or not index.isdecimal():
        return None
    return next((known for known in job.replicas if known.lower() == type), type), int(index)


def labels(framework: Framework, job: TrainingJob, type: str) -> dict[str, str]:
    """What selects all pods of one replica type."""
    return {JOB_NAME: job.name, OPERATOR_NAME: operator_of(framework), REPLICA_TYPE: type.lower()}


def selector_text(framework: Framework, job: TrainingJob, type: str) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels(framework, job, type).items()))


def build_pod(
    framework: Framework, job: TrainingJob, replica: Replica, index: int, addresses: Addresses
) -> Object:
    """The pod of one replica. Of the template's metadata only labels and annotations count; the
    operator's labels win.
    """
    template = copied(replica.template)
    given, spec = template.get("metadata") or {}, template["spec"]
    marked = (
        (given.get("labels") or {})
        | labels(framework, job, replica.type)
        | {REPLICA_INDEX: str(index)}
    )
    if framework.is_master(job, replica.type, index):
        marked[JOB_ROLE] = "master"
    metadata: Object = {"name": replica.pod_name(job.name, index), "labels": marked}
    if given.get("annotations"):
        metadata["annotations"] = given["annotations"]
    # ExitCode is the operator's own: to the kubelet such a pod is one that is not restarted.
    spec["restartPolicy"] = "Never" if replica.restart == "ExitCode" else replica.restart
    container = next(each for each in spec["containers"] if each.get("name") == framework.container)
    ports = container.setdefault("ports", [])
    if all(port.get("name") != framework.port_name for port in ports):
        ports.append(
            {"name": framework.port_name, "containerPort": framework.port, "protocol": "TCP"}
        )
    framework.prepare(job, replica.type, index, addresses, spec)
    return {"metadata": metadata, "spec": spec}


def build_service(
    framework: Framework, job: TrainingJob, replica: Replica, index: int, address: str
) -> Object:
    """The headless service of one replica. Here it does not give a name to its pod; it keeps the
    address that is the pod's.
    """
    marked = labels(framework, job, replica.type) | {REPLICA_INDEX: str(index)}
    port = {"name": framework.port_name, "port": framework.port}
    return {
        "metadata": {
            "name": replica.pod_name(job.name, index),
            "labels": marked,
            "annotations": {ADDRESS: address},
        },
        "spec": {"clusterIP": "None", "selector": dict(marked), "ports": [port]},
    }


def restarts_before(service: Object) -> int:
    """How often the replica of a service was restarted before its present pod."""
    text, _, _ = annotations_of(service).get(RESTARTS, "0").partition(" ")
    return int(text) if text.isdecimal() else 0


def with_restart(service: Object, pod: Object, in_place: int) -> Mapping[str, str]:
    """The annotations of a service after its pod is made anew, which counts once a pod, with the
    pod's restarts in place.
    """
    known = annotations_of(service)
    if known.get(RESTARTS, "").endswith(uid_of(pod)):
        return known
    return known | {RESTARTS: f"{restarts_before(service) + in_place + 1} {uid_of(pod)}"}
