"""How an attempt stands for who reads its logs: its pods, the logs they have, and whether any more
is to come.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workloads.logbook.log_records import ENDED
from workloads.models import Log, Pod, Workload
from workloads.states import RESTING

MOST_PODS = 400
"""Pods of one attempt that are told of, by rank."""
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
"""The columns of a workload that are needed for it, and to tell whose it is."""


@dataclass(frozen=True, slots=True)
class AttemptState:
    """One attempt as its rows are now. `logs` are by the pod's id.

    `at_rest` says that no pod will be made any more; `settled` that nothing will be written, and
    all that was is here.
    """

    workload: Workload
    attempt: int
    pods: Sequence[Pod]
    logs: Mapping[int, Sequence[Log]]
    is_at_rest: bool
    is_settled: bool


def load_attempt_state(workload: Workload, attempt: int) -> AttemptState:
    """How this attempt stands; the workload is loaded with what is SHOWN. Two queries, and one or
    two more once it is at rest.
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
    """Whether each pod that has ended, or is gone, was looked through for logs, and all of these
    are read to their ends.
    """
    pods = Pod.objects.filter(workload=workload, attempt=attempt)
    if pods.filter(ENDED, logs_kept=False).exists():
        return False
    return not Log.objects.filter(
        pod__workload=workload, pod__attempt=attempt, state=Log.State.CAPTURING
    ).exists()
