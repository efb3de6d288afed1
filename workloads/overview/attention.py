"""The workloads that somebody should look at: what waits longest and why, what failed last, what
runs and does not use its GPUs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count

from projects.models import User
from projects.querysets import InProject
from workloads.diagnosis import Diagnosis
from workloads.models import Workload
from workloads.queries import waiting
from workloads.states import ACTIVE, Status

RUNNING = (Status.RUNNING, Status.DEGRADED)
WAITING = tuple(sorted(ACTIVE - {*RUNNING}))
MOST_WAITING = 10
MOST_RUNNING = 10
MOST_FAILED = 5
LONGEST_REASON = 300

_SHOWN = (
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
        "use_known",
    ),
)
_EXPLAINED = ("job", "pod_group", "project__gpu_quota", "project__gpu_limit")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A workload that waits, and why: a sentence, and what would help where that is known."""

    workload: Workload
    told: Diagnosis | None

    @property
    def sentence(self) -> str:
        """Never empty: where nothing is known that is said."""
        if self.told is not None:
            return self.told.sentence
        said = (self.workload.trouble or self.workload.reason)[:LONGEST_REASON]
        return said or _STARTING.get(
            Status(self.workload.status), "The cluster has not said why yet."
        )

    @property
    def help(self) -> str:
        return self.told.help if self.told is not None else ""


_STARTING = {
    Status.CREATING: "It is being sent to its cluster.",
    Status.RESUMING: "It is being sent to its cluster again.",
    Status.INITIALIZING: "Its pods have their places and are starting.",
}


def counts(rows: InProject) -> dict[Status, int]:
    """How many there are of each status. One query."""
    found = dict(rows.order_by().values_list("status").annotate(Count("id")))
    return {status: found.get(status.value, 0) for status in Status if found.get(status.value, 0)}


def longest_waiting(rows: InProject, user: User, most: int = MOST_WAITING) -> Sequence[Waiting]:
    """Those that have waited longest, the first of them first."""
    found = _chosen(
        rows.filter(status__in=[each.value for each in WAITING]),
        ("status_at", "id"),
        most,
        *_EXPLAINED,
    )
    told = waiting.why(found, user)
    return [Waiting(each, told[each.pk][0] if each.pk in told else None) for each in found]


def last_failed(rows: InProject, most: int = MOST_FAILED) -> Sequence[Workload]:
    return _chosen(
        rows.filter(status=Status.FAILED.value, ended_at__isnull=False), ("-ended_at", "-id"), most
    )


def largest_running(rows: InProject, most: int = MOST_RUNNING) -> Sequence[Workload]:
    """Those that hold most, and of equal ones the newest."""
    return _chosen(
        rows.filter(status__in=[each.value for each in RUNNING]),
        ("-gpus_allocated", "-created_at", "-id"),
        most,
    )


def _chosen(rows: InProject, order: tuple[str, ...], most: int, *more: str) -> list[Workload]:
    """The keys first: the rows are large, and few of them are wanted."""
    keys: list[Any] = list(rows.order_by(*order).values_list("pk", flat=True)[:most])
    columns = (*_SHOWN, *more)
    found = (
        Workload.objects.select_related("project", "submitted_by")
        .only(*columns)
        .order_by()
        .in_bulk(keys)
    )
    return [found[key] for key in keys if key in found]
