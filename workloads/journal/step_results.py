"""Results of a workload's steps: objects created, refused, delayed or released."""

import uuid
from datetime import timedelta
from typing import Any

from django.utils import timezone

from workloads.journal import workload_writing
from workloads.journal.batch_writing import write_batch
from workloads.journal.observed_objects import Observation, parse_objects
from workloads.journal.transactions import JournalTransaction, journal_transaction
from workloads.kube_objects import Object, clean_text
from workloads.models import Desired, Event, Pod, Workload
from workloads.states import ENDING, STARTING, Status


def record_launch(workload_id: uuid.UUID, attempt: int, job: Object) -> bool:
    """Record that the attempt's objects are in the cluster, with its job. Return False for an older
    attempt.
    """
    objects = list(parse_objects([Observation("job", job)]))
    with journal_transaction() as journal_tx:
        workload = Workload.objects.only("cluster", "project", "attempt", "desired").get(
            pk=workload_id
        )
        if workload.attempt != attempt:
            return False
        write_batch(journal_tx, workload.cluster_id, objects)
        if workload.desired == Desired.RUNNING:
            _clear_trouble(journal_tx, workload)
    return True


def record_refusal(workload_id: uuid.UUID, attempt: int, reason: str) -> bool:
    """Mark the attempt as Failed because the cluster refused its objects.

    Return False when the attempt is not starting (any more).
    """
    with journal_transaction() as journal_tx:
        workload = Workload.objects.get(pk=workload_id)
        if workload.attempt != attempt or workload.status not in STARTING:
            return False
        now, text = timezone.now(), clean_text(reason)
        values = {"status": Status.FAILED, "reason": text, "status_at": now, "ended_at": now}
        workload_writing.update_workload(
            journal_tx, workload, {**values, "next_try_at": None, "tries": 0, "trouble": ""}
        )
        _create_event(workload, Status.FAILED, "Refused", text, is_warning=True)
    return True


def record_delay(workload_id: uuid.UUID, reason: str, seconds: float) -> int:
    """Record that the wanted step failed; the sweep asks again in `seconds`. Return the number of
    tries.

    A workload that has reached its wanted state meanwhile only gets its tries counted: no step is
    outstanding, so there is no trouble to show.
    """
    with journal_transaction() as journal_tx:
        rows = Workload.objects.filter(pk=workload_id)
        workload = rows.only(
            "project", "status", "desired", "job_uid", "released_at", "tries", "trouble"
        ).get()
        tries: int = workload.tries + 1
        values: dict[str, Any] = {"tries": tries}
        if _has_outstanding_step(workload):
            values |= {
                "trouble": clean_text(reason),
                "next_try_at": timezone.now() + timedelta(seconds=seconds),
            }
            if values["trouble"] != workload.trouble:
                values["changed"] = journal_tx.position
                journal_tx.mark_changed(workload.project_id)
        rows.update(**values)
    return tries


def _has_outstanding_step(workload: Workload) -> bool:
    status = Status(workload.status)
    return (status in ENDING and workload.released_at is None) or (
        status in STARTING and not workload.job_uid
    )


def record_release(workload_id: uuid.UUID) -> bool:
    """Record that all objects of a deleted workload are gone: its name is free.

    Return False when that was recorded before.
    """
    with journal_transaction() as journal_tx:
        workload = Workload.objects.get(pk=workload_id)
        if workload.status != Status.DELETING or workload.released_at is not None:
            return False
        now = timezone.now()
        values = {
            "released_at": now,
            "running_pods": 0,
            **workload_writing.NOTHING_ALLOCATED,
            "pod_counts": None,
            "job": None,
            "pod_group": None,
            "data_job": None,
        }
        if workload.started_at is not None and workload.ended_at is None:
            values["ended_at"] = now
        workload_writing.update_workload(
            journal_tx, workload, {**values, "next_try_at": None, "tries": 0, "trouble": ""}
        )
        Pod.objects.filter(workload=workload, vanished_at=None).update(vanished_at=now)
        _create_event(workload, None, "Deleted", "The cluster has let go of all its objects.")
    return True


def _clear_trouble(journal_tx: JournalTransaction, workload: Workload) -> None:
    """Record that no step is outstanding any more."""
    Workload.objects.filter(pk=workload.pk).update(
        tries=0, trouble="", next_try_at=None, changed=journal_tx.position
    )
    journal_tx.mark_changed(workload.project_id)


def _create_event(
    workload: Workload,
    new_status: Status | None,
    reason: str,
    text: str,
    *,
    is_warning: bool = False,
) -> None:
    Event.objects.create(
        workload=workload,
        attempt=workload.attempt,
        kind=Event.Kind.STATUS if new_status else Event.Kind.ACTION,
        is_warning=is_warning,
        old=workload.status if new_status else "",
        new=new_status or "",
        reason=reason,
        text=text,
    )
