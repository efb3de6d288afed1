"""How far an attempt's data is: what its data workers said, and what became of its job's gate."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from django.utils import timezone

from workloads.data_delivery import Preparation, WorkerProgress
from workloads.journal import bulk_sql, workload_writing
from workloads.journal.batch_writing import write_batch
from workloads.journal.observed_objects import Observation, parse_objects
from workloads.journal.transactions import JournalTransaction, journal_transaction
from workloads.kube_objects import Object, clean_text
from workloads.models import DataPreparation, Desired, Event, RankDelivery, Workload
from workloads.specs import Spec
from workloads.states import Status

DATA_READY, DATA_STALLED, DATA_FAILED = "DataReady", "DataStalled", "DataWorkersFailed"
NOT_SUSPENDED = "NotSuspended"
"""The reasons of the events."""

_COUNTER_FIELDS = ("at", "span", "waited", "computed", "depth", "rate", "delivered", "epoch")


def create_preparation(workload: Workload, attempt: int, spec: Spec) -> None:
    """Create the row of an attempt that has data workers."""
    if spec.data_delivery is not None:
        DataPreparation.objects.create(
            workload=workload,
            attempt=attempt,
            wanted=spec.data_delivery.units,
            # Without a gate the job takes GPUs at once.
            resumed_at=None if spec.data_delivery.units else timezone.now(),
        )


@dataclass(frozen=True, slots=True)
class PreparationChange:
    """What is new of one attempt's data.

    `reason` is that of the workload while it prepares; with `stalled_text` the history tells that
    nothing is prepared any more.
    """

    row: DataPreparation
    workers: Sequence[WorkerProgress]
    preparation: Preparation
    reason: str
    progress_at: datetime | None
    has_stalled: bool
    stalled_text: str = ""


def record_preparations(changes: Sequence[PreparationChange]) -> None:
    """Record how far the data of these attempts is, in one transaction, and in their rows here."""
    if not changes:
        return
    with journal_transaction() as journal_tx:
        workloads = _load_workloads([each.row.workload_id for each in changes])
        for each in changes:
            workload = workloads.get(each.row.workload_id)
            if workload is not None and workload.attempt == each.row.attempt:
                _write_preparation(journal_tx, workload, each)
    for each in changes:
        for name, value in _build_values(each).items():
            setattr(each.row, name, value)


def _write_preparation(
    journal_tx: JournalTransaction, workload: Workload, change: PreparationChange
) -> None:
    DataPreparation.objects.filter(pk=change.row.pk).update(**_build_values(change))
    if workload.status != Status.PREPARING:
        return
    is_shown = change.preparation.prepared != change.row.prepared
    if change.reason != workload.reason:
        workload_writing.update_workload(journal_tx, workload, {"reason": change.reason})
    elif is_shown:
        workload_writing.update_workload(journal_tx, workload, {})
    if change.stalled_text:
        _create_event(workload, DATA_STALLED, change.stalled_text, is_warning=True)
        workload_writing.update_workload(journal_tx, workload, {})


def _build_values(change: PreparationChange) -> dict[str, Any]:
    preparation, ready_at = change.preparation, change.row.ready_at
    return {
        "workers": msgspec.to_builtins(list(change.workers)),
        "prepared": preparation.prepared,
        "rate": preparation.rate,
        "progress_at": change.progress_at,
        "has_stalled": change.has_stalled,
        "ended_early": preparation.ended_early,
        # A data worker that begins anew meanwhile takes it back: nothing has been let go on yet.
        "ready_at": (ready_at or change.progress_at) if preparation.is_ready else None,
    }


def record_resumption(
    workload_id: uuid.UUID, attempt: int, job: Object | None, text: str, *, is_ours: bool = True
) -> bool:
    """Record, once, that the attempt's job goes on: its data is ready, or it was never held.

    `job` is as the cluster has it since; None where the journal knows it. With `is_ours` Muster let
    it go on. Return False where that is recorded, or the workload is in another attempt.
    """
    with journal_transaction() as journal_tx:
        workload = Workload.objects.filter(pk=workload_id, attempt=attempt).first()
        if workload is None:
            return False
        if job is not None:
            observed = list(parse_objects([Observation("job", job)]))
            write_batch(journal_tx, workload.cluster_id, observed)
        rows = DataPreparation.objects.filter(
            workload=workload_id, attempt=attempt, resumed_at=None
        )
        if not rows.update(resumed_at=timezone.now()):
            return False
        reason = DATA_READY if is_ours else NOT_SUSPENDED
        _create_event(workload, reason, text, is_warning=not is_ours)
        _mark_changed(journal_tx, workload)
    return True


def record_data_failure(workload_id: uuid.UUID, attempt: int, reason: str) -> bool:
    """Record that the attempt's data workers failed: before it took GPUs, it has Failed.

    Later its ranks find out; the history tells why. Return False where that is recorded, or the
    workload is in another attempt.
    """
    with journal_transaction() as journal_tx:
        workload = Workload.objects.filter(
            pk=workload_id, attempt=attempt, desired=Desired.RUNNING
        ).first()
        now, text = timezone.now(), clean_text(reason)
        rows = DataPreparation.objects.filter(workload=workload_id, attempt=attempt, failure="")
        if workload is None or not rows.update(failure=text):
            return False
        is_end = workload.status == Status.PREPARING
        if is_end:
            values = {"status": Status.FAILED, "reason": text, "status_at": now, "ended_at": now}
            workload_writing.update_workload(
                journal_tx, workload, {**values, "next_try_at": None, "tries": 0, "trouble": ""}
            )
        _create_event(
            workload, DATA_FAILED, text, is_warning=True, new=Status.FAILED if is_end else None
        )
        _mark_changed(journal_tx, workload)
    return True


def record_failed_job(row: DataPreparation, at: datetime) -> None:
    """Record when the Job of an attempt's data workers was found failed, once."""
    DataPreparation.objects.filter(pk=row.pk, failed_at=None).update(failed_at=at)


