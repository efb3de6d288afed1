"""What the logs of data workers say since they were read last."""

import copy
import logging
import time
import uuid
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice

from django.db.models import F, Q
from django.utils import timezone

from workloads import data_delivery, logbook
from workloads.data_delivery import WorkerProgress
from workloads.kube_objects import DATA_WORKER, clean_text
from workloads.models import DataPreparation, Log, Pod, Workload
from workloads.pod_counts import Standing

logger = logging.getLogger(__name__)

MOST_PODS = 20_000
"""Data workers that are looked at in one run, the newest; a Job of eight makes some fifty."""
RECENT = timedelta(minutes=10)
"""For how long a data worker that vanished is looked at: its error may still be wanted."""
MOST_LINES = 50_000
MOST_BYTES = 4 << 20
"""Of one log that are read in one run; the next goes on there."""
LONGEST_TROUBLE = 300
FULL = (
    "its log is longer than what is kept of one, so how far it is cannot be read; let it log less"
)
UNREADABLE = "The logs of its data workers cannot be read at the moment."

_POD_FIELDS = ("workload", "uid", "index", "phase", "standing", "status", "reason", "vanished_at")


@dataclass(frozen=True, slots=True)
class CurrentWorkers:
    """How far the data workers of an attempt are, and what keeps one of them."""

    workers: Sequence[WorkerProgress]
    trouble: str


def read_workers(
    rows: Sequence[DataPreparation], deadline: float | None = None
) -> Iterator[tuple[DataPreparation, CurrentWorkers]]:
    """Yield how far the data workers of these attempts are, by what their logs say. Two queries.

    After `deadline`, by the monotonic clock, only the logs of the first are read.
    """
    if not rows:
        return
    pods = _load_data_pods(rows)
    logs = _load_logs([pod.pk for each in pods.values() for pod in each.values()])
    for place, row in enumerate(rows):
        if place and deadline is not None and time.monotonic() > deadline:
            return
        try:
            current = _read_attempt(row, pods.get(row.workload_id, {}), logs)
        except Exception:
            # Whatever the disk or the object store's client raises, the gates of others go on.
            logger.exception("logs of data workers of workload %s are unreadable", row.workload_id)
            current = CurrentWorkers(_decode_workers(row), UNREADABLE)
        yield row, current


def _load_data_pods(rows: Sequence[DataPreparation]) -> Mapping[uuid.UUID, Mapping[int, Pod]]:
    """Load the newest data worker of each number, by workload."""
    # Of those that were evicted again and again, the old ones crowd nobody out.
    is_recent = Q(vanished_at=None) | Q(vanished_at__gte=timezone.now() - RECENT)
    pods = Pod.objects.filter(
        is_recent,
        workload__in=[each.workload_id for each in rows],
        attempt=F("workload__attempt"),
        role=DATA_WORKER,
    ).exclude(standing=Standing.FOREIGN)
    newest: dict[uuid.UUID, dict[int, Pod]] = {}
    for pod in pods.only(*_POD_FIELDS).order_by("-created_at", "-id")[:MOST_PODS]:
        if pod.index is not None:
            newest.setdefault(pod.workload_id, {}).setdefault(pod.index, pod)
    return newest


def _load_logs(pods: Sequence[int]) -> Mapping[int, Log]:
    """Load the log of each of these pods, of several the last, by the pod's id."""
    logs = Log.objects.filter(pod__in=pods, is_init=False).exclude(state=Log.State.REMOVED)
    return {log.pod_id: log for log in logs.order_by("run", "pk")}


def _read_attempt(
    row: DataPreparation, pods: Mapping[int, Pod], logs: Mapping[int, Log]
) -> CurrentWorkers:
    workers = []
    full: set[int] = set()
    for number, worker in enumerate(_decode_workers(row)):
        pod = pods.get(number)
        log = logs.get(pod.pk) if pod is not None else None
        workers.append(_read_worker(number, worker, pod, log))
        if pod is not None and log is not None and _is_full(pod, log):
            full.add(number)
    return CurrentWorkers(workers, _describe_trouble(pods, workers, full))


def _is_full(pod: Pod, log: Log) -> bool:
    """Return whether no more is kept of the log, though the pod goes on."""
    return pod.phase == "Running" and log.state == Log.State.COMPLETE and bool(log.gaps)


def _decode_workers(row: DataPreparation) -> Sequence[WorkerProgress]:
    workload: Workload = row.workload
    return data_delivery.decode_workers(row.workers, workload.data_workers or 0)


def _read_worker(
    number: int, before: WorkerProgress, pod: Pod | None, log: Log | None
) -> WorkerProgress:
    """Return how far a data worker is. What one prepared that is gone is gone with it."""
    if pod is None:
        return WorkerProgress()
    worker = WorkerProgress(pod=pod.uid)
    if log is not None:
        worker.log = log.pk
        if (before.pod, before.log) == (pod.uid, log.pk):
            worker = copy.copy(before)
        for end, text in islice(
            logbook.read_lines_behind(log, worker.offset, MOST_BYTES), MOST_LINES
        ):
            worker.offset = end
            line = data_delivery.parse_line(text)
            if line is not None and getattr(line, "worker", None) == number:
                worker.apply_line(line)
    if pod.vanished_at is not None or pod.phase == "Failed":
        return WorkerProgress(
            pod=worker.pod, log=worker.log, offset=worker.offset, error=worker.error
        )
    return worker


def _describe_trouble(
    pods: Mapping[int, Pod], workers: Sequence[WorkerProgress], full: Container[int]
) -> str:
    """Describe what keeps the first data worker that does not get on; "" where all do."""
    for number, worker in enumerate(workers):
        pod = pods.get(number)
        cause = ""
        if worker.error:
            cause = worker.error
        elif pod is not None and pod.standing == Standing.BLOCKED:
            cause = ": ".join(filter(None, (pod.status, pod.reason)))
        elif pod is not None and pod.standing == Standing.UNSCHEDULABLE:
            cause = pod.reason or "no node takes it"
        elif number in full and not worker.is_ready:
            cause = FULL
        if cause:
            return f"Data worker {number}: {clean_text(cause, LONGEST_TROUBLE)}."
    return ""
