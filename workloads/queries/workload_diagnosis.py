"""Why a workload waits or failed, with the rows and the place in the log that explain it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from django.db.models import Count, Exists, F, Min, OuterRef, Q, QuerySet
from django.utils import timezone

from projects.durations import describe_duration
from projects.models import User
from workloads import data_delivery, logbook
from workloads.diagnosis import Diagnosis, NodeFault, diagnose_failure, find_clue
from workloads.diagnosis.container_ends import OUT_OF_MEMORY, find_cluster_end, is_by_signal
from workloads.diagnosis.failing import find_failed_end
from workloads.kube_objects import DATA_WORKER
from workloads.models import Log, Pod, RadarFinding, Workload
from workloads.pod_views import ContainerExit, build_pod_view
from workloads.queries import waiting
from workloads.queries.waiting import WAITING_STATUSES
from workloads.radar import Kind
from workloads.states import ENDING, STARTING, Status

MOST_LOGS = 16
MOST_FAILED_PODS = 64
"""Pods that are read, the first that failed."""
MOST_FAULTS = 8
"""Faults of nodes that are read."""
FAULT_AGE = timedelta(minutes=10)
"""How long before the end a fault may have been over that explains it."""
MOST_GROUPS = 5
"""Statuses of failed pods that are named."""
OVERDUE_AFTER = timedelta(minutes=1)
OVERDUE_HELP = (
    "That is no fault of the workload: an administrator finds under /readyz, and in the logs of "
    "worker, beat and Redis, what does not run. Once it runs, the workload goes on by itself."
)
TAIL_BYTES = 64 * 1024
"""Bytes of the end of a log that are searched for the cause."""


@dataclass(frozen=True, slots=True)
class WorkloadDiagnosis:
    """A diagnosis with the rows it is about.

    `offset` is where in the log the line begins, in bytes.
    """

    diagnosis: Diagnosis
    pod: Pod | None = None
    log: Log | None = None
    offset: int | None = None

    @property
    def sentence(self) -> str:
        return self.diagnosis.sentence

    @property
    def help(self) -> str:
        return self.diagnosis.help

    @property
    def line(self) -> str:
        return self.diagnosis.line


def diagnose_workload(workload: Workload, user: User) -> WorkloadDiagnosis | None:
    """Return why it waits, failed, or is not taken further; None when nothing of it applies.

    Other projects are named only to a user who may see them.
    """
    if workload.status == Status.FAILED:
        return _diagnose_failure(workload)
    if workload.status in WAITING_STATUSES and workload.job is not None:
        diagnosis = _diagnose_waiting(workload, user)
        if diagnosis is not None:
            return diagnosis
    return _diagnose_overdue_step(workload)


def _diagnose_overdue_step(workload: Workload) -> WorkloadDiagnosis | None:
    """Return that nobody takes the step that is outstanding; None where it is not long overdue."""
    if workload.next_try_at is None or workload.status not in STARTING | ENDING:
        return None
    cluster = workload.cluster
    if cluster.unreachable_since is not None or not cluster.is_enabled:
        # Its steps wait for the cluster, which is said of the cluster.
        return None
    # The sweep puts this off each time that it asks for the step.
    overdue = timezone.now() - workload.next_try_at
    if overdue < OVERDUE_AFTER:
        return None
    duration = describe_duration(overdue // timedelta(minutes=1) * 60)
    sentence = f"No worker of Muster has taken its next step for {duration}."
    return WorkloadDiagnosis(Diagnosis(sentence, OVERDUE_HELP))


def _diagnose_waiting(workload: Workload, user: User) -> WorkloadDiagnosis | None:
    """Return why it waits; of a pod that keeps failing, with the line of its last log."""
    diagnosis_and_pod = waiting.diagnose_waiting_workloads([workload], user).get(workload.pk)
    if diagnosis_and_pod is None:
        return None
    diagnosis, pod = diagnosis_and_pod
    end = None if pod is None else _find_end_of_log(pod, diagnosis.container)
    if pod is None or end is None:
        return WorkloadDiagnosis(diagnosis, pod)
    tail = _load_tails([pod], diagnosis.container).get(pod.name)
    clue = find_clue(tail.lines, by_signal=is_by_signal(end)) if tail else None
    if tail is None or clue is None:
        return WorkloadDiagnosis(diagnosis, pod)
    diagnosis = replace(
        diagnosis, help=clue.help or diagnosis.help, line=clue.line, line_index=clue.index
    )
    return WorkloadDiagnosis(diagnosis, pod, tail.log, tail.locate_line(clue.index))


def _find_end_of_log(pod: Pod, container: str) -> ContainerExit | None:
    """Return the failed end of a container whose log may say why its pod waits.

    None where it waits for something else, such as its image, or where the cluster ended it.
    """
    view = build_pod_view(pod.data)
    end = next((end for end in view.ends if end.container == container and end.exit_code), None)
    if end is None or end.reason == OUT_OF_MEMORY:
        return None
    if view.phase == "Failed":
        return end if find_cluster_end(view, pod.data) is None else None
    is_restarted = any(
        wait.container == container and wait.reason == "CrashLoopBackOff" for wait in view.waits
    )
    return end if is_restarted else None


def _diagnose_failure(workload: Workload) -> WorkloadDiagnosis | None:
    """Return why it failed, by the pods that failed first and the logs of a few of them."""
    pods = _filter_current_pods(workload)
    broken = pods.filter(Q(phase="Failed") | Q(restarts__gt=0))
    rows = list(
        broken.order_by(F("ended_at").asc(nulls_last=True), "rank", "id")[: MOST_FAILED_PODS + 1]
    )
    is_wide = len(rows) > MOST_FAILED_PODS
    rows = rows[:MOST_FAILED_PODS]
    # The others say that it is not the only pod, and which ranks there are: rows know their own.
    others = (
        []
        if is_wide
        else list(
            pods.exclude(pk__in=[pod.pk for pod in rows]).order_by("rank", "id")[
                : MOST_FAILED_PODS - len(rows) + 1
            ]
        )
    )
    tails = _load_tails(rows[:MOST_LOGS])
    groups = _count_by_status(broken) if is_wide else []
    diagnosis = diagnose_failure(
        workload.job or {},
        [pod.data for pod in rows + others],
        {name: tail.lines for name, tail in tails.items()},
        ranks=map_ranks(rows),
        failed=sum(count for _, count, _ in groups),
        faults=_load_node_faults(workload),
    )
    if diagnosis is None:
        return None
    if groups:
        diagnosis = replace(diagnosis, help=_describe_groups(diagnosis.help, groups))
    pod = next((pod for pod in rows if diagnosis.pod and pod.name == diagnosis.pod), None)
    tail = tails.get(diagnosis.pod)
    if tail is None or diagnosis.line_index is None:
        return WorkloadDiagnosis(diagnosis, pod)
    return WorkloadDiagnosis(diagnosis, pod, tail.log, tail.locate_line(diagnosis.line_index))


def _load_node_faults(workload: Workload) -> list[NodeFault]:
    """Load the faults of nodes' devices that the radar saw when the attempt ended. One query."""
    seen_since = (workload.ended_at or timezone.now()) - FAULT_AGE
    findings = RadarFinding.objects.filter(
        Q(ended_at=None) | Q(ended_at__gte=seen_since),
        workload=workload,
        attempt=workload.attempt,
        kind=Kind.NODE.value,
    )
    return [
        NodeFault(each.node, each.rank, str(proof["text"]).rstrip("."))
        for each in findings[:MOST_FAULTS]
        for proof in [proof for proof in each.proofs if proof.get("metric")][:1]
    ]


