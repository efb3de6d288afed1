"""A batch of observations becomes rows, in one transaction and a constant number of statements."""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec
from django.utils import timezone

from clusters import connections
from clusters.job_kinds import JOBS, is_made_with_batch_jobs
from workloads.journal import (
    bulk_sql,
    forecast_records,
    object_merging,
    pod_counting,
    status_derivation,
)
from workloads.journal.cluster_events import MAX_CLOCK_LAG, ClusterEvent, refine_moment, supersedes
from workloads.journal.observed_objects import ObservedObject
from workloads.journal.transactions import JournalTransaction
from workloads.journal.workload_updates import WorkloadUpdate, load_updates
from workloads.journal.workload_writing import ATTEMPT_FIELDS
from workloads.kube_objects import get_data_job_name
from workloads.models import Attempt, Event, Pod, Workload
from workloads.states import Status

_UNCHANGED_POD_FIELDS = ("id", "workload", "uid", "logs_kept")
_POD_FIELDS = [field.name for field in Pod._meta.fields if field.name not in _UNCHANGED_POD_FIELDS]
_MADE_KINDS = ("Pod", "PersistentVolumeClaim", "Workload")
"""Kinds of objects that are made for a job, so that events name others than its uid."""
_KIND_ORDER = {"job": 0, "podgroup": 1, "pod": 2}


def write_batch(
    journal_tx: JournalTransaction,
    cluster_id: uuid.UUID,
    objects: Sequence[ObservedObject],
    cluster_events: Sequence[ClusterEvent] = (),
    *,
    recheck_ids: Collection[uuid.UUID] = (),
) -> set[uuid.UUID]:
    """Write these objects and events. Return the ids of the workloads that changed.

    The status of those in `recheck_ids` is derived anew in any case.
    """
    now = timezone.now()
    updates = load_updates(cluster_id, objects, cluster_events, recheck_ids)
    if not updates:
        return set()
    clock_lead = connections.clock_offset(cluster_id)
    for update in updates.values():
        update.clock_lead = clock_lead
    by_name = _index_by_name(updates.values())
    for obj in sorted(objects, key=lambda obj: _KIND_ORDER[obj.kind]):
        owner = _find_update(obj, updates, by_name)
        if owner is not None:
            object_merging.merge_object(owner, obj, now)
    for pk in recheck_ids:
        if pk in updates:
            updates[pk].affects_status = True
    pod_changes = pod_counting.update_pod_counts(updates.values(), anew=recheck_ids)
    _write_pods(updates, pod_changes)
    events = status_derivation.apply_derived_statuses(updates.values(), now)
    forecast_records.record_starts(events, now)
    event_changes = _collect_events(cluster_events, by_name, events, now)
    _write_rows(journal_tx, updates, events, event_changes)
    return {pk for pk, update in updates.items() if update.affects_pages or update.new_values}


def _index_by_name(
    updates: Iterable[WorkloadUpdate],
) -> Mapping[tuple[str, str], list[WorkloadUpdate]]:
    """Return the updates by namespace and name; the current holder of a name comes first."""
    by_name: dict[tuple[str, str], list[WorkloadUpdate]] = {}
    for update in sorted(updates, key=lambda update: update.workload.released_at is not None):
        by_name.setdefault((update.namespace, update.workload.name), []).append(update)
    return by_name


def _find_update(
    obj: ObservedObject,
    updates: Mapping[uuid.UUID, WorkloadUpdate],
    by_name: Mapping[tuple[str, str], list[WorkloadUpdate]],
) -> WorkloadUpdate | None:
    """Return the update of the workload that an object belongs to.

    A label alone is not enough: anybody may write it, but only in their own namespace.
    """
    if obj.workload is None:
        return next(iter(by_name.get((obj.namespace, obj.name), ())), None)
    update = updates.get(obj.workload)
    return update if update is not None and obj.namespace in ("", update.namespace) else None


def _collect_events(
    cluster_events: Sequence[ClusterEvent],
    by_name: Mapping[tuple[str, str], list[WorkloadUpdate]],
    events: list[Event],
    now: datetime,
) -> list[bulk_sql.RowChange]:
    """Append new cluster events to `events`. Return the changes of the repeated ones."""
    owned = {
        event.uid: (event, *owner)
        for event in cluster_events
        if (owner := _find_owner(event, by_name))
    }
    if not owned:
        return []
    stored = Event.objects.filter(
        workload__in={update.workload.pk for _, update, _ in owned.values()}, uid__in=owned
    )
    rows_by_key = {
        (row.workload_id, row.uid): row
        for row in stored.only("workload", "uid", "count", "at").order_by()
    }
    changes = []
    for event, update, attempt in owned.values():
        row = rows_by_key.get((update.workload.pk, event.uid))
        if row is None:
            events.append(_build_event_row(event, update, attempt, now))
        elif supersedes(event, row.count, row.at):
            changes.append(
                bulk_sql.RowChange(
                    row.pk,
                    new_values={
                        "count": max(event.count, row.count),
                        "at": max(event.at, row.at),
                        "text": event.text,
                        "cause": _encode_cause(event),
                    },
                )
            )
        else:
            continue
        if event.cause is not None and attempt == update.workload.attempt:
            update.mark_disrupted(event.at, now)
        update.affects_pages = True
    return changes


