"""Readers for the cluster's objects as dicts: conditions, owners and what pods request.

They are lenient: an object may lack any field.
"""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from clusters.job_kinds import JOBS, is_made_with_batch_jobs
from workloads import quantities

Object = dict[str, Any]

GPU = "nvidia.com/gpu"
GPU_FRACTION = "gpu-fraction"
GPU_MEMORY = "gpu-memory"
GPU_DEVICES = "gpu-fraction-num-devices"

REPLICA_TYPE = "training.kubeflow.org/replica-type"
REPLICA_INDEX = "training.kubeflow.org/replica-index"
JOB_ROLE = "training.kubeflow.org/job-role"
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
ATTEMPT = "muster.dev/attempt"
ROLE = "muster.dev/role"
DATA_WORKER = "data-worker"
"""The role of pods that load what the others train on; they are no pods of the job."""
EVICTOR_ACTION = "evictor-action-type"
EVICTOR_NAMESPACE = "evictor-pod-group-namespace"
EVICTOR_GROUP = "evictor-pod-group-name"
"""Annotations of KAI's event of an eviction: what it does, and for which PodGroup."""
WAITS_FOR_DATA = "muster.dev/waits-for-data"
"""The annotation of a job that Muster created suspended: "true" until its data is prepared, then
"false".
"""

FETCHER_PREFIX = "fetch-"
"""How the names of the init containers begin that fetch a repository or a bucket."""
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
"""The label of a job that Kueue suspends until its queue admits it."""

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"

LONGEST_TEXT = 1024
"""Characters that are kept of any text that comes out of a cluster."""

