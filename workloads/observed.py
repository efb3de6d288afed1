"""What the cluster's objects say, read out of their dicts: conditions, and one view of each pod. Lenient: objects may lack anything."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from workloads import quantities

Object = dict[str, Any]

GPU = "nvidia.com/gpu"
GPU_FRACTION = "gpu-fraction"
GPU_MEMORY = "gpu-memory"
GPU_DEVICES = "gpu-fraction-num-devices"

REPLICA_TYPE = "training.kubeflow.org/replica-type"
REPLICA_INDEX = "training.kubeflow.org/replica-index"
JOB_ROLE = "training.kubeflow.org/job-role"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"

LONGEST = 1024
"""Characters of any text that comes out of a cluster."""

_UNPRINTABLE = re.compile(r"\x1b\[[0-9;?]{0,32}[ -/]{0,4}[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def plain(text: object, longest: int = LONGEST) -> str:
    """Text of the cluster's or a pod's, without control bytes and colours, cut with an ellipsis. It is text still: escape it."""
    cleaned = _UNPRINTABLE.sub("", str(text or "")[: 4 * longest]).strip()
    return cleaned if len(cleaned) <= longest else f"{cleaned[: longest - 1]}…"


def part(obj: Object | None, *path: str) -> Object:
    """A dict inside a dict; {} where there is none."""
    found: Any = obj
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def listed(obj: Object | None, *path: str) -> Sequence[Object]:
    """The dicts of a list inside a dict."""
    found = part(obj, *path[:-1]).get(path[-1])
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def number(value: object) -> int:
    """A whole number; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def holds(obj: Object, *kinds: str) -> Object | None:
    """The first condition of one of these types, by their order, that is True."""
    conditions = listed(obj, "status", "conditions")
    return next((each for kind in kinds for each in conditions if each.get("type") == kind and each.get("status") == "True"), None)


def own(job: Object, pods: Iterable[Object]) -> list[Object]:
    """The pods that this very job controls, and not a namesake before it. A pod that names no owner is taken as given."""
    uid = part(job, "metadata").get("uid")
    found = []
    for pod in pods:
        owners = [owner.get("uid") for owner in listed(pod, "metadata", "ownerReferences") if owner.get("controller")]
        if not owners or uid is None or uid in owners:
            found.append(pod)
    return found


@dataclass(frozen=True, slots=True)
class End:
    """How a run of a container ended. `finished_at` is RFC 3339 text, empty when not known; `current` is False when a run followed it."""

    container: str
    exit_code: int
    signal: int
    reason: str
    message: str
    finished_at: str
    current: bool


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a container does not run."""

    container: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PodView:
    """One pod. `role` is "master", "worker" or another replica type, "" for a standard workload; `index` counts within the role.

    `status` is a word for the person and `reason` what is behind it; `gpus` is None where only GPU memory is asked for.
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
    image: str
    created_at: str
    started_at: str
    ends: tuple[End, ...]
    waits: tuple[Wait, ...]

    @property
    def finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def rank(self) -> int | None:
        """The node's rank as the PyTorch operator gives it when there is a master: see `ranked` for workers only."""
        if self.index is None:
            return None
        return 0 if self.role == "master" else self.index + 1

    @property
    def title(self) -> str:
        """How a sentence names it: "the master", "worker 1", or by its name."""
        if self.role == "master":
            return "the master"
        return f"{self.role} {self.index}" if self.role and self.index is not None else f"pod {self.name}"


def ranked(views: Sequence[PodView]) -> list[tuple[int | None, PodView]]:
    """The pods with their ranks, in the order of ranks: the master is 0 and worker i is i + 1; without a master worker i is i."""
    has_master = any(view.role == "master" for view in views)
    pairs = [(view.rank if has_master or view.rank is None else view.index, view) for view in views]
    return sorted(pairs, key=lambda pair: (pair[0] is None, pair[0] or 0, pair[1].created_at, pair[1].name))


