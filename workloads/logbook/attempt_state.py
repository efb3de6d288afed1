"""The state of an attempt for readers of its logs: pods, logs, completeness."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workloads.logbook.log_records import ENDED
from workloads.models import Log, Pod, Workload
from workloads.states import RESTING

MOST_PODS = 400
"""Pods of one attempt that are listed, by rank."""
WORKLOAD_FIELDS = (
    "id",
    "attempt",
    "status",
    "released_at",
    "changed",
    "name",
    "project_id",
    "cluster_id",
)
"""Fields of a workload that are needed here, and to check who may see it."""


@dataclass(frozen=True, slots=True)
class AttemptState:
    """One attempt as its rows are now. `logs` are by the pod's id.

    `is_at_rest` says that no more pods will be made; `is_settled` that nothing more will be
    written, and everything written is here.
    """

    workload: Workload
    attempt: int
    pods: Sequence[Pod]
    logs: Mapping[int, Sequence[Log]]
    is_at_rest: bool
    is_settled: bool


def load_attempt_state(workload: Workload, attempt: int) -> AttemptState:
    """Load the state of this attempt. The workload must have WORKLOAD_FIELDS loaded.

    Makes two queries, and one or two more once it is at rest.
    """
    is_current = attempt == workload.attempt and workload.released_at is None
    at_rest = not is_current or workload.status in RESTING
    # Asked first: once it is so, the rows that are read below are the last ones.
    settled = at_rest and _is_settled(workload, attempt)
    pods = list(
        Pod.objects.filter(workload=workload, attempt=attempt)
        .defer("data")
        .order_by("rank", "id")[:MOST_PODS]
    )
    logs: dict[int, list[Log]] = {}
    for log in Log.objects.filter(pod__in=[pod.pk for pod in pods]):
        logs.setdefault(log.pod_id, []).append(log)
    return AttemptState(workload, attempt, pods, logs, at_rest, settled)


def _is_settled(workload: Workload, attempt: int) -> bool:
    """Return whether every ended pod was searched for logs, and all are read."""
    pods = Pod.objects.filter(workload=workload, attempt=attempt)
    if pods.filter(ENDED, logs_kept=False).exists():
        return False
    return not Log.objects.filter(
        pod__workload=workload, pod__attempt=attempt, state=Log.State.CAPTURING
    ).exists()
