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

_UNPRINTABLE = re.compile(r"\x1b\[[0-9;?]{0,32}[ -/]{0,4}[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


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
        return rank_of(self.role, self.index, has_master=True)

    @property
    def title(self) -> str:
        """How a sentence names it: "the master", "worker 1", or by its name."""
        if self.role == "master":
            return "the master"
        return f"{self.role} {self.index}" if self.role and self.index is not None else f"pod {self.name}"


def rank_of(role: str, index: int | None, *, has_master: bool) -> int | None:
    """The rank of a pod among its job's: the master is 0 and worker i is i + 1; without a master worker i is i."""
    if index is None or not has_master:
        return index
    return 0 if role == "master" else index + 1


def ranked(views: Sequence[PodView]) -> list[tuple[int | None, PodView]]:
    """The pods with their ranks, as `rank_of` gives them, in the order of ranks."""
    has_master = any(view.role == "master" for view in views)
    pairs = [(rank_of(view.role, view.index, has_master=has_master), view) for view in views]
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


KEPT_TEXT = 64 * 1024
"""Characters of text that `slim` keeps of one object."""

_KEPT_ENTRIES = 64
_KEPT_DEPTH = 8
_KEPT_NUMBER = 1 << 53
_NO_TEXT = re.compile(r"[\x00\ud800-\udfff]")

_METADATA = ("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "labels")
_ANNOTATIONS = (GPU_FRACTION, GPU_MEMORY, GPU_DEVICES, COMPLETION_INDEX, "pod-group-name")
_OWNER = ("kind", "name", "uid", "controller")
_SPEC = (
    *("nodeName", "nodeSelector", "schedulerName", "priorityClassName", "restartPolicy", "terminationGracePeriodSeconds"),
    *("suspend", "runPolicy", "elasticPolicy", "parallelism", "completions", "completionMode", "backoffLimit"),
    *("minMember", "queue", "preemptibility"),
)
_CONTAINER = ("name", "image", "resources", "restartPolicy")
_REPLICA = ("replicas", "restartPolicy")


class Slim(dict[str, Any]):
    """An object that `slim` has been over."""


def slim(obj: object) -> Slim:
    """A job, pod or PodGroup without what nobody reads, at most some 64 KiB of text, fit for any database. {} for what is no object.

    Everything that `view`, `derive` and the diagnosis read of it is kept. Texts stay as hostile as they were.
    """
    if isinstance(obj, Slim):
        return obj
    whole: Object = obj if isinstance(obj, dict) else {}
    room = _Room()
    made = Slim()
    for name in ("apiVersion", "kind"):
        if isinstance(whole.get(name), str):
            made[name] = room.kept(whole[name])
    metadata, spec, status = part(whole, "metadata"), part(whole, "spec"), part(whole, "status")
    made["metadata"] = room.of(metadata, _METADATA)
    annotations = room.of(part(metadata, "annotations"), _ANNOTATIONS)
    if annotations:
        made["metadata"]["annotations"] = annotations
    if owners := listed(metadata, "ownerReferences")[:8]:
        made["metadata"]["ownerReferences"] = [room.of(owner, _OWNER) for owner in owners]
    made["spec"] = room.of(spec, _SPEC)
    for name in ("containers", "initContainers"):
        if containers := listed(spec, name)[:_KEPT_ENTRIES]:
            made["spec"][name] = [room.of(each, _CONTAINER) for each in containers]
    for name in [each for each in spec if isinstance(each, str) and each.endswith("ReplicaSpecs")][:4]:
        kinds = list(part(spec, name).items())[:16]
        made["spec"][room.text(name)] = {room.text(kind): room.of(part(each), _REPLICA) for kind, each in kinds}
    made["status"] = room.kept(status)
    return made


class _Room:
    """How much text may still be kept of one object."""

    def __init__(self) -> None:
        self._left = KEPT_TEXT

    def of(self, value: Object, names: Iterable[str]) -> Object:
        """These entries of a dict, as far as they are there."""
        return {name: self.kept(value[name]) for name in names if name in value}

    def kept(self, value: object, depth: int = 0) -> Any:
        """The value within bounds: what is no JSON, too deep, or not finite is None, and longer lists are cut."""
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            return value if -_KEPT_NUMBER < value < _KEPT_NUMBER else None
        if depth >= _KEPT_DEPTH:
            return None
        if isinstance(value, dict):
            pairs = list(value.items())[:_KEPT_ENTRIES]
            return {self.text(name): self.kept(each, depth + 1) for name, each in pairs if isinstance(name, str)}
        if isinstance(value, list):
            return [self.kept(each, depth + 1) for each in value[:_KEPT_ENTRIES]]
        return None

    def text(self, value: str) -> str:
        cut = value[: min(4 * LONGEST, self._left)]
        self._left -= len(cut)
        return _NO_TEXT.sub("", cut) if _NO_TEXT.search(cut) else cut
