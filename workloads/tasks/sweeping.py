"""The search of the database for what was lost: messages, steps that died, workloads whose time is
up. Every recovery rests on it.
"""

import uuid
from collections.abc import Iterable
from datetime import timedelta

from django.utils import timezone

from clusters.models import Cluster
from clusters.tasks import heartbeat
from console.celery import Step, step
from workloads.journal.transactions import journal_transaction
from workloads.models import Desired, Workload
from workloads.states import ENDING, RESTING, STARTING, TERMINAL
from workloads.tasks.bulk_deletion import request_deletions
from workloads.tasks.launching import launch
from workloads.tasks.reconciliation import reconcile
from workloads.tasks.teardown import remove, stop

BATCH_SIZE = 500
"""Rows of each sort that one sweep takes up; the next one takes the next."""
REPEAT_DELAY = timedelta(seconds=12)
"""Until a step that was just asked for is asked for again: longer than a step takes, so that a slow
worker is not flooded.
"""
STALE_AFTER = timedelta(seconds=60)
"""How long a workload may be on its way without a word before somebody looks."""


@step
def sweep() -> None:
    """Steps that are due -> asked for. Workloads long on their way -> looked at. Ended ones whose
    time is up -> asked to be deleted.

    Those in a cluster that is disabled, or does not answer, are left alone until it is, or does;
    whether it does is asked here, too.
    """
    for cluster_id in (
        Cluster.objects.in_use().exclude(unreachable_since=None).values_list("pk", flat=True)
    ):
        heartbeat.enqueue(str(cluster_id))
    _delete_expired()
    now = timezone.now()
    reachable = Workload.objects.filter(cluster__unreachable_since=None, cluster__is_enabled=True)
    due = reachable.filter(next_try_at__lte=now).order_by("next_try_at")
    # Where a message, or a step after its last line, was lost without a trace: what is on its way
    # and has nothing outstanding.
    stale = reachable.filter(
        next_try_at=None,
        released_at=None,
        status_at__lte=now - STALE_AFTER,
        status__in=STARTING | ENDING,
    )
    for rows in (due, stale):
        with journal_transaction():
            # Nobody writes a row between the look at it and the note that its step was asked for.
            _request_steps(
                rows.values_list("pk", "status", "desired", "job_uid", "released_at")[:BATCH_SIZE],
                now + REPEAT_DELAY,
            )


def find_next_step(status: str, desired: str, job_uid: str, is_released: bool) -> Step | None:
    """What is to be done for a workload; None when nothing is."""
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
    asked: list[uuid.UUID] = []
    settled: list[uuid.UUID] = []
    steps: list[tuple[Step, str]] = []
    for workload_id, status, desired, job_uid, released_at in rows:
        wanted = find_next_step(status, desired, job_uid, released_at is not None)
        (settled if wanted is None else asked).append(workload_id)
        if wanted is not None:
            steps.append((wanted, str(workload_id)))
    Workload.objects.filter(pk__in=asked).update(next_try_at=next_try_at)
    Workload.objects.filter(pk__in=settled).update(next_try_at=None, tries=0, trouble="")
    for which, argument in steps:
        which.enqueue(argument)


def _delete_expired() -> None:
    """Ask for the deletion of workloads that ended longer ago than they wanted to be kept."""
    ended = Workload.objects.filter(
        auto_delete_seconds__isnull=False,
        released_at=None,
        status__in=TERMINAL,
        ended_at__isnull=False,
    )
    now = timezone.now()
    rows = ended.order_by("ended_at").values_list("pk", "ended_at", "auto_delete_seconds")
    expired = [
        pk
        for pk, ended_at, seconds in rows.iterator()
        if (now - ended_at).total_seconds() >= seconds
    ]
    request_deletions(
        expired[:BATCH_SIZE],
        user=None,
        reason="Deleted: it had ended, and the time for which it was to be kept was over.",
    )
