"""The steps that follow what data workers prepare, and let the job take GPUs when that is done.

What they know is in rows and in captured logs. The cluster is asked only to let a job go on.
"""

import logging
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from django.utils import timezone

from clusters import connections
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Conflict, Gone, KubeError, Rejected
from clusters.tasks import claim_task, heartbeat
from clusters.thread_shares import count_silent_threads
from console.celery import step
from projects.durations import describe_duration
from workloads import data_delivery, journal
from workloads.data_delivery import Preparation, WorkerProgress
from workloads.journal import PreparationChange
from workloads.kube_objects import (
    WAITS_FOR_DATA,
    Object,
    clean_text,
    find_true_condition,
    nested_dict,
)
from workloads.logbook.attempt_state import MISSING_AFTER, NOT_CAPTURED
from workloads.models import DataPreparation, Desired, Workload
from workloads.states import (
    ACTIVE,
    RESTING,
    Status,
)
from workloads.status_rules import (
    has_waited_for_data,
    is_suspended,
)
from workloads.tasks import data_progress, objects, rank_counters
from workloads.tasks.data_progress import CurrentWorkers
from workloads.tasks.retrying import describe_refusal, find_workload
from workloads.tasks.teardown import tidy_data

log = logging.getLogger(__name__)

MOST_ATTEMPTS = 200
"""Attempts of one run, in their order; the next run goes on behind them."""
MOST_SECONDS = 3.0
"""Seconds after which a run reads no further logs."""
STALLED_AFTER = timedelta(minutes=5)
"""Without a unit for so long, the preparation has stalled."""
FAILURE_PATIENCE = timedelta(seconds=30)
"""How long the failure of data workers waits for the line of their log that says why."""
REFUSAL_PAUSE_SECONDS = 30.0
"""Seconds after which the cluster is asked again to let a job go on, where it refused that."""
ENDED = "they ended before the data was prepared; does the script register its loader?"
DELETED = "their Job was deleted in the cluster, and not by Muster"
DATA_READY_TEXT = "Its data is ready."

_WORKLOAD_FIELDS = tuple(
    f"workload__{name}"
    for name in (
        *(
            "name",
            "status",
            "status_at",
            "attempt",
            "desired",
            "released_at",
            "reason",
            "data_workers",
        ),
        *("job", "job_uid", "data_job", "ended_at", "cluster_id", "project_id", "pod_counts"),
        *("cluster__captured_until", "cluster__unreachable_since", "cluster__is_enabled"),
    )
)
_last_key = 0
"""Behind which row the next run of this process begins."""
_paused_until: dict[uuid.UUID, float] = {}
"""Until when jobs are left alone that the cluster refused to let go on, by the monotonic clock."""


@step
def follow_preparations() -> None:
    """Record how far the data of attempts is, and request what follows from it.

    May run twice or late. Where a run lasts longer than its period, the next ones are left out.
    """
    with claim_task("preparing", "all") as is_claimed:
        if is_claimed:
            _follow_attempts(timezone.now())


def _follow_attempts(now: datetime) -> None:
    global _last_key
    deadline = time.monotonic() + MOST_SECONDS
    rows = _load_rows(_last_key)
    preparing = [each for each in rows if _is_preparing(each)]
    current = list(data_progress.read_workers(preparing, deadline))
    changes = [_find_change(row, workers, now) for row, workers in current]
    journal.record_preparations([each for each in changes if each is not None])
    # The counters that were read the longest ago come first: a run may not have time for all.
    never = datetime.min.replace(tzinfo=UTC)
    for row in sorted(rows, key=lambda each: each.sampled_at or never):
        _request_next_step(row, now, deadline)
    # Where logs are so long that a run does not read all, the next goes on with the others.
    reached = rows if len(current) == len(preparing) else [row for row, _ in current]
    is_whole = reached is rows and len(rows) < MOST_ATTEMPTS
    _last_key = 0 if is_whole or not reached else reached[-1].pk


def _load_rows(behind: int) -> Sequence[DataPreparation]:
    rows = DataPreparation.objects.filter(is_open=True, pk__gt=behind)
    rows = rows.select_related("workload__cluster").only(
        *(field.name for field in DataPreparation._meta.concrete_fields), *_WORKLOAD_FIELDS
    )
    return list(rows.order_by("pk")[:MOST_ATTEMPTS])


