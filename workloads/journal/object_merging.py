"""Merging one observed object into its workload's update.

Objects that are older than the known state, or somebody else's, change nothing.
"""

import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from clusters.job_kinds import JOBS
from workloads.disruptions import find_pod_cause
from workloads.journal import bulk_sql
from workloads.journal.cluster_events import parse_moment
from workloads.journal.observed_objects import Kind, ObservedObject, uid_of, version_of
from workloads.journal.workload_updates import WorkloadUpdate
from workloads.kube_objects import (
    DATA_WORKER,
    Object,
    clean_text,
    get_data_job_name,
    is_data_worker,
    is_own_pod,
    is_pod_of_job,
)
from workloads.models import Pod
from workloads.pod_counts import Standing, find_standing
from workloads.pod_views import build_pod_view
from workloads.states import RESTING, Status

MOST_UNITS = Decimal(10**8)
MOST_UNITS_OF_POD = Decimal(10**4)
"""GPUs or cores of one pod: more than any machine has, so that sums over pods that ask for absurd
numbers, and over time, stay within their columns.
"""
MOST_BYTES = 1 << 53
_MAX_INT = (1 << 31) - 1
_POD_DEFAULTS = {field.attname: field.get_default() for field in Pod._meta.concrete_fields}


def merge_object(update: WorkloadUpdate, obj: ObservedObject, now: datetime) -> None:
    """Merge one object into its workload's update."""
    if update.workload.released_at is None or obj.kind == "pod":
        _MERGE_BY_KIND[obj.kind](update, obj, now)


def _merge_job(update: WorkloadUpdate, obj: ObservedObject, now: datetime) -> None:
    if obj.attempt != update.workload.attempt:
        return
    if obj.name == get_data_job_name(update.workload.name) or (
        not obj.name and obj.uid == uid_of(update["data_job"])
    ):
        _merge_data_job(update, obj)
        return
    if obj.name and obj.name != update.workload.name:
        return
    if obj.data and (obj.owner or obj.data.get("kind", _job_kind(update)) != _job_kind(update)):
        # Somebody else's job under our labels: ours has no controller, and is of our kind.
        return
    uid, stored_job = update["job_uid"], update.job
    if obj.is_gone:
        if uid in ("", obj.uid) and (stored_job is not None or not uid):
            update.set_values(job=None, job_uid=obj.uid)
            update.affects_status = update.affects_pages = True
        return
    if stored_job is None:
        # A uid that is gone does not come back: the watch may repeat an old state of it. Another
        # uid is the attempt's job only while the attempt goes on.
        if uid == obj.uid or (uid and Status(update.workload.status) in RESTING):
            return
    elif not obj.supersedes(version_of(stored_job)):
        return
    update.set_values(job=obj.data, job_uid=obj.uid)
    update.affects_status = update.affects_pages = True


def _merge_data_job(update: WorkloadUpdate, obj: ObservedObject) -> None:
    """Merge the batch Job of the workload's data workers, which decides no status by itself."""
    is_ours = update.workload.data_workers is not None and not obj.owner
    if not is_ours or obj.data.get("kind", JOBS.kind) != JOBS.kind:
        return
    stored_job = update["data_job"]
    if obj.is_gone:
        if uid_of(stored_job) == obj.uid:
            update.set_values(data_job=None)
    elif stored_job is None or obj.supersedes(version_of(stored_job)):
        update.set_values(data_job=obj.data)
    update.affects_pages = update.affects_pages or "data_job" in update.new_values


def _merge_pod_group(update: WorkloadUpdate, obj: ObservedObject, now: datetime) -> None:
    stored_group: Object | None = update["pod_group"]
    if obj.is_gone:
        if stored_group is not None and uid_of(stored_group) == obj.uid:
            update.set_values(pod_group=None)
            update.affects_status = update.affects_pages = True
        return
    if update["job_uid"] != obj.owner and (update["job_uid"] or obj.owner in update.job_uids):
        return
    if stored_group is None or obj.supersedes(version_of(stored_group)):
        update.set_values(pod_group=obj.data)
        update.affects_status = update.affects_pages = True


