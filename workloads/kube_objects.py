"""Readers for the cluster's objects as dicts: conditions, owners, and a view of each pod.

They are lenient: an object may lack any field.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from clusters.job_kinds import (
    JOBS,
    MASTER_ROLES,
    RANK_0_ROLES,
    UNRANKED_ROLES,
    is_made_with_batch_jobs,
)
from workloads import quantities
from workloads.cluster_texts import strip_names

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
WAITS_FOR_DATA = "muster.dev/waits-for-data"
"""The annotation of a job that Muster created suspended: "true" until its data is prepared, then
"false".
"""

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


def _as_dict(value: object) -> Object:
    return value if isinstance(value, dict) else {}


def _as_dicts(value: object) -> Sequence[Object]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def nested_list(obj: Object | None, *path: str) -> Sequence[Object]:
    """Return the dicts of the list at a path inside a dict."""
    value: Any = obj
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return _as_dicts(value)


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


@dataclass(frozen=True, slots=True)
class ContainerExit:
    """How a run of a container ended.

    `finished_at` is RFC 3339 text, empty when unknown. `current` is False when another run
    followed.
    """

    container: str
    exit_code: int
    signal: int
    reason: str
    message: str
    finished_at: str
    current: bool


@dataclass(frozen=True, slots=True)
class ContainerWait:
    """Why a container does not run.

    `image` is the container's own, "" where unknown.
    """

    container: str
    reason: str
    message: str
    image: str = ""


class KeptObject(dict[str, Any]):
    """An object that nobody changes any more, so that its pod view can be cached."""

    __slots__ = ("pod_view",)

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.pod_view: PodView | None = None


@dataclass(frozen=True, slots=True)
class PodView:
    """What is worth knowing about one pod.

    `role` is "master", "worker" or another replica type, "" for a standard workload; `index` counts
    within the role. `status` is a word for the person and `reason` the text behind it. `gpus` is
    None where only GPU memory is requested.
    """

    name: str
    uid: str
    role: str
    index: int | None
    phase: str
    status: str
    reason: str
    node: str
    ready: bool
    terminating: bool
    preempted: bool
    unschedulable: bool
    restarts: int
    gpus: Decimal | None
    gpu_memory: int
    cpu: Decimal
    memory: Decimal
    image: str
    created_at: str
    started_at: str
    ready_at: str
    ends: tuple[ContainerExit, ...]
    waits: tuple[ContainerWait, ...]
    init_containers: tuple[str, ...] = ()
    """The names of its init containers."""
    disrupted: bool = False
    """Whether the scheduler, a drain or the loss of its node takes it from its workload."""

    def is_init(self, container: str) -> bool:
        """Return whether the pod's program starts only after this container has succeeded."""
        return container in self.init_containers

    @property
    def finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def rank(self) -> int | None:
        """The pod's rank where the job has a master; see `rank_pods` for jobs of workers only."""
        return compute_rank(self.role, self.index, has_master=True)

    @property
    def title(self) -> str:
        """How a sentence names the pod."""
        return describe_pod(self.role, self.index, self.name)

    @property
    def known_wait(self) -> ContainerWait | None:
        """The first wait of a container that is not part of every start."""
        return next((wait for wait in self.waits if wait.reason not in _USUAL_WAITS), None)


BY_SCHEDULER = "PreemptionByScheduler"
DISRUPTIONS = frozenset(
    {BY_SCHEDULER, "DeletionByTaintManager", "DeletionByPodGC", "EvictionByEvictionAPI"}
)
"""Reasons of a DisruptionTarget that takes a pod from its workload, through no fault of the pod."""
_USUAL_WAITS = ("ContainerCreating", "PodInitializing", "")
"""What containers wait for at every start."""


def describe_pod(role: str, index: int | None, name: str) -> str:
    """Return how a sentence names a pod: "the master", "worker 1", or by its name."""
    if role in MASTER_ROLES:
        return f"the {role}"
    if role == DATA_WORKER and index is not None:
        return f"data worker {index}"
    return f"{role} {index}" if role and index is not None else f"pod {name}"


