"""A batch of what was seen becomes rows, in one turn and a constant number of statements."""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from django.utils import timezone

from clusters import connections
from workloads.journal import bulk_sql, object_merging, status_derivation
from workloads.journal.cluster_events import MAX_CLOCK_LAG, ClusterEvent, refine_moment, supersedes
from workloads.journal.observed_objects import ObservedObject
from workloads.journal.transactions import JournalTransaction
from workloads.journal.workload_updates import WorkloadUpdate, load_updates
from workloads.journal.workload_writing import ATTEMPT_FIELDS
from workloads.kube_objects import INDIRECT_KINDS
from workloads.models import Attempt, Event, Pod, Workload
from workloads.states import Status

_UNCHANGED_POD_FIELDS = ("id", "workload", "uid", "logs_kept")
_POD_FIELDS = [field.name for field in Pod._meta.fields if field.name not in _UNCHANGED_POD_FIELDS]
_KIND_ORDER = {"job": 0, "podgroup": 1, "pod": 2}


def write_batch(
    journal_tx: JournalTransaction,
    cluster_id: uuid.UUID,
    objects: Sequence[ObservedObject],
    cluster_events: Sequence[ClusterEvent] = (),
    *,
    recheck_ids: Collection[uuid.UUID] = (),
) -> set[uuid.UUID]:
    """Write what these tell. The answer is which workloads changed. The status of those in `look`
    is told anew in any case.
    """
    now = timezone.now()
    cases = load_updates(cluster_id, objects, cluster_events, recheck_ids)
    if not cases:
        return set()
    ahead = connections.clock_offset(cluster_id)
    for each in cases.values():
        each.clock_lead = ahead
    by_name = _index_by_name(cases.values())
    for thing in sorted(objects, key=lambda thing: _KIND_ORDER[thing.kind]):
        case = _find_update(thing, cases, by_name)
        if case is not None:
            object_merging.merge_object(case, thing, now)
    for pk in recheck_ids:
        if pk in cases:
            cases[pk].affects_status = True
    events = [
        event
        for case in cases.values()
        if case.affects_status and (event := status_derivation.apply_derived_status(case, now))
    ]
    counted = _collect_events(cluster_events, by_name, events, now)
    _write_rows(journal_tx, cases, events, counted)
    return {pk for pk, case in cases.items() if case.affects_pages or case.new_values}


def _index_by_name(
    updates: Iterable[WorkloadUpdate],
) -> Mapping[tuple[str, str], list[WorkloadUpdate]]:
    """The cases by namespace and name, the one that has the name now first."""
    found: dict[tuple[str, str], list[WorkloadUpdate]] = {}
    for case in sorted(updates, key=lambda case: case.workload.released_at is not None):
        found.setdefault((case.namespace, case.workload.name), []).append(case)
    return found


def _find_update(
    obj: ObservedObject,
    updates: Mapping[uuid.UUID, WorkloadUpdate],
    by_name: Mapping[tuple[str, str], list[WorkloadUpdate]],
) -> WorkloadUpdate | None:
    """Whose it is. A label alone is not enough: anybody may write it, but only in a namespace of
    their own.
    """
    if obj.workload is None:
        return next(iter(by_name.get((obj.namespace, obj.name), ())), None)
    case = updates.get(obj.workload)
    return case if case is not None and obj.namespace in ("", case.namespace) else None


def _collect_events(
    cluster_events: Sequence[ClusterEvent],
    by_name: Mapping[tuple[str, str], list[WorkloadUpdate]],
    events: list[Event],
    now: datetime,
) -> list[bulk_sql.RowChange]:
    """New events of the cluster are added to `events`; the answer is what becomes of those that
    were told again.
    """
    found = {
        each.uid: (each, *owner) for each in cluster_events if (owner := _find_owner(each, by_name))
    }
    if not found:
        return []
    wanted = Event.objects.filter(
        workload__in={case.workload.pk for _, case, _ in found.values()}, uid__in=found
    )
    known = {
        (row.workload_id, row.uid): row
        for row in wanted.only("workload", "uid", "count", "at").order_by()
    }
    changes = []
    for each, case, attempt in found.values():
        row = known.get((case.workload.pk, each.uid))
        if row is None:
            events.append(_build_event_row(each, case, attempt, now))
        elif supersedes(each, row.count, row.at):
            changes.append(
                bulk_sql.RowChange(
                    row.pk,
                    new_values={
                        "count": max(each.count, row.count),
                        "at": max(each.at, row.at),
                        "text": each.text,
                    },
                )
            )
        else:
            continue
        case.affects_pages = True
    return changes


def _find_owner(
    event: ClusterEvent, by_name: Mapping[tuple[str, str], list[WorkloadUpdate]]
) -> tuple[WorkloadUpdate, int] | None:
    """The workload and the attempt that an event is about."""
    candidates = [case for name in event.names for case in by_name.get((event.namespace, name), ())]
    for case in candidates:
        if event.subject_uid in case.pods:
            return case, case.pods[event.subject_uid].attempt
        if event.subject_uid and event.subject_uid == case["job_uid"]:
            return case, case.workload.attempt
        owner = event.subject[-36:] if event.subject_kind == "PodGroup" else event.subject_uid
        if owner in case.job_uids:
            return case, case.job_uids[owner]
    for case in candidates:
        # It may come before what it is about; but not what is about somebody of the same name
        # before.
        name, kind = case.workload.name, case.workload.job_kind.rpartition("/")[2]
        if event.subject_kind == "Job" and event.subject != name and kind not in INDIRECT_KINDS:
            continue
        is_made = event.subject_kind == "Pod" or (
            event.subject_kind == "Job" and kind in INDIRECT_KINDS
        )
        unknown = is_made or not case["job_uid"] or not event.subject_uid
        if (
            unknown
            and case.workload.released_at is None
            and event.at > case.workload.created_at - MAX_CLOCK_LAG
        ):
            return case, case.workload.attempt
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
    )


def _write_rows(
    journal_tx: JournalTransaction,
    updates: Mapping[uuid.UUID, WorkloadUpdate],
    events: Sequence[Event],
    event_changes: Sequence[bulk_sql.RowChange],
) -> None:
    pods = [case.pods[uid] for case in updates.values() for uid in case.changed_pod_uids]
    bulk_sql.insert_rows(Pod, pods, conflict_fields=("workload", "uid"), update_fields=_POD_FIELDS)
    changed, mirrored = [], []
    for case in updates.values():
        row = case.workload
        if not (case.affects_pages or case.new_values):
            continue
        journal_tx.mark_changed(row.project_id)
        changed.append(
            bulk_sql.RowChange(
                row.pk,
                {"status": row.status, "attempt": row.attempt},
                {**case.new_values, "changed": journal_tx.position},
            )
        )
        mirror = {name: case.new_values[name] for name in ATTEMPT_FIELDS if name in case.new_values}
        if mirror and row.status != Status.DELETING:
            mirrored.append(bulk_sql.RowChange(row.pk, {"number": row.attempt}, mirror))
    bulk_sql.update_rows(Workload, "id", changed)
    bulk_sql.update_rows(Attempt, "workload", mirrored)
    bulk_sql.insert_rows(Event, events)
    bulk_sql.update_rows(Event, "id", event_changes)
