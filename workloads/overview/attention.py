"""The workloads that need attention: waiting longest and why, failed last, in trouble."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max

from projects.models import User
from projects.querysets import InProject
from workloads.diagnosis import Diagnosis
from workloads.filters import filter_by_look
from workloads.models import RadarFinding, Workload
from workloads.queries import (
    GravestFinding,
    diagnose_failed_workloads,
    load_gravest_findings,
    waiting,
)
from workloads.states import ACTIVE, Status

RUNNING_STATUSES = (Status.RUNNING, Status.DEGRADED)
WAITING_STATUSES = tuple(sorted(ACTIVE - {*RUNNING_STATUSES}))
MOST_WAITING = 10
MOST_RUNNING = 10
MOST_FAILED = 5
MOST_TROUBLED = 5
LONGEST_REASON = 300

_COLUMNS = (
    *(
        "id",
        "name",
        "status",
        "status_at",
        "reason",
        "trouble",
        "architecture",
        "framework",
        "preemptible",
        "attempt",
    ),
    *(
        "running_pods",
        "requested_pods",
        "gpus_requested",
        "gpu_memory_requested",
        "gpus_allocated",
        "likely_start_at",
        "created_at",
    ),
    *(
        "started_at",
        "ended_at",
        "released_at",
        "cluster_id",
        "project__name",
        "submitted_by__username",
        "idle_since",
        "is_use_known",
    ),
)
_DIAGNOSIS_COLUMNS = ("job", "pod_group", "project__gpu_quota", "project__gpu_limit")


@dataclass(frozen=True, slots=True)
class WaitingWorkload:
    """A workload that waits, and why: a sentence, and what would help where that is known."""

    workload: Workload
    diagnosis: Diagnosis | None

    @property
    def sentence(self) -> str:
        """Never empty: where the cause is unknown, it says so."""
        if self.diagnosis is not None:
            return self.diagnosis.sentence
        text = (self.workload.trouble or self.workload.reason)[:LONGEST_REASON]
        return text or _STARTING_TEXTS.get(
            Status(self.workload.status), "The cluster has not said why yet."
        )

    @property
    def help(self) -> str:
        return self.diagnosis.help if self.diagnosis is not None else ""


@dataclass(frozen=True, slots=True)
class FailedWorkload:
    """A workload that failed, and why as far as its pods tell it without their logs."""

    workload: Workload
    diagnosis: Diagnosis | None
    is_in_logs: bool
    """Several pods failed: which of them was first is in their logs, which are not read here."""

    @property
    def sentence(self) -> str:
        """What is known; "" where that is nothing."""
        return self.diagnosis.sentence if self.diagnosis is not None else self.workload.reason


@dataclass(frozen=True, slots=True)
class TroubledWorkload:
    """A workload that runs and needs a look, and its gravest finding."""

    workload: Workload
    finding: GravestFinding


@dataclass(frozen=True, slots=True)
class Troubles:
    """The workloads that need a look: how many, and those first that got a finding last."""

    count: int = 0
    newest: Sequence[TroubledWorkload] = ()


_STARTING_TEXTS = {
    Status.CREATING: "It is being sent to its cluster.",
    Status.RESUMING: "It is being sent to its cluster again.",
    Status.PREPARING: "Its data workers are starting.",
    Status.INITIALIZING: "Its pods have their places and are starting.",
}


def count_by_status(rows: InProject) -> dict[Status, int]:
    """Count the workloads of each status.

    One query.
    """
    counts = dict(rows.order_by().values_list("status").annotate(Count("id")))
    return {status: counts.get(status.value, 0) for status in Status if counts.get(status.value, 0)}


def load_longest_waiting(
    rows: InProject, user: User, most: int = MOST_WAITING
) -> Sequence[WaitingWorkload]:
    """Load those that have waited longest, the longest first."""
    workloads = _load_rows(
        _filter_unended(rows, WAITING_STATUSES),
        ("status_at", "id"),
        most,
        *_DIAGNOSIS_COLUMNS,
    )
    diagnoses = waiting.diagnose_waiting_workloads(workloads, user)
    return [
        WaitingWorkload(each, diagnoses[each.pk][0] if each.pk in diagnoses else None)
        for each in workloads
    ]


def load_troubles(rows: InProject, most: int = MOST_TROUBLED) -> Troubles:
    """Load the workloads that need a look. One query where none does, else four."""
    troubled = filter_by_look(rows).order_by()
    count = troubled.count()
    if not count:
        return Troubles()
    newest = (
        RadarFinding.objects.filter(ended_at=None, workload__in=troubled.values("pk"))
        .values_list("workload_id")
        .annotate(newest=Max("found_at"))
        .order_by("-newest", "workload_id")
    )
    workloads = _load_by_key([key for key, _ in newest[:most]])
    findings = load_gravest_findings(workloads)
    return Troubles(
        count,
        [TroubledWorkload(each, findings[each.pk]) for each in workloads if each.pk in findings],
    )


def load_last_failed(rows: InProject, most: int = MOST_FAILED) -> Sequence[FailedWorkload]:
    """Load those that failed last, the last first."""
    failed = rows.filter(status=Status.FAILED.value, ended_at__isnull=False)
    workloads = _load_rows(failed, ("-ended_at", "-id"), most, "job", "ended")
    diagnoses = diagnose_failed_workloads(workloads)
    return [
        # One that had no pods, as it was refused, has no logs.
        FailedWorkload(
            each,
            diagnoses.get(each.pk),
            is_in_logs=each.pk not in diagnoses and bool(each.ended),
        )
        for each in workloads
    ]


def load_largest_running(rows: InProject, most: int = MOST_RUNNING) -> Sequence[Workload]:
    """Load those that hold most GPUs, and of equal ones the newest first."""
    return _load_rows(
        _filter_unended(rows, RUNNING_STATUSES),
        ("-gpus_allocated", "-created_at", "-id"),
        most,
    )


def _filter_unended(rows: InProject, statuses: Iterable[Status]) -> InProject:
    # Statuses before the end have no time of one. To name it lets a database use the index without
    # ended workloads, which are nearly all.
    return rows.filter(status__in=[each.value for each in statuses], ended_at=None)


def _load_rows(rows: InProject, order: tuple[str, ...], most: int, *more: str) -> list[Workload]:
    """Load the keys first, then the rows: the rows are large, and few are wanted."""
    keys: list[Any] = list(rows.order_by(*order).values_list("pk", flat=True)[:most])
    return _load_by_key(keys, *more)


def _load_by_key(keys: Sequence[Any], *more: str) -> list[Workload]:
    """Load workloads in the order of their keys."""
    columns = (*_COLUMNS, *more)
    rows_by_key = (
        Workload.objects.select_related("project", "submitted_by")
        .only(*columns)
        .order_by()
        .in_bulk(keys)
    )
    return [rows_by_key[key] for key in keys if key in rows_by_key]
