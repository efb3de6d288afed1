"""The search of the database for lost work: messages, dead steps, workloads whose time is up.

Every recovery rests on it.
"""

import uuid
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db.models import F, FloatField, Func
from django.utils import timezone

from clusters.models import Cluster
from clusters.tasks import heartbeat
from console.celery import Step, step
from workloads.journal.transactions import journal_transaction
from workloads.models import Desired, Workload
from workloads.states import ENDING, RESTING, STARTING, TERMINAL, Status
from workloads.tasks.bulk_deletion import request_deletions
from workloads.tasks.launching import launch
from workloads.tasks.reconciliation import reconcile
from workloads.tasks.teardown import remove, stop

BATCH_SIZE = 500
"""Rows of each sort that one sweep handles; the next one handles the next."""
REPEAT_DELAY = timedelta(seconds=12)
"""Time until a requested step is requested again.

Longer than a step takes, so that a slow worker is not flooded.
"""
STALE_AFTER = timedelta(seconds=60)
"""How long a workload may be in transition without news before it is reconciled."""


@step
def sweep() -> None:
    """Request due steps, reconcile stale workloads, and delete ended ones whose time is up.

    Workloads in a cluster that is disabled or does not answer are left alone. Heartbeats of the
    clusters that do not answer are requested here, too.
    """
    silent = Cluster.objects.in_use().exclude(unreachable_since=None)
    # At random, because only some of many are asked at the same time.
    for cluster_id in silent.order_by("?").values_list("pk", flat=True):
        heartbeat.enqueue(str(cluster_id))
    _delete_expired()
    now = timezone.now()
    reachable = Workload.objects.filter(cluster__unreachable_since=None, cluster__is_enabled=True)
    due = reachable.filter(next_try_at__lte=now).order_by("next_try_at")
    # In transition without an outstanding step: a message was lost, or a worker died after the
    # step's last write.
    stale = reachable.filter(
        next_try_at=None,
        released_at=None,
        status_at__lte=now - STALE_AFTER,
        status__in=STARTING | ENDING,
    )
    for rows in (due, stale):
        with journal_transaction():
            # No other writer changes a row between this query and the update of its next_try_at.
            _request_steps(
                rows.values_list("pk", "status", "desired", "job_uid", "released_at")[:BATCH_SIZE],
                now + REPEAT_DELAY,
            )


def find_next_step(status: str, desired: str, job_uid: str, is_released: bool) -> Step | None:
    """Return the step that a workload needs, None if it needs none."""
    if desired == Desired.DELETED:
        return None if is_released else remove
    if desired == Desired.STOPPED:
        return None if status in RESTING else stop
    if status in STARTING and not job_uid:
        return launch
    return reconcile if status in STARTING | ENDING else None


def _request_steps(
    rows: Iterable[tuple[uuid.UUID, str, str, str, object]], next_try_at: object
) -> None:
    requested: list[uuid.UUID] = []
    settled: list[uuid.UUID] = []
    steps: list[tuple[Step, str]] = []
    for workload_id, status, desired, job_uid, released_at in rows:
        wanted = find_next_step(status, desired, job_uid, released_at is not None)
        (settled if wanted is None else requested).append(workload_id)
        if wanted is not None:
            steps.append((wanted, str(workload_id)))
    Workload.objects.filter(pk__in=requested).update(next_try_at=next_try_at)
    Workload.objects.filter(pk__in=settled).update(next_try_at=None, tries=0, trouble="")
    for due_step, argument in steps:
        due_step.enqueue(argument)


class _EpochSeconds(Func):
    """A moment as seconds since 1970, which every database adds alike."""

    template = "EXTRACT(EPOCH FROM %(expressions)s)"
    output_field = FloatField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "((julianday(%(expressions)s) - 2440587.5) * 86400)"
        return self.as_sql(compiler, connection, template=template, **context)


def _delete_expired() -> None:
    """Request the deletion of ended workloads that were kept as long as they asked for."""
    # With an IN of the terminal statuses SQLite would read all workloads that have ended, those too
    # that are kept for good; a NOT IN leaves it the index of those that are to be deleted.
    ended = Workload.objects.filter(
        auto_delete_seconds__isnull=False, released_at=None, ended_at__isnull=False
    ).exclude(status__in=frozenset(Status) - TERMINAL)
    # The database adds and compares: each sweep would read a workload that is kept for a year.
    kept_until = _EpochSeconds("ended_at") + F("auto_delete_seconds")
    expired = ended.alias(kept_until=kept_until).filter(kept_until__lte=timezone.now().timestamp())
    request_deletions(
        list(expired.order_by("ended_at").values_list("pk", flat=True)[:BATCH_SIZE]),
        user=None,
        reason="Deleted: it had ended, and the time for which it was to be kept was over.",
    )