def _find_owner(
    event: ClusterEvent, by_name: Mapping[tuple[str, str], list[WorkloadUpdate]]
) -> tuple[WorkloadUpdate, int] | None:
    """Return the workload and the attempt that an event is about."""
    candidates = [
        update for name in event.names for update in by_name.get((event.namespace, name), ())
    ]
    for update in candidates:
        attempt = update.find_pod_attempt(event.subject_uid)
        if attempt is not None:
            return update, attempt
        if event.subject_uid and event.subject_uid == update["job_uid"]:
            return update, update.workload.attempt
        owner = event.subject[-36:] if event.subject_kind == "PodGroup" else event.subject_uid
        if owner in update.job_uids:
            return update, update.job_uids[owner]
    for update in candidates:
        # An event may arrive before its object. One about an earlier workload of the same name is
        # told by its uid or its time.
        name, kind = update.workload.name, update.workload.job_kind.rpartition("/")[2]
        is_about_batch_job = event.subject_kind == JOBS.kind
        is_of_data = (
            update.workload.data_workers is not None and event.subject == get_data_job_name(name)
        )
        is_indirect = is_made_with_batch_jobs(kind) or is_of_data
        if is_about_batch_job and event.subject != name and not is_indirect:
            continue
        is_made = event.subject_kind in _MADE_KINDS or (is_about_batch_job and is_indirect)
        unknown = is_made or not update["job_uid"] or not event.subject_uid
        if (
            unknown
            and update.workload.released_at is None
            and event.at > update.workload.created_at - MAX_CLOCK_LAG
        ):
            return update, update.workload.attempt
    return None


def _build_event_row(
    event: ClusterEvent, update: WorkloadUpdate, attempt: int, now: datetime
) -> Event:
    return Event(
        workload=update.workload,
        attempt=attempt,
        at=refine_moment(event.at, now),
        kind=Event.Kind.CLUSTER,
        is_warning=event.is_warning,
        reason=event.reason,
        text=event.text,
        source=event.source,
        subject_kind=event.subject_kind,
        subject=event.subject,
        count=event.count,
        first_at=event.first_at,
        uid=event.uid,
        cause=_encode_cause(event),
    )


def _encode_cause(event: ClusterEvent) -> object:
    return None if event.cause is None else msgspec.to_builtins(event.cause)


def _write_pods(
    updates: Mapping[uuid.UUID, WorkloadUpdate], changes: Sequence[bulk_sql.RowChange]
) -> None:
    pods = [update.pods[uid] for update in updates.values() for uid in update.changed_pod_uids]
    # New and known pods alike: one statement instead of two.
    bulk_sql.insert_rows(Pod, pods, conflict_fields=("workload", "uid"), update_fields=_POD_FIELDS)
    bulk_sql.update_rows(Pod, "id", changes)


def _write_rows(
    journal_tx: JournalTransaction,
    updates: Mapping[uuid.UUID, WorkloadUpdate],
    events: Sequence[Event],
    event_changes: Sequence[bulk_sql.RowChange],
) -> None:
    changed, mirrored = [], []
    for update in updates.values():
        row = update.workload
        counts = None if update.counts is None else msgspec.to_builtins(update.counts)
        kept_counts = {} if counts in (None, row.pod_counts) else {"pod_counts": counts}
        expected = {"status": row.status, "attempt": row.attempt}
        if not (update.affects_pages or update.new_values):
            # No page shows the counts themselves.
            changed.append(bulk_sql.RowChange(row.pk, expected, kept_counts))
            continue
        journal_tx.mark_changed(row.project_id)
        new_values = {**update.new_values, **kept_counts, "changed": journal_tx.position}
        changed.append(bulk_sql.RowChange(row.pk, expected, new_values))
        mirror = {
            name: update.new_values[name] for name in ATTEMPT_FIELDS if name in update.new_values
        }
        if mirror and row.status != Status.DELETING:
            mirrored.append(bulk_sql.RowChange(row.pk, {"number": row.attempt}, mirror))
    bulk_sql.update_rows(Workload, "id", changed)
    bulk_sql.update_rows(Attempt, "workload", mirrored)
    bulk_sql.insert_rows(Event, events)
    bulk_sql.update_rows(Event, "id", event_changes)