def _merge_pod(update: WorkloadUpdate, obj: ObservedObject, now: datetime) -> None:
    row = update.pods.get(obj.uid)
    is_current = obj.attempt == update.workload.attempt
    if row is None:
        if not obj.data or obj.attempt > update.workload.attempt or _is_foreign_pod(update, obj):
            return
        row = _build_pod_row(update.workload.pk, obj.attempt, obj.uid)
        update.shares[obj.uid] = None
        is_back, is_news = False, True
    else:
        # A listing that was requested after the pod vanished proves that it exists: the cluster was
        # wrong before, or was restored from a backup.
        is_back = (
            row.vanished_at is not None
            and obj.requested_at is not None
            and row.vanished_at < obj.requested_at
        )
        is_news = bool(obj.data) and (is_back or obj.supersedes(row.version))
        if obj.data and not is_news and not (obj.is_gone and row.vanished_at is None):
            return
    before = _without_version(row.data)
    if obj.data and is_news:
        view = build_pod_view(obj.data)
        is_taken = view.disrupted and view.role != DATA_WORKER and not _was_disrupted(row)
        if is_current and is_taken:
            since = find_pod_cause(obj.data)
            at = parse_moment(since[1], update.clock_lead) if since else None
            update.mark_disrupted(at or now, now)
        fill_pod_row(row, obj.data, update.clock_lead)
        # Jobs are merged before pods: this is the job that the counts are of.
        if is_current and obj.owner != uid_of(update.job) and not _is_own_pod(update, obj):
            row.standing = Standing.FOREIGN.value
    if is_back:
        row.vanished_at = None
    elif obj.is_gone and row.vanished_at is None:
        row.vanished_at = now
    elif row.pk is not None and before == _without_version(row.data) and obj.data:
        update.changed_pod_uids.add(row.uid)
        return
    update.pods[row.uid] = row
    update.changed_pod_uids.add(row.uid)
    update.affects_pages = True
    update.affects_status = (
        update.affects_status or is_current or update.workload.status == Status.DELETING
    )


def _was_disrupted(row: Pod) -> bool:
    return bool(row.data) and build_pod_view(row.data).disrupted


def _build_pod_row(workload_id: uuid.UUID, attempt: int, uid: str) -> Pod:
    values = {"workload_id": workload_id, "attempt": attempt, "uid": uid, "data": {}}
    return bulk_sql.build_row(Pod, _POD_DEFAULTS | values, is_new=True)


def _is_foreign_pod(update: WorkloadUpdate, obj: ObservedObject) -> bool:
    """Return whether a pod with our labels belongs to somebody else.

    While its attempt's job is unknown, it is judged by the job's name.
    """
    uid = (
        update["job_uid"]
        if obj.attempt == update.workload.attempt
        else update.find_job_uid(obj.attempt)
    )
    if uid and uid == obj.owner:
        return False
    if is_data_worker(obj.data, update.workload.name):
        return update.workload.data_workers is None
    return not is_pod_of_job(obj.data, _job_kind(update), update.workload.name, uid)


def _is_own_pod(update: WorkloadUpdate, obj: ObservedObject) -> bool:
    """Return whether the current job, or that of its data workers, controls a pod of its attempt.

    Without a job any pod is its own.
    """
    return (
        update.job is None
        or is_own_pod(update.job, obj.data)
        or is_data_worker(obj.data, update.workload.name)
    )


def _job_kind(update: WorkloadUpdate) -> str:
    return update.workload.job_kind.rpartition("/")[2]


_MERGE_BY_KIND: Mapping[Kind, Callable[[WorkloadUpdate, ObservedObject, datetime], None]] = {
    "job": _merge_job,
    "pod": _merge_pod,
    "podgroup": _merge_pod_group,
}


def fill_pod_row(row: Pod, data: Object, clock_lead: timedelta = timedelta(0)) -> None:
    """Fill a pod's row from its object. The rank depends on other pods and is not touched.

    `clock_lead` is how far the cluster's clock is ahead of ours.
    """
    pod = build_pod_view(data)
    row.name = clean_text(pod.name, 253)
    row.role = clean_text(pod.role, 16)
    row.index = pod.index
    row.phase = clean_text(pod.phase, 16)
    row.status = clean_text(pod.status, 64)
    row.reason = pod.reason
    row.is_ready = pod.ready
    row.ready_at = parse_moment(pod.ready_at, clock_lead)
    row.standing = find_standing(pod).value
    row.is_preempted = pod.preempted
    row.node = clean_text(pod.node, 253)
    row.gpus = None if pod.gpus is None else clamp_amount(pod.gpus, MOST_UNITS_OF_POD)
    row.cpu = clamp_amount(pod.cpu, MOST_UNITS_OF_POD)
    row.memory = clamp_bytes(pod.memory)
    row.restarts = min(_MAX_INT, max(0, pod.restarts))
    row.image = clean_text(pod.image, 512)
    row.created_at = parse_moment(pod.created_at, clock_lead)
    row.started_at = parse_moment(pod.started_at, clock_lead)
    row.ended_at = (
        max(
            (
                at
                for end in pod.ends
                if end.current and (at := parse_moment(end.finished_at, clock_lead))
            ),
            default=None,
        )
        if pod.finished
        else None
    )
    row.version = version_of(data)[:32]
    row.data = data


def clamp_amount(amount: Decimal, most: Decimal = MOST_UNITS) -> Decimal:
    """Return GPUs or cores as the column can hold them, whatever a pod may ask for."""
    return min(amount, most).quantize(Decimal("0.001"))


def clamp_bytes(amount: Decimal | int) -> int:
    """Return bytes as the column can hold them, whatever a pod may ask for."""
    return int(min(amount, MOST_BYTES))


def _without_version(data: Object) -> Object:
    metadata = data.get("metadata")
    return (
        data | {"metadata": metadata | {"resourceVersion": ""}}
        if isinstance(metadata, dict)
        else data
    )
