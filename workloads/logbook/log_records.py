"""The logbook's rows: which logs there are to read, and what became of them. Few writes, each of
many rows.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from workloads.logbook import log_paths, stamps
from workloads.logbook.capture import CaptureProgress
from workloads.logbook.container_runs import ContainerRun, RunState, list_runs
from workloads.models import Log, Pod

MOST_PODS = 5000
"""Pods that one turn looks at, the oldest first."""
FINISHED = ("Succeeded", "Failed")
ENDED = Q(phase__in=FINISHED) | Q(vanished_at__isnull=False)
BAD_NAME_NOTE = "Its name is not one that a file may have."


@dataclass(frozen=True, slots=True)
class UnreadPod:
    """A pod whose logs are not all here: its row's id, what tells that it has changed, and whether
    it will write nothing more.
    """

    id: int
    version: str
    has_ended: bool
    is_gone: bool


def load_unread_pods(cluster: uuid.UUID) -> list[UnreadPod]:
    """The pods of a cluster that have, or may have, something to read: one query, of few
    columns.
    """
    found = (
        Pod.objects.filter(Q(workload__cluster=cluster), ~Q(node="") | ENDED, logs_kept=False)
        .order_by("id")
        .values_list("id", "version", "phase", "vanished_at")[:MOST_PODS]
    )
    return [
        UnreadPod(id, version, phase in FINISHED or gone is not None, gone is not None)
        for id, version, phase, gone in found
    ]


def enter_logs(pods: Iterable[int]) -> dict[int, list[tuple[Log, ContainerRun]]]:
    """The logs of these pods that are not settled, made where they are new, each with where its run
    stands. By the pod's id.
    """
    rows = list(
        Pod.objects.filter(pk__in=list(pods)).only(
            "uid", "workload_id", "data", "name", "workload__project__namespace"
        )
    )
    made = [_build_log(pod, run) for pod in rows for run in list_runs(pod.data)]
    Log.objects.bulk_create(made, ignore_conflicts=True, batch_size=500)
    stands = {(pod.pk, run.container, run.run): run for pod in rows for run in list_runs(pod.data)}
    found: dict[int, list[tuple[Log, ContainerRun]]] = {pod.pk: [] for pod in rows}
    logs: QuerySet[Log] = Log.objects.filter(
        pod__in=rows, state=Log.State.CAPTURING
    ).select_related("pod__workload__project")
    for log in logs.defer(
        "pod__data", "pod__workload__spec", "pod__workload__job", "pod__workload__pod_group"
    ):
        run = stands.get((log.pod_id, log.container, log.run)) or _build_older_run(log)
        found[log.pod_id].append((log, run))
    return found


def _build_log(pod: Pod, run: ContainerRun) -> Log:
    log = Log(pod=pod, container=run.container[:253], is_init=run.is_init, run=run.run)
    try:
        log.path = log_paths.build_log_path(pod.workload_id, pod.uid, run.container, run.run)
    except log_paths.BadLogPath:
        log.state, log.note, log.ended_at = Log.State.LOST, BAD_NAME_NOTE, timezone.now()
    return log


def _build_older_run(log: Log) -> ContainerRun:
    """A run that the pod's status does not tell of any more."""
    return ContainerRun(log.container, log.run, log.is_init, RunState.OVER)


def record_outcomes(outcomes: Mapping[int, tuple[str, str]]) -> None:
    """These logs, by id, are read to their end or lost: (state, note)."""
    now = timezone.now()
    rows = [
        Log(pk=pk, state=state, note=note[:500], ended_at=now)
        for pk, (state, note) in outcomes.items()
    ]
    Log.objects.bulk_update(rows, ["state", "note", "ended_at"], batch_size=200)


def record_progress(progress: Mapping[int, tuple[CaptureProgress, str]]) -> None:
    """How far these logs are, by id, and why they are not being read, if so."""
    rows = []
    for pk, (far, note) in progress.items():
        first = None if far.first_ns is None else stamps.to_datetime(far.first_ns)
        last = None if far.last_ns is None else stamps.to_datetime(far.last_ns)
        rows.append(
            Log(pk=pk, size=far.size, first_at=first, last_at=last, gaps=far.gaps, note=note[:500])
        )
    Log.objects.bulk_update(rows, ["size", "first_at", "last_at", "gaps", "note"], batch_size=200)


def mark_logs_kept(pods: Sequence[int]) -> None:
    """Of these pods everything that can be had is here."""
    with transaction.atomic():
        for begin in range(0, len(pods), 500):
            Pod.objects.filter(pk__in=pods[begin : begin + 500]).update(logs_kept=True)