def _is_preparing(row: DataPreparation) -> bool:
    return (
        row.workload.attempt == row.attempt
        and row.workload.status == Status.PREPARING
        and row.resumed_at is None
    )


def _request_next_step(row: DataPreparation, now: datetime, deadline: float) -> None:
    """Request or do what an attempt's data calls for now."""
    workload: Workload = row.workload
    if workload.released_at is not None or workload.attempt != row.attempt:
        journal.close_preparations(workload.pk, row.attempt)
        return
    if workload.status in RESTING:
        rank_counters.record_counters(row, now, deadline)
        # A job that was deleted in the cluster leaves its data workers, too. Those of one that
        # others suspended stay.
        is_reachable = workload.cluster.is_enabled and workload.cluster.unreachable_since is None
        if is_reachable and not workload.may_be_resumed_by_others:
            tidy_data.enqueue(str(workload.pk))
        return
    if workload.status not in ACTIVE or workload.job is None:
        return
    message = _describe_end(row)
    if message and not row.failure:
        _record_failure(row, now, message)
    if row.resumed_at is not None:
        # Ranks that got all their data before its workers failed go on, and so do their counters.
        rank_counters.record_counters(row, now, deadline)
    elif message:
        return
    elif not is_suspended(workload.job) or workload.status != Status.PREPARING:
        _record_other_resumption(row)
    elif row.ready_at is not None:
        resume.enqueue(str(workload.pk))


def _record_other_resumption(row: DataPreparation) -> None:
    """Record that the job goes on without this process: it died after it let it go on, or somebody
    else did, or the operator takes no notice of the suspension.
    """
    workload: Workload = row.workload
    if has_waited_for_data(workload.job):
        journal.record_resumption(workload.pk, row.attempt, None, _describe_ready(row))
        return
    reason = (
        "its operator takes no notice of that"
        if is_suspended(workload.job)
        else "it is not suspended in the cluster, and not by Muster"
    )
    text = (
        f"Its job was to wait until its data is prepared, but {reason}: it takes GPUs before its "
        "data is ready. Its data workers go on."
    )
    journal.record_resumption(workload.pk, row.attempt, None, text, is_ours=False)


def _describe_ready(row: DataPreparation) -> str:
    workers = data_delivery.decode_workers(row.workers, row.workload.data_workers or 0)
    return data_delivery.describe_ready(Preparation.add_up(row.wanted, workers))


def _describe_end(row: DataPreparation) -> str:
    """Describe how the Job of data workers has failed; "" where it has not."""
    job = row.workload.data_job or {}
    if condition := find_true_condition(job, "Failed"):
        return str(condition.get("message") or condition.get("reason") or ENDED)
    is_waited_for = row.ready_at is None and row.resumed_at is None
    if is_waited_for and not job and _has_had_workers(row):
        return DELETED
    return ENDED if is_waited_for and find_true_condition(job, "Complete") else ""


def _has_had_workers(row: DataPreparation) -> bool:
    """Tell whether data workers of the attempt were seen, which only their Job makes."""
    workers = data_delivery.decode_workers(row.workers, row.workload.data_workers or 0)
    return any(each.pod for each in workers)


def _record_failure(row: DataPreparation, now: datetime, message: str) -> None:
    """Record that the Job of data workers has failed, with the line of a log that says why."""
    if row.failed_at is None:
        journal.record_failed_job(row, now)
    workload: Workload = row.workload
    workers: Sequence[WorkerProgress] = data_delivery.decode_workers(
        row.workers, workload.data_workers or 0
    )
    for _, current in data_progress.read_workers([row] if row.resumed_at is not None else []):
        workers = current.workers
    is_late = row.failed_at is not None and now - row.failed_at > FAILURE_PATIENCE
    if is_late or any(each.error for each in workers):
        reason = data_delivery.describe_failure(workers, message)
        journal.record_data_failure(workload.pk, row.attempt, reason)