def compute_rank(role: str, index: int | None, *, has_master: bool) -> int | None:
    """Return the rank of a pod within its job; None for roles without one.

    The master is 0 and worker i is i + 1; without a master worker i is i.
    """
    if role in UNRANKED_ROLES or role == DATA_WORKER:
        return None
    if index is None or not has_master:
        return index
    return 0 if role in RANK_0_ROLES else index + 1


def rank_pods(views: Sequence[PodView]) -> list[tuple[int | None, PodView]]:
    """Return the pods with their ranks, in the order of ranks."""
    has_master = any(view.role in RANK_0_ROLES for view in views)
    pairs = [(compute_rank(view.role, view.index, has_master=has_master), view) for view in views]
    return sorted(
        pairs,
        key=lambda pair: (
            pair[0] is None,
            pair[0] or 0,
            pair[1].created_at,
            pair[1].name,
            pair[1].uid,
        ),
    )


def build_pod_view(pod: Object) -> PodView:
    """Return the view of a pod; that of a KeptObject is computed once."""
    if not isinstance(pod, KeptObject):
        return _parse_pod(pod)
    if pod.pod_view is None:
        pod.pod_view = _parse_pod(pod)
    return pod.pod_view


def _parse_pod(pod: Object) -> PodView:
    # Ten thousand pods are parsed at a start: here without the loops of `nested_dict`.
    metadata, spec, status = (_as_dict(pod.get(name)) for name in ("metadata", "spec", "status"))
    labels = _as_dict(metadata.get("labels"))
    index = (
        labels.get(REPLICA_INDEX)
        or labels.get(COMPLETION_INDEX)
        or _as_dict(metadata.get("annotations")).get(COMPLETION_INDEX)
    )
    scheduled, disrupted, ready = _pick_conditions(_as_dicts(status.get("conditions")))
    phase = str(status.get("phase") or "Pending")
    terminating = bool(metadata.get("deletionTimestamp"))
    statuses = [
        *_as_dicts(status.get("initContainerStatuses")),
        *_as_dicts(status.get("containerStatuses")),
    ]
    containers = _as_dicts(spec.get("containers"))
    inits = _as_dicts(spec.get("initContainers"))
    ends = tuple(_list_exits(statuses))
    waits = tuple(_list_waits(statuses, [*containers, *inits]))
    gpus, memory = parse_gpu_request(pod)
    word, reason = _describe_status(
        phase,
        str(metadata.get("namespace") or ""),
        terminating,
        str(spec.get("nodeName") or ""),
        status,
        scheduled,
        ends,
        waits,
    )
    return PodView(
        name=str(metadata.get("name") or ""),
        uid=str(metadata.get("uid") or ""),
        role=_find_role(labels, pod),
        index=int(index)
        if isinstance(index, str) and index.isascii() and index.isdigit() and len(index) < 7
        else None,
        phase=phase,
        status=word,
        reason=clean_text(reason),
        node=str(spec.get("nodeName") or ""),
        ready=phase == "Running" and not terminating and bool(ready),
        terminating=terminating,
        preempted=disrupted.get("reason") == BY_SCHEDULER,
        unschedulable=scheduled.get("status") == "False",
        restarts=sum(int_or_zero(each.get("restartCount")) for each in statuses),
        gpus=gpus,
        gpu_memory=memory,
        cpu=sum_container_requests(pod, "cpu"),
        memory=sum_container_requests(pod, "memory"),
        image=clean_text(containers[0].get("image")) if containers else "",
        created_at=str(metadata.get("creationTimestamp") or ""),
        started_at=str(status.get("startTime") or ""),
        ready_at=str(ready.get("lastTransitionTime") or ""),
        ends=ends,
        waits=waits,
        init_containers=tuple(str(each.get("name")) for each in inits),
        disrupted=disrupted.get("reason") in DISRUPTIONS,
    )


