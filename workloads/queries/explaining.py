"""Why a workload waits or failed: puts the rows into the shapes that `diagnosis` reads, and finds
the place in the log it speaks of.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from projects.models import User
from workloads import logbook
from workloads.diagnosis import Diagnosis, why_failed
from workloads.models import Log, Pod, Workload
from workloads.observed import view
from workloads.queries import waiting
from workloads.queries.waiting import MOST_PODS, WAITING
from workloads.states import Status

MOST_LOGS = 16
TAIL = 64 * 1024
"""Bytes of the end of a log that are searched for its cause."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A diagnosis with the rows it speaks of. `at` is where in the log the line begins, in
    bytes.
    """

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
    """Why it waits, or why it failed; None when neither applies. Names other projects only to
    somebody who may see them.
    """
    if workload.status == Status.FAILED:
        return _failed(workload)
    if workload.status in WAITING and workload.job is not None:
        return _waits(workload, user)
    return None


def _waits(workload: Workload, user: User) -> Explained | None:
    told = waiting.why([workload], user).get(workload.pk)
    return None if told is None else Explained(*told)


def _failed(workload: Workload) -> Explained | None:
    broken = _pods(workload).filter(Q(phase="Failed") | Q(restarts__gt=0))
    rows = list(broken.order_by("ended_at", "rank", "id")[:MOST_PODS])
    others = list(
        _pods(workload)
        .exclude(pk__in=[pod.pk for pod in rows])
        .order_by("rank", "id")[: MOST_PODS - len(rows)]
    )
    tails = {
        pod.name: found
        for pod, log in _logs(rows[:MOST_LOGS])
        if (found := _Tail.of(pod, log)).lines
    }
    told = why_failed(
        workload.job or {},
        [pod.data for pod in rows + others],
        {name: tail.lines for name, tail in tails.items()},
    )
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
    """Of each pod the log of the newest run of the container that failed, else of its newest main
    container.
    """
    found: dict[int, list[Log]] = {}
    for log in Log.objects.filter(pod__in=pods, size__gt=0).exclude(state=Log.State.REMOVED)[
        : 8 * MOST_LOGS
    ]:
        found.setdefault(log.pod_id, []).append(log)
    chosen = []
    for pod in pods:
        failed = {end.container for end in view(pod.data).ends if end.exit_code}
        best = max(
            found.get(pod.pk, ()),
            key=lambda log: (log.container in failed, not log.is_init, log.run),
            default=None,
        )
        if best is not None:
            best.pod = pod
            chosen.append((pod, best))
    return chosen
