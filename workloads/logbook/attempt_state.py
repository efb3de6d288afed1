"""The state of an attempt for readers of its logs: pods, logs, completeness."""

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Case, F, Q, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from clusters.models import Cluster
from workloads.kube_objects import DATA_WORKER
from workloads.logbook import windows
from workloads.logbook.log_records import ENDED
from workloads.models import Log, Pod, Workload
from workloads.states import RESTING

MOST_PODS = 50
"""Pods of one attempt that are listed, by rank; any other is asked for."""
MISSING_AFTER = timedelta(seconds=30)
"""After this time without a renewed lease nobody seems to capture the logs of a cluster."""
NOT_CAPTURED = (
    "No process captures the logs of this cluster. An administrator has to start one: python -m "
    "console capture. What pods write until then is read later, as far as their nodes keep it."
)
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


_POD_FIELDS = frozenset(("id", "workload", "attempt", "uid", "name", "rank"))
_UNREAD_POD_FIELDS = tuple(
    f"pod__{field.name}" for field in Pod._meta.concrete_fields if field.name not in _POD_FIELDS
)
"""Fields of a pod that nobody reads of its logs: hundreds of logs are loaded for a merged view."""


_DATA_WORKERS_LAST = Case(When(role=DATA_WORKER, then=1 + Coalesce(F("index"), 0)), default=0)
_LOGS_OF_DATA_WORKERS_LAST = Case(
    When(pod__role=DATA_WORKER, then=1 + Coalesce(F("pod__index"), 0)), default=0
)
"""By their numbers: they have no rank, and of those some databases think first."""


@dataclass(frozen=True, slots=True)
class AttemptState:
    """One attempt as its rows are now. `logs` are by the pod's id.

    `pods` are the first of `pod_count`, `others` those that were asked for beside them.
    `is_at_rest` says that no more pods will be made; `is_settled` that nothing more will be
    written, and everything written is here.
    """

    workload: Workload
    attempt: int
    pods: Sequence[Pod]
    others: Sequence[Pod]
    pod_count: int
    logs: Mapping[int, Sequence[Log]]
    is_at_rest: bool
    is_settled: bool


def load_attempt_state(
    workload: Workload, attempt: int, others: Collection[int] = ()
) -> AttemptState:
    """Load the state of this attempt. The workload must have WORKLOAD_FIELDS loaded.

    `others` are ids of pods to load even where they are not among the first. Makes two queries,
    one or two more once it is at rest, and two more for many pods.
    """
    is_current = attempt == workload.attempt and workload.released_at is None
    at_rest = not is_current or workload.status in RESTING
    # Asked first: once it is so, the rows that are read below are the last ones.
    settled = at_rest and _is_settled(workload, attempt)
    rows = Pod.objects.filter(workload=workload, attempt=attempt).defer("data")
    rows = rows.order_by(_DATA_WORKERS_LAST, "rank", "id")
    pods = list(rows[:MOST_PODS])
    missing = set(others) - {pod.pk for pod in pods}
    more = list(rows.filter(pk__in=missing)) if missing else []
    count = len(pods) if len(pods) < MOST_PODS else rows.count()
    logs: dict[int, list[Log]] = {}
    for log in Log.objects.filter(pod__in=[pod.pk for pod in (*pods, *more)]):
        logs.setdefault(log.pod_id, []).append(log)
    return AttemptState(workload, attempt, pods, more, count, logs, at_rest, settled)


def load_logs(workload: uuid.UUID, attempt: int, first: int = 0) -> Sequence[Log]:
    """Load the logs of an attempt from a place in the order of ranks on; as many as are merged."""
    order = (_LOGS_OF_DATA_WORKERS_LAST, "pod__rank", "pod_id", "-is_init", "container", "run")
    of_attempt = Log.objects.filter(pod__workload=workload, pod__attempt=attempt)
    # The keys first: the rows of the others are neither sorted nor read.
    keys = of_attempt.order_by(*order).values("pk")[first : first + windows.MOST_LOGS]
    rows = Log.objects.filter(pk__in=keys).select_related("pod").defer(*_UNREAD_POD_FIELDS)
    return list(rows.order_by(*order))


def has_capture_ended(captured_until: datetime | None, now: datetime) -> bool:
    """Tell whether nobody captures the logs of a cluster whose lease for them ran until then.

    Of a cluster that nobody has captured yet that is not known.
    """
    return captured_until is not None and captured_until <= now - MISSING_AFTER


def describe_missing_capture(state: AttemptState) -> str:
    """Describe that no process captures these logs though some are not here; "" otherwise.

    Makes a query unless the attempt is settled.
    """
    if state.is_settled:
        return ""
    is_captured = Q(captured_until__gt=timezone.now() - MISSING_AFTER) | Q(is_enabled=False)
    cluster = Cluster.objects.filter(is_captured, pk=state.workload.cluster_id)
    return "" if cluster.exists() else NOT_CAPTURED


def _is_settled(workload: Workload, attempt: int) -> bool:
    """Return whether every ended pod was searched for logs, and all are read."""
    pods = Pod.objects.filter(workload=workload, attempt=attempt)
    if pods.filter(ENDED, logs_kept=False).exists():
        return False
    return not Log.objects.filter(
        pod__workload=workload, pod__attempt=attempt, state=Log.State.CAPTURING
    ).exists()