def _find_change(
    row: DataPreparation, current: CurrentWorkers, now: datetime
) -> PreparationChange | None:
    """Return what is new of one attempt; None where nothing is."""
    workload: Workload = row.workload
    preparation = Preparation.add_up(row.wanted, current.workers)
    has_progress = preparation.prepared > row.prepared or preparation.is_ready
    progress_at = now if has_progress else row.progress_at
    # Before that its data workers were not there: a launch may wait long for its cluster.
    is_stalled = now - (progress_at or workload.status_at) >= STALLED_AFTER
    has_stalled = is_stalled and not preparation.is_ready
    reason, stall = data_delivery.describe_preparation(preparation), ""
    if preparation.is_ready:
        # Why it does not go on, the step that lets it go on says.
        reason = workload.reason if row.ready_at is not None else DATA_READY_TEXT
    elif has_stalled:
        trouble = current.trouble or _describe_missing_capture(workload, now)
        stall = data_delivery.describe_stall(describe_duration(STALLED_AFTER.seconds), trouble)
    reason = clean_text(" ".join(filter(None, (reason, stall or current.trouble))))
    before = data_delivery.decode_workers(row.workers, workload.data_workers or 0)
    if (current.workers, has_stalled, reason) == (before, row.has_stalled, workload.reason):
        return None
    is_told = not has_stalled or row.has_stalled
    return PreparationChange(
        row,
        current.workers,
        preparation,
        reason,
        progress_at,
        has_stalled,
        "" if is_told else reason,
    )


def _describe_missing_capture(workload: Workload, now: datetime) -> str:
    """Describe that no process reads the logs that say how far it is; "" where one does."""
    captured_until = workload.cluster.captured_until
    is_captured = captured_until is not None and captured_until > now - MISSING_AFTER
    return "" if is_captured else NOT_CAPTURED


@step
def resume(workload_id: str) -> None:
    """Let the job of a workload whose data is ready take GPUs.

    It may run twice or die anywhere: the job itself says whether that is done. A job that somebody
    changed since it was read is left for the next run.
    """
    with claim_task("resume", workload_id) as is_claimed:
        workload = find_workload(workload_id) if is_claimed else None
        if workload is None or not _may_resume(workload):
            return
        row = DataPreparation.objects.filter(
            workload=workload, attempt=workload.attempt, ready_at__isnull=False, resumed_at=None
        ).first()
        if row is None:
            return
        row.workload = workload
        try:
            client = connections.get_client(workload.cluster)
            if not client.pending.is_crowded(count_silent_threads()):
                _resume_job(client, workload, row)
                _paused_until.pop(workload.pk, None)
        except (Conflict, Gone):
            return
        except Rejected as error:
            _paused_until[workload.pk] = time.monotonic() + REFUSAL_PAUSE_SECONDS
            text = f"{DATA_READY_TEXT} Muster could not let its job go on, and tries again:"
            journal.record_preparation_trouble(
                workload.pk, workload.attempt, f"{text} {describe_refusal(error)}"
            )
        except KubeError as error:
            log.warning("workload %s could not be resumed: %s", workload.pk, error.message)
            heartbeat.enqueue(str(workload.cluster_id))


def _may_resume(workload: Workload) -> bool:
    cluster = workload.cluster
    return (
        workload.desired == Desired.RUNNING
        and workload.status == Status.PREPARING
        and cluster.is_enabled
        and cluster.unreachable_since is None
        and time.monotonic() >= _paused_until.get(workload.pk, 0.0)
    )


def _resume_job(client: Client, workload: Workload, row: DataPreparation) -> None:
    kind, namespace = objects.job_resource_of(workload), objects.namespace_of(workload)
    job = calls.get(client, kind, workload.name, namespace=namespace)
    if (
        not objects.is_object_of(job, workload)
        or nested_dict(job, "metadata").get("uid") != workload.job_uid
        or objects.is_being_deleted(job)
    ):
        return
    if is_suspended(job):
        change = build_resumption(job)
        job = calls.patch(client, kind, workload.name, change, namespace=namespace)
    journal.record_resumption(workload.pk, row.attempt, job, _describe_ready(row))


def build_resumption(job: Object) -> Object:
    """Build the merge patch that lets a suspended job go on, where it is as it was read.

    With the version it fails where somebody changed or deleted the job meanwhile. The annotation
    says from then on that whoever suspends it again is not Muster.
    """
    metadata, spec = nested_dict(job, "metadata"), nested_dict(job, "spec")
    is_in_policy = "suspend" in nested_dict(spec, "runPolicy")
    return {
        "metadata": {
            "resourceVersion": metadata["resourceVersion"],
            "annotations": {WAITS_FOR_DATA: "false"},
        },
        "spec": {"runPolicy": {"suspend": False}} if is_in_policy else {"suspend": False},
    }
