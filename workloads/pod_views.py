"""The view of one pod: its role, rank, status word, exits and waits."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from clusters.job_kinds import MASTER_ROLES, RANK_0_ROLES, UNRANKED_ROLES
from workloads.cluster_texts import strip_names
from workloads.kube_objects import (
    COMPLETION_INDEX,
    DATA_WORKER,
    JOB_ROLE,
    LONGEST_TEXT,
    REPLICA_INDEX,
    REPLICA_TYPE,
    REPLICATED_JOB,
    ROLE,
    Object,
    clean_text,
    dict_or_empty,
    dicts_or_empty,
    find_controller,
    get_data_job_name,
    int_or_zero,
    is_data_worker,
    parse_gpu_request,
    sum_container_requests,
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

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
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
    metadata, spec, status = (
        dict_or_empty(pod.get(name)) for name in ("metadata", "spec", "status")
    )
    labels = dict_or_empty(metadata.get("labels"))
    index = (
        labels.get(REPLICA_INDEX)
        or labels.get(COMPLETION_INDEX)
        or dict_or_empty(metadata.get("annotations")).get(COMPLETION_INDEX)
    )
    scheduled, disrupted, ready = _pick_conditions(dicts_or_empty(status.get("conditions")))
    phase = str(status.get("phase") or "Pending")
    terminating = bool(metadata.get("deletionTimestamp"))
    statuses = [
        *dicts_or_empty(status.get("initContainerStatuses")),
        *dicts_or_empty(status.get("containerStatuses")),
    ]
    containers = dicts_or_empty(spec.get("containers"))
    inits = dicts_or_empty(spec.get("initContainers"))
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


def _list_exits(statuses: Iterable[Object]) -> Iterator[ContainerExit]:
    """Yield for each container how its current run and the one before ended, if they did."""
    for container in statuses:
        for field in ("state", "lastState"):
            ended = dict_or_empty(dict_or_empty(container.get(field)).get("terminated"))
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
        waiting = dict_or_empty(dict_or_empty(status.get("state")).get("waiting"))
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