def map_ranks(pods: Iterable[Pod]) -> Mapping[str, int]:
    """Return the ranks of pods by name, as their rows know them."""
    return {pod.name: pod.rank for pod in pods if pod.rank is not None}


StatusGroup = tuple[str, int, int | None]
"""A status, how many pods have it, and the lowest of their ranks."""


def _count_by_status(pods: "QuerySet[Pod]") -> Sequence[StatusGroup]:
    """Count the pods of each status, the most frequent one first. One query."""
    groups = pods.order_by().values("status").annotate(count=Count("id"), first=Min("rank"))
    return list(groups.order_by("-count", "status").values_list("status", "count", "first"))


def _describe_groups(help: str, groups: Sequence[StatusGroup]) -> str:
    """Add to the advice how the pods of a large job ended, and how many logs were read."""
    parts = [
        f"{count} {status or 'without a status'}"
        + (f" (the first is rank {first})" if first is not None else "")
        for status, count, first in groups[:MOST_GROUPS]
    ]
    if rest := sum(count for _, count, _ in groups[MOST_GROUPS:]):
        parts.append(f"{rest} others")
    return (
        f"{help} The pods ended as follows: {', '.join(parts)}. The logs of the first "
        f"{MOST_LOGS} were searched for the cause; the list of pods leads to any other."
    ).lstrip()


