"""The pods of a workload, of all attempts, as facts of its timeline: short rows, within bounds."""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any

from django.db.models import Q, QuerySet

from workloads.kube_objects import DATA_WORKER
from workloads.models import Pod, Workload
from workloads.pod_counts import Standing
from workloads.timeline import Outcome, PodFact, RankChoice

MOST_PODS = 5000
"""Pods that are read, the newest; and as many older ones of the ranks that are looked for."""
_FIRST_RANK = RankChoice(((0, 0),))
_FIELDS = (
    *("pk", "attempt", "name", "role", "index", "rank", "node", "status", "reason", "phase"),
    *("standing", "is_preempted", "is_ready", "restarts"),
    *("created_at", "started_at", "ready_at", "ended_at", "vanished_at"),
)
_STUCK = frozenset({Standing.BLOCKED.value, Standing.UNSCHEDULABLE.value})


@dataclass(frozen=True, slots=True)
class LoadedPods:
    """The newest pods of a workload, and older ones of the ranks that are looked for."""

    newest: Sequence[PodFact]
    older: Sequence[PodFact] = ()
    are_all: bool = True
    """Whether the newest are all that it had."""
    are_all_of_ranks: bool = True
    """Whether the older ones are all that these ranks had."""


def load_pod_facts(workload: Workload, choice: RankChoice | None = None) -> LoadedPods:
    """Load the pods of all attempts, the newest of very many.

    Of older ones those of the chosen ranks, without a choice of rank 0. One query, two where the
    workload had more pods than are read.
    """
    rows = Pod.objects.filter(workload=workload).exclude(standing=Standing.FOREIGN)
    pod_rows = _load_rows(rows)
    newest = [_build_pod(row, workload) for row in pod_rows[:MOST_PODS]]
    if len(pod_rows) <= MOST_PODS:
        return LoadedPods(newest)
    last = newest[-1]
    is_older = Q(attempt__lt=last.attempt) | Q(attempt=last.attempt, pk__lt=last.key)
    older = _load_rows(rows.filter(is_older, _build_rank_filter(choice or _FIRST_RANK)))
    return LoadedPods(
        newest,
        [_build_pod(row, workload) for row in older[:MOST_PODS]],
        are_all=False,
        are_all_of_ranks=len(older) <= MOST_PODS,
    )


def _load_rows(rows: "QuerySet[Pod]") -> list[dict[str, Any]]:
    """Load the newest rows, one more than are shown where there are more."""
    return list(rows.order_by("-attempt", "-pk").values(*_FIELDS)[: MOST_PODS + 1])


def _build_rank_filter(choice: RankChoice) -> Q:
    return reduce(operator.or_, (Q(rank__range=span) for span in choice.spans))


def _build_pod(row: Mapping[str, Any], workload: Workload) -> PodFact:
    ended_at = _find_end(row, workload)
    started_at = _to_seconds(row["started_at"])
    return PodFact(
        key=row["pk"],
        attempt=row["attempt"],
        name=row["name"],
        role=row["role"],
        index=row["index"],
        rank=row["rank"],
        node=row["node"],
        created_at=_to_seconds(row["created_at"]),
        started_at=started_at,
        running_at=_find_running(row),
        ended_at=ended_at,
        outcome=_find_outcome(row) if ended_at is not None else Outcome.ALIVE,
        status=row["status"],
        reason=row["reason"],
        restart_count=row["restarts"],
        is_data_worker=row["role"] == DATA_WORKER,
        is_stuck=ended_at is None and row["standing"] in _STUCK,
    )


def _find_end(row: Mapping[str, Any], workload: Workload) -> float | None:
    """Return when a pod ended: its containers, or when its object went, whichever came first."""
    ends = [at for at in (row["ended_at"], row["vanished_at"]) if at is not None]
    if ends:
        end: float = min(ends).timestamp()
        started_at = _to_seconds(row["started_at"])
        # Clocks of nodes differ: nobody ends before the start.
        return end if started_at is None else max(started_at, end)
    if row["phase"] in ("Succeeded", "Failed") or workload.released_at is not None:
        # It has ended, and no container says when: no later than what it belongs to.
        last = workload.ended_at or workload.released_at or workload.status_at
        return last.timestamp()
    return None


def _find_running(row: Mapping[str, Any]) -> float | None:
    """Return since when a pod runs, as far as its short row tells it."""
    if row["ready_at"] is not None:
        return _to_seconds(row["ready_at"])
    is_running = row["phase"] == "Running" and row["vanished_at"] is None
    return _to_seconds(row["started_at"]) if is_running else None


def _find_outcome(row: Mapping[str, Any]) -> Outcome:
    standing, phase = row["standing"], row["phase"]
    if row["is_preempted"]:
        return Outcome.TAKEN
    if standing == Standing.SUCCEEDED or (not standing and phase == "Succeeded"):
        return Outcome.SUCCEEDED
    if standing == Standing.FAILED or (not standing and phase == "Failed"):
        return Outcome.FAILED
    return Outcome.REMOVED


def _to_seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
