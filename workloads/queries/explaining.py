"""Why a workload waits or failed: puts the rows into the shapes that `diagnosis` reads, and finds the place in the log it speaks of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Q, QuerySet, Sum

from clusters.models import Node
from projects.models import User
from projects.querysets import visible_projects
from workloads import logbook
from workloads.diagnosis import Diagnosis, why_failed, why_waiting
from workloads.models import Event, Log, Pod, Workload
from workloads.observed import Object, view
from workloads.queries.rooms import rooms
from workloads.states import ACTIVE, Status

WAITING = ACTIVE - {Status.RUNNING}
"""Statuses that are asked why."""
MOST_PODS = 500
MOST_EVENTS = 200
MOST_LOGS = 16
TAIL = 64 * 1024
"""Bytes of the end of a log that are searched for its cause."""

_NONE = Decimal(0)


@dataclass(frozen=True, slots=True)
class Explained:
    """A diagnosis with the rows it speaks of. `at` is where in the log the line begins, in bytes."""

    diagnosis: Diagnosis
    pod: Pod | None = None
    log: Log | None = None
    at: int | None = None

    @property
    def sentence(self) -> str:
        return self.diagnosis.sentence

    @property
    def help(self) -> str:
        return self.diagnosis.help

    @property
    def line(self) -> str:
        return self.diagnosis.line


def diagnosis_of(workload: Workload, user: User) -> Explained | None:
    """Why it waits, or why it failed; None when neither applies. Names other projects only to somebody who may see them."""
    if workload.status == Status.FAILED:
        return _failed(workload)
    if workload.status in WAITING and workload.job is not None:
        return _waits(workload, user)
    return None


def _waits(workload: Workload, user: User) -> Explained | None:
    pods = _pods(workload).filter(vanished_at=None)
    rows = list(pods.order_by("rank", "id")[:MOST_PODS])
    holdings = _holdings(workload)
    told = why_waiting(
        workload.job or {},
        [pod.data for pod in rows],
        workload.pod_group,
        queue=_queue(workload, holdings),
        nodes=rooms(workload.cluster_id),
        events=_events(workload),
        holders=_holders(workload, holdings, visible_projects(user)),
    )
    return None if told is None else Explained(told, next((pod for pod in rows if told.pod and pod.name == told.pod), None))


def _failed(workload: Workload) -> Explained | None:
    broken = _pods(workload).filter(Q(phase="Failed") | Q(restarts__gt=0))
    rows = list(broken.order_by("ended_at", "rank", "id")[:MOST_PODS])
    others = list(_pods(workload).exclude(pk__in=[pod.pk for pod in rows]).order_by("rank", "id")[: MOST_PODS - len(rows)])
    tails = {pod.name: found for pod, log in _logs(rows[:MOST_LOGS]) if (found := _Tail.of(pod, log)).lines}
    told = why_failed(workload.job or {}, [pod.data for pod in rows + others], {name: tail.lines for name, tail in tails.items()})
    if told is None:
        return None
    pod = next((pod for pod in rows if told.pod and pod.name == told.pod), None)
    tail = tails.get(told.pod)
    if tail is None or told.line_index is None:
        return Explained(told, pod)
    return Explained(told, pod, tail.log, tail.place(told.line_index))


def _pods(workload: Workload) -> "QuerySet[Pod]":
    return Pod.objects.filter(workload=workload, attempt=workload.attempt)


@dataclass(frozen=True, slots=True)
class _Tail:
    """The last whole lines of a log, and where the first of them begins."""

    log: Log
    start: int
    raw: Sequence[bytes]
    lines: Sequence[str]

    @classmethod
    def of(cls, pod: Pod, log: Log) -> "_Tail":
        start, held = logbook.placed_tail(log, TAIL)
        raw = held.removesuffix(b"\n").split(b"\n") if held else []
        return cls(log, start, raw, [line.decode(errors="replace") for line in raw])

    def place(self, index: int) -> int:
        return self.start + sum(len(line) + 1 for line in self.raw[:index])


def _logs(pods: Sequence[Pod]) -> list[tuple[Pod, Log]]:
    """Of each pod the log of the newest run of the container that failed, else of its newest main container."""
    found: dict[int, list[Log]] = {}
    for log in Log.objects.filter(pod__in=pods, size__gt=0).exclude(state=Log.State.REMOVED)[: 8 * MOST_LOGS]:
        found.setdefault(log.pod_id, []).append(log)
    chosen = []
    for pod in pods:
        failed = {end.container for end in view(pod.data).ends if end.exit_code}
        best = max(found.get(pod.pk, ()), key=lambda log: (log.container in failed, not log.is_init, log.run), default=None)
        if best is not None:
            best.pod = pod
            chosen.append((pod, best))
    return chosen


def _events(workload: Workload) -> Sequence[Object]:
    """The cluster's events of the attempt as objects, the newest MOST_EVENTS."""
    rows = Event.objects.filter(workload=workload, attempt=workload.attempt, kind=Event.Kind.CLUSTER).order_by("-at", "-id")
    return [
        {
            "involvedObject": {"kind": row.subject_kind, "name": row.subject},
            "type": "Warning" if row.is_warning else "Normal",
            "reason": row.reason,
            "message": row.text,
            "lastTimestamp": row.at.isoformat(),
        }
        for row in rows[:MOST_EVENTS]
    ]


@dataclass(frozen=True, slots=True)
class _Holding:
    project_id: int
    name: str
    preemptible: bool
    gpus: Decimal


def _holdings(workload: Workload) -> Sequence[_Holding]:
    """GPUs that projects hold on the cluster now."""
    holding = Workload.objects.filter(cluster_id=workload.cluster_id, status__in=_HOLDING, gpus_allocated__gt=0).order_by()
    grouped = holding.values("project_id", "project__name", "preemptible").annotate(gpus=Sum("gpus_allocated"))
    return [_Holding(each["project_id"], each["project__name"], each["preemptible"], each["gpus"]) for each in grouped]


_HOLDING = [status.value for status in ACTIVE | {Status.STOPPING, Status.DELETING}]


def _queue(workload: Workload, holdings: Sequence[_Holding]) -> Object:
    """The project's Queue as far as its row tells: the quota, and what the project holds."""
    mine = [each for each in holdings if each.project_id == workload.project_id]
    quota = workload.project.gpu_quota
    allocated = sum((each.gpus for each in mine), _NONE)
    fixed = sum((each.gpus for each in mine if not each.preemptible), _NONE)
    return {
        "spec": {"resources": {"gpu": {} if quota is None else {"quota": str(quota)}}},
        "status": {"allocated": {"nvidia.com/gpu": str(allocated)}, "allocatedNonPreemptible": {"nvidia.com/gpu": str(fixed)}},
    }


def _holders(workload: Workload, holdings: Sequence[_Holding], visible: frozenset[int] | None) -> Mapping[str, Decimal]:
    """GPUs of other projects by name; those that may not be named, and pods that are not Muster's, together under ""."""
    found: dict[str, Decimal] = {}
    for each in holdings:
        if each.project_id != workload.project_id:
            name = each.name if visible is None or each.project_id in visible else ""
            found[name] = found.get(name, _NONE) + each.gpus
    foreign = Node.objects.filter(cluster_id=workload.cluster_id).aggregate(gpus=Sum("used_gpus"))["gpus"]
    if foreign:
        found[""] = found.get("", _NONE) + foreign
    return found