def _filter_current_pods(workload: Workload) -> "QuerySet[Pod]":
    """Return the attempt's pods whose logs may say why the workload failed."""
    pods = Pod.objects.filter(workload=workload, attempt=workload.attempt)
    # Where data workers failed, their logs say why; else they have no part in it.
    is_of_data = workload.reason.startswith(data_delivery.FAILED)
    return pods.filter(role=DATA_WORKER) if is_of_data else pods.exclude(role=DATA_WORKER)


@dataclass(frozen=True, slots=True)
class _LogTail:
    """The last whole lines of a log, and the offset of the first of them."""

    log: Log
    start: int
    raw: Sequence[bytes]
    lines: Sequence[str]

    @classmethod
    def load(cls, pod: Pod, log: Log) -> "_LogTail":
        """Read the end of a pod's log; raises StoreFailed where it cannot be read."""
        start, content = logbook.read_tail_with_offset(log, TAIL_BYTES)
        raw = content.removesuffix(b"\n").split(b"\n") if content else []
        return cls(log, start, raw, [line.decode(errors="replace") for line in raw])

    def locate_line(self, index: int) -> int:
        """Return where in the log the line of this index begins, in bytes."""
        return self.start + sum(len(line) + 1 for line in self.raw[:index])


def _load_tails(pods: Sequence[Pod], container: str = "") -> Mapping[str, _LogTail]:
    """Return the tails of the pods' logs by the pod's name, as far as they can be read.

    Those of `container`, or without it of the one of each pod that failed.
    """
    tails = {}
    for pod, log in _load_logs(pods, container):
        try:
            tail = _LogTail.load(pod, log)
        except logbook.StoreFailed:
            # What the pods' objects tell is said all the same. Each further log may wait as long.
            break
        if tail.lines:
            tails[pod.name] = tail
    return tails


def _load_logs(pods: Sequence[Pod], container: str) -> list[tuple[Pod, Log]]:
    """Return for each pod one log: the newest run of `container`, or of the one that failed.

    Without a failed container, the newest run of a main one; no other container says why one
    failed. One query.
    """
    logs_by_pod: dict[int, list[Log]] = {}
    stored = Log.objects.filter(size__gt=0).exclude(state=Log.State.REMOVED)
    later = stored.filter(
        pod=OuterRef("pod"), container=OuterRef("container"), run__gt=OuterRef("run")
    )
    # A container that was restarted often has a log of each run: all but the newest stay out of
    # the bound, which would cut off the newest otherwise.
    for log in stored.filter(~Exists(later), pod__in=pods)[: 8 * MOST_LOGS]:
        logs_by_pod.setdefault(log.pod_id, []).append(log)
    newest_logs = []
    for pod in pods:
        end = None if container else find_failed_end(build_pod_view(pod.data))
        failed = container or (end.container if end else "")
        best = max(
            (log for log in logs_by_pod.get(pod.pk, ()) if failed in ("", log.container)),
            key=lambda log: (not log.is_init, log.run),
            default=None,
        )
        if best is not None:
            best.pod = pod
            newest_logs.append((pod, best))
    return newest_logs