def record_preparation_trouble(workload_id: uuid.UUID, attempt: int, reason: str) -> None:
    """Record why a workload whose data is ready does not go on."""
    with journal_transaction() as journal_tx:
        workload = Workload.objects.filter(
            pk=workload_id, attempt=attempt, status=Status.PREPARING
        ).first()
        text = clean_text(reason)
        if workload is not None and workload.reason != text:
            workload_writing.update_workload(journal_tx, workload, {"reason": text})


def record_rank_counters(
    workload_id: uuid.UUID, attempt: int, counters: Sequence[RankDelivery], at: datetime | None
) -> None:
    """Record the newest counters of ranks, and that they were read at `at`."""
    with journal_transaction() as journal_tx:
        DataPreparation.objects.filter(workload=workload_id, attempt=attempt).update(sampled_at=at)
        if counters:
            bulk_sql.insert_rows(
                RankDelivery,
                counters,
                conflict_fields=("workload", "attempt", "rank"),
                update_fields=_COUNTER_FIELDS,
            )
            workload = Workload.objects.only("project").filter(pk=workload_id).first()
            if workload is not None:
                _mark_changed(journal_tx, workload)


def close_preparations(workload_id: uuid.UUID, attempt: int) -> None:
    """Record that nothing more is to be done for the data of this attempt, and earlier ones."""
    DataPreparation.objects.filter(workload=workload_id, attempt__lte=attempt, is_open=True).update(
        is_open=False
    )


def _load_workloads(keys: Sequence[uuid.UUID]) -> dict[uuid.UUID, Workload]:
    fields = ("project", "status", "attempt", "reason", "cluster")
    return Workload.objects.only(*fields).order_by().in_bulk(keys)


def _mark_changed(journal_tx: JournalTransaction, workload: Workload) -> None:
    Workload.objects.filter(pk=workload.pk).update(changed=journal_tx.position)
    journal_tx.mark_changed(workload.project_id)


def _create_event(
    workload: Workload,
    reason: str,
    text: str,
    *,
    is_warning: bool = False,
    new: Status | None = None,
) -> None:
    Event.objects.create(
        workload=workload,
        attempt=workload.attempt,
        kind=Event.Kind.STATUS if new else Event.Kind.ACTION,
        is_warning=is_warning,
        old=workload.status if new else "",
        new=new or "",
        reason=reason,
        text=clean_text(text),
    )
