"""The logbook's rows: which logs there are to read, and their results.

Few writes, each of many rows.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from workloads.logbook import log_paths, stamps
from workloads.logbook.capture import CaptureProgress
from workloads.logbook.container_runs import ContainerRun, RunState, list_runs
from workloads.models import Log, Pod

MOST_PODS = 5000
"""Pods that one turn checks of those that have ended, and as many of those that run, the oldest
first.
"""
PROGRESS_BATCH_SIZE = 50
"""Logs whose progress is written in one transaction."""
FINISHED = ("Succeeded", "Failed")
ENDED = Q(phase__in=FINISHED) | Q(vanished_at__isnull=False)
BAD_NAME_NOTE = "Its name is not one that a file may have."


@dataclass(frozen=True, slots=True)
class UnreadPod:
    """A pod whose logs are not all here.

    `id` is its row's, `version` changes with it, `has_ended` says that it writes no more.
    """

    id: int
    version: str
    has_ended: bool
    is_gone: bool


def load_unread_pods(cluster: uuid.UUID) -> list[UnreadPod]:
    """Load the pods of a cluster that may have unread logs: two queries, few columns."""
    unread = Pod.objects.filter(workload__cluster=cluster, logs_kept=False).order_by("id")
    # Each kind has places of its own: however many have ended, streams of running pods go on.
    # The ended ones are asked for second, so that a pod that ends between the two queries is not
    # left out, and come first: the cluster may remove them, and their logs, at any time.
    columns = ("id", "version", "phase", "vanished_at")
    running = list(unread.exclude(ENDED).exclude(node="").values_list(*columns)[:MOST_PODS])
    ended = list(unread.filter(ENDED).values_list(*columns)[:MOST_PODS])
    pods = {row[0]: row for row in (*ended, *running)}
    return [
        UnreadPod(
            pk, version, phase in FINISHED or vanished_at is not None, vanished_at is not None
        )
        for pk, version, phase, vanished_at in pods.values()
    ]


def enter_logs(pods: Iterable[int]) -> dict[int, list[tuple[Log, ContainerRun]]]:
    """Return the unsettled logs of these pods with their runs, by the pod's id.

    Creates rows for new runs.
    """
    rows = list(
        Pod.objects.filter(pk__in=list(pods)).only(
            "uid", "workload_id", "data", "name", "workload__project__namespace"
        )
    )
    new_logs = [_build_log(pod, run) for pod in rows for run in list_runs(pod.data)]
    # Conflicts are the runs that have a row already: their pods changed for another reason.
    Log.objects.bulk_create(new_logs, ignore_conflicts=True, batch_size=500)
    runs_by_key = {
        (pod.pk, run.container, run.run): run for pod in rows for run in list_runs(pod.data)
    }
    logs_by_pod: dict[int, list[tuple[Log, ContainerRun]]] = {pod.pk: [] for pod in rows}
    logs: QuerySet[Log] = Log.objects.filter(
        pod__in=rows, state=Log.State.CAPTURING
    ).select_related("pod__workload__project")
    for log in logs.defer(
        "pod__data", "pod__workload__spec", "pod__workload__job", "pod__workload__pod_group"
    ):
        run = runs_by_key.get((log.pod_id, log.container, log.run)) or _build_older_run(log)
        logs_by_pod[log.pod_id].append((log, run))
    return logs_by_pod


def _build_log(pod: Pod, run: ContainerRun) -> Log:
    log = Log(pod=pod, container=run.container[:253], is_init=run.is_init, run=run.run)
    try:
        log.path = log_paths.build_log_path(pod.workload_id, pod.uid, run.container, run.run)
    except log_paths.BadLogPath:
        log.state, log.note, log.ended_at = Log.State.LOST, BAD_NAME_NOTE, timezone.now()
    return log


def _build_older_run(log: Log) -> ContainerRun:
    """Return a run that the pod's status does not mention any more."""
    return ContainerRun(log.container, log.run, log.is_init, RunState.OVER)


def record_outcomes(outcomes: Mapping[int, tuple[str, str]]) -> None:
    """Mark these logs, by id, as read to their end or lost: (state, note)."""
    now = timezone.now()
    rows = [
        Log(pk=pk, state=state, note=note[:500], ended_at=now)
        for pk, (state, note) in outcomes.items()
    ]
    Log.objects.bulk_update(rows, ["state", "note", "ended_at"], batch_size=200)


def record_progress(progress: Mapping[int, tuple[CaptureProgress, str]]) -> None:
    """Record the progress of these logs, by id, with a note on their trouble."""
    # One statement a row costs an eighth of the processor time of `bulk_update`, whose conditions
    # are as many expressions as rows times columns. Short transactions: other writers wait.
    rows = list(progress.items())
    for begin in range(0, len(rows), PROGRESS_BATCH_SIZE):
        with transaction.atomic():
            for pk, (reached, note) in rows[begin : begin + PROGRESS_BATCH_SIZE]:
                Log.objects.filter(pk=pk).update(
                    size=reached.size,
                    first_at=_to_datetime(reached.first_ns),
                    last_at=_to_datetime(reached.last_ns),
                    gaps=reached.gaps,
                    note=note[:500],
                )


def _to_datetime(ns: int | None) -> datetime | None:
    return None if ns is None else stamps.to_datetime(ns)


def mark_logs_kept(pods: Sequence[int]) -> None:
    """Mark these pods: everything that can be read of their logs is here."""
    with transaction.atomic():
        for begin in range(0, len(pods), 500):
            Pod.objects.filter(pk__in=pods[begin : begin + 500]).update(logs_kept=True)