def view(pod: Object) -> PodView:
    """What is worth knowing about a pod."""
    metadata, spec, status = part(pod, "metadata"), part(pod, "spec"), part(pod, "status")
    labels = part(metadata, "labels")
    index = labels.get(REPLICA_INDEX, part(metadata, "annotations").get(COMPLETION_INDEX))
    scheduled = next((each for each in listed(status, "conditions") if each.get("type") == "PodScheduled"), {})
    disrupted = holds(pod, "DisruptionTarget") or {}
    phase = str(status.get("phase") or "Pending")
    terminating = bool(metadata.get("deletionTimestamp"))
    ends, waits = tuple(_ends(status)), tuple(_waits(status))
    gpus, memory = gpus_of(pod)
    word, reason = _word(phase, terminating, str(spec.get("nodeName") or ""), status, scheduled, ends, waits)
    containers = listed(spec, "containers")
    return PodView(
        name=str(metadata.get("name") or ""),
        uid=str(metadata.get("uid") or ""),
        role="master" if labels.get(JOB_ROLE) == "master" and not labels.get(REPLICA_TYPE) else str(labels.get(REPLICA_TYPE) or ""),
        index=int(index) if isinstance(index, str) and index.isascii() and index.isdigit() and len(index) < 7 else None,
        phase=phase,
        status=word,
        reason=plain(reason),
        node=str(spec.get("nodeName") or ""),
        ready=phase == "Running" and not terminating and holds(pod, "Ready") is not None,
        terminating=terminating,
        preempted=disrupted.get("reason") == "PreemptionByScheduler",
        unschedulable=scheduled.get("status") == "False",
        restarts=sum(number(each.get("restartCount")) for each in _containers(status)),
        gpus=gpus,
        gpu_memory=memory,
        image=plain(containers[0].get("image")) if containers else "",
        created_at=str(metadata.get("creationTimestamp") or ""),
        started_at=str(status.get("startTime") or ""),
        ends=ends,
        waits=waits,
    )


def gpus_of(pod: Object) -> tuple[Decimal | None, int]:
    """GPUs a pod asks for, and MiB of shared ones; the first is None when only memory is asked for."""
    annotations = part(pod, "metadata", "annotations")
    devices = quantities.read(annotations.get(GPU_DEVICES, "1"))
    if GPU_MEMORY in annotations:
        return None, int(quantities.read(annotations[GPU_MEMORY]) * devices)
    if GPU_FRACTION in annotations:
        return quantities.read(annotations[GPU_FRACTION]) * devices, 0
    return requested(pod, GPU), 0


def requested(pod: Object, resource: str) -> Decimal:
    """What a pod's containers ask for of a resource together; a limit without a request is a request."""
    asked = [part(container, "resources") for container in listed(pod, "spec", "containers")]
    amounts = [part(each, "requests").get(resource, part(each, "limits").get(resource, "0")) for each in asked]
    return sum((quantities.read(amount) for amount in amounts), Decimal(0))


def _containers(status: Object) -> Iterator[Object]:
    yield from listed(status, "initContainerStatuses")
    yield from listed(status, "containerStatuses")


def _ends(status: Object) -> Iterator[End]:
    """Of each container how its run ended, and how the one before did, as far as there were any."""
    for container in _containers(status):
        for field in ("state", "lastState"):
            ended = part(container, field, "terminated")
            if ended:
                yield End(
                    container=str(container.get("name") or ""),
                    exit_code=number(ended.get("exitCode")),
                    signal=number(ended.get("signal")),
                    reason=plain(ended.get("reason")),
                    message=plain(ended.get("message"), 4 * LONGEST),
                    finished_at=str(ended.get("finishedAt") or ""),
                    current=field == "state",
                )


def _waits(status: Object) -> Iterator[Wait]:
    for container in _containers(status):
        waiting = part(container, "state", "waiting")
        if waiting:
            yield Wait(str(container.get("name") or ""), plain(waiting.get("reason")), plain(waiting.get("message")))


def _word(
    phase: str, terminating: bool, node: str, status: Object, scheduled: Object, ends: Sequence[End], waits: Sequence[Wait]
) -> tuple[str, str]:
    """The status word of a pod, as kubectl would put it, and the text behind it."""
    failed = next((end for end in ends if end.current and end.exit_code), None)
    if phase == "Succeeded":
        return "Completed", ""
    if phase == "Failed":
        word = str(status.get("reason") or (failed.reason if failed else "") or "Failed")
        return word, str(status.get("message") or (f"exit code {failed.exit_code}" if failed else ""))
    if terminating:
        return "Terminating", ""
    if not node:
        return "Pending", str(scheduled.get("message") or "")
    bad = next((wait for wait in waits if wait.reason not in ("PodInitializing", "ContainerCreating", "")), None)
    if bad is not None:
        return bad.reason, bad.message
    return ("Running", "") if phase == "Running" else ("Initializing", waits[0].message if waits else "")