def _pick_conditions(conditions: Sequence[Object]) -> tuple[Object, Object, Object]:
    """Return the first PodScheduled, and the first DisruptionTarget and Ready that are True.

    Each is {} where there is none. One loop: nearly every pod has four or more conditions.
    """
    scheduled: Object = {}
    disrupted: Object = {}
    ready: Object = {}
    for each in conditions:
        kind = each.get("type")
        if kind == "PodScheduled":
            scheduled = scheduled or each
        elif kind == "Ready" and each.get("status") == "True":
            ready = ready or each
        elif kind == "DisruptionTarget" and each.get("status") == "True":
            disrupted = disrupted or each
    return scheduled, disrupted, ready


def _find_role(labels: Object, pod: Object) -> str:
    """Return the replica type of a pod, or that it is a data worker.

    The MPI operator gives it as the job's role; pods of a TrainJob are workers.
    """
    # Of the Job's name only the end is known here; whose it is the journal judges.
    if labels.get(ROLE) == DATA_WORKER and is_data_worker(
        pod, str(find_controller(pod).get("name")).removesuffix(get_data_job_name(""))
    ):
        return DATA_WORKER
    role = labels.get(REPLICA_TYPE) or labels.get(JOB_ROLE)
    return str(role or ("worker" if labels.get(REPLICATED_JOB) else ""))


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
        resources = _as_dict(container.get("resources"))
        amount = _as_dict(resources.get("requests")).get(
            resource, _as_dict(resources.get("limits")).get(resource, "0")
        )
        total += quantities.parse_or_zero(amount)
    return total


def _list_exits(statuses: Iterable[Object]) -> Iterator[ContainerExit]:
    """Yield for each container how its current run and the one before ended, if they did."""
    for container in statuses:
        for field in ("state", "lastState"):
            ended = _as_dict(_as_dict(container.get(field)).get("terminated"))
            if ended:
                yield ContainerExit(
                    container=str(container.get("name") or ""),
                    exit_code=int_or_zero(ended.get("exitCode")),
                    signal=int_or_zero(ended.get("signal")),
                    reason=clean_text(ended.get("reason")),
                    message=clean_text(ended.get("message"), 4 * LONGEST_TEXT),
                    finished_at=str(ended.get("finishedAt") or ""),
                    current=field == "state",
                )


def _list_waits(
    statuses: Iterable[Object], containers: Sequence[Object]
) -> Iterator[ContainerWait]:
    images: dict[str, str] = {}
    for status in statuses:
        waiting = _as_dict(_as_dict(status.get("state")).get("waiting"))
        if waiting:
            name = str(status.get("name") or "")
            images = images or {
                str(each.get("name")): clean_text(each.get("image")) for each in containers
            }
            yield ContainerWait(
                name,
                clean_text(waiting.get("reason")),
                clean_text(waiting.get("message")),
                images.get(name, ""),
            )


def _describe_status(
    phase: str,
    namespace: str,
    terminating: bool,
    node: str,
    status: Object,
    scheduled: Object,
    ends: Sequence[ContainerExit],
    waits: Sequence[ContainerWait],
) -> tuple[str, str]:
    """Return the status word of a pod, as kubectl shows it, and the text behind it."""
    failed = next((end for end in ends if end.current and end.exit_code), None)
    if phase == "Succeeded":
        return "Completed", ""
    if phase == "Failed":
        word = str(status.get("reason") or (failed.reason if failed else "") or "Failed")
        return word, str(
            status.get("message") or (f"exit code {failed.exit_code}" if failed else "")
        )
    if terminating:
        return "Terminating", ""
    if not node:
        return "Pending", strip_names(str(scheduled.get("message") or ""), namespace)
    bad = next((wait for wait in waits if wait.reason not in _USUAL_WAITS), None)
    if bad is not None:
        return bad.reason, bad.message
    return (
        ("Running", "")
        if phase == "Running"
        else ("Initializing", waits[0].message if waits else "")
    )