_ZERO = Decimal(0)
_UNPRINTABLE = re.compile(
    r"\x1b\[[0-9;?]{0,32}[ -/]{0,4}[@-~]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def clean_text(text: object, longest: int = LONGEST_TEXT) -> str:
    """Return text of a cluster or pod without control bytes and colours, cut to a length.

    A cut text ends with an ellipsis. The result is text, not HTML: escape it.
    """
    if type(text) is str and len(text) <= longest and text.isprintable():
        return text.strip()
    cleaned = _UNPRINTABLE.sub("", str(text or "")[: 4 * longest]).strip()
    return cleaned if len(cleaned) <= longest else f"{cleaned[: longest - 1]}…"


def nested_dict(obj: Object | None, *path: str) -> Object:
    """Return the dict at a path inside a dict; {} where there is none."""
    value: Any = obj
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def get_involved_object(event: Object) -> Object:
    """Return the reference to what an event of either API is about; {} where there is none."""
    return nested_dict(event, "involvedObject") or nested_dict(event, "regarding")


def dict_or_empty(value: object) -> Object:
    """Return a dict; {} for anything else."""
    return value if isinstance(value, dict) else {}


def dicts_or_empty(value: object) -> Sequence[Object]:
    """Return the dicts of a list; none for anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def nested_list(obj: Object | None, *path: str) -> Sequence[Object]:
    """Return the dicts of the list at a path inside a dict."""
    value: Any = obj
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return dicts_or_empty(value)


def int_or_zero(value: object) -> int:
    """Return a whole number; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def find_true_condition(obj: Object, *kinds: str) -> Object | None:
    """Return the first condition of these types, in their order, that is True."""
    return _find_true(nested_list(obj, "status", "conditions"), *kinds)


def _find_true(conditions: Sequence[Object], *kinds: str) -> Object | None:
    return next(
        (
            each
            for kind in kinds
            for each in conditions
            if each.get("type") == kind and each.get("status") == "True"
        ),
        None,
    )


def filter_own_pods(job: Object, pods: Iterable[Object]) -> list[Object]:
    """Return the pods that this very job controls, not those of an earlier namesake.

    Data workers and a pod without an owner are accepted.
    """
    name = str(nested_dict(job, "metadata").get("name"))
    return [pod for pod in pods if is_own_pod(job, pod) or is_data_worker(pod, name)]


def is_own_pod(job: Object, pod: Object) -> bool:
    """Return whether this very job controls a pod, or nothing does."""
    # By uid, because labels and names recur: pods of a deleted job may still be ending while its
    # namesake already runs.
    uid = nested_dict(job, "metadata").get("uid")
    owners = [
        owner
        for owner in nested_list(pod, "metadata", "ownerReferences")
        if owner.get("controller")
    ]
    return (
        not owners
        or uid is None
        or any(
            owner.get("uid") == uid or _is_pod_of_intermediate_job(job, pod, owner)
            for owner in owners
        )
    )


def find_controller(obj: Object) -> Object:
    """Return the owner that controls an object; {} where nothing controls it."""
    return next(
        (
            owner
            for owner in nested_list(obj, "metadata", "ownerReferences")
            if owner.get("controller")
        ),
        {},
    )


def get_data_job_name(name: str) -> str:
    """Return the name of the batch Job of a workload's data workers."""
    return f"{name}-data"


def is_data_worker(pod: Object, name: str) -> bool:
    """Return whether a pod that carries a workload's labels is one of its data workers.

    The batch Job of the workload of this name must control it: anybody may copy a label.
    """
    owner = find_controller(pod)
    return nested_dict(pod, "metadata", "labels").get(ROLE) == DATA_WORKER and (
        owner.get("kind"),
        owner.get("name"),
    ) == (JOBS.kind, get_data_job_name(name))


def is_pod_of_job(pod: Object, kind: str, name: str, uid: str = "") -> bool:
    """Return whether a pod that carries a job's labels really belongs to it.

    The job of this kind and name, and of this uid where that is known, must control the pod. A
    batch Job that an operator named after the job counts as well. For a pod that nothing controls
    the labels are believed.
    """
    owner = find_controller(pod)
    if not owner or is_intermediate_job(owner, kind, name):
        return True
    return (
        owner.get("uid") == uid
        if uid
        else (owner.get("kind", kind), owner.get("name", name)) == (kind, name)
    )


def is_intermediate_job(reference: Object, kind: object, name: object) -> bool:
    """Return whether a reference is to a batch Job that an operator made for a job.

    The job is of this kind and name. That of its data workers is Muster's own.
    """
    return (
        reference.get("kind") == JOBS.kind
        and is_made_with_batch_jobs(kind)
        and str(reference.get("name")).startswith(f"{name}-")
        and reference.get("name") != get_data_job_name(str(name))
    )


def _is_pod_of_intermediate_job(job: Object, pod: Object, owner: Object) -> bool:
    """Return whether a pod's owner is a batch Job made for this job and attempt."""
    attempts = [nested_dict(each, "metadata", "labels").get(ATTEMPT) for each in (job, pod)]
    return attempts[0] == attempts[1] and is_intermediate_job(
        owner, job.get("kind"), nested_dict(job, "metadata").get("name")
    )


def parse_gpu_request(pod: Object) -> tuple[Decimal | None, int]:
    """Return the GPUs that a pod requests, and MiB of shared GPU memory.

    The first is None when only memory is requested.
    """
    annotations = nested_dict(pod, "metadata", "annotations")
    if GPU_MEMORY not in annotations and GPU_FRACTION not in annotations:
        return sum_container_requests(pod, GPU), 0
    devices = quantities.parse_or_zero(annotations.get(GPU_DEVICES, "1"))
    if GPU_MEMORY in annotations:
        return None, int(quantities.parse_or_zero(annotations[GPU_MEMORY]) * devices)
    return quantities.parse_or_zero(annotations[GPU_FRACTION]) * devices, 0


def sum_container_requests(pod: Object, resource: str) -> Decimal:
    """Return what a pod's containers request of a resource together.

    A limit without a request counts as a request.
    """
    total = _ZERO
    for container in nested_list(pod, "spec", "containers"):
        resources = dict_or_empty(container.get("resources"))
        amount = dict_or_empty(resources.get("requests")).get(
            resource, dict_or_empty(resources.get("limits")).get(resource, "0")
        )
        total += quantities.parse_or_zero(amount)
    return total
