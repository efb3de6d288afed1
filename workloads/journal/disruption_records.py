"""Disruptions in the history: written when pods are taken, and completed when it goes on."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from workloads.disruptions import Action, Disruption, decode_disruption, describe_disruption
from workloads.journal.left_out_events import make_room_for_change
from workloads.journal.transactions import journal_transaction
from workloads.models import Event, Workload

REASONS = {
    Action.RECLAIM: "Reclaimed",
    Action.PREEMPT: "Preempted",
    Action.CONSOLIDATE: "Consolidated",
    Action.STALE_GANG: "GangEvicted",
    Action.NODE_LOST: "NodeLost",
    Action.DRAIN: "Drained",
    Action.OTHER: "PodsLost",
}
"""The reasons of the events."""
RESTARTS_USED_UP = "RestartsUsedUp"
SOURCE = "Muster"


@dataclass(frozen=True, slots=True)
class DisruptionRecord:
    """A disruption with the moment that it began; `key` tells it from others of its workload."""

    key: str
    at: datetime
    disruption: Disruption
    taker: str
    """Who got the room, in words that every reader of the workload may read."""


def record_disruptions(
    workload_id: uuid.UUID,
    since: datetime,
    records: Sequence[DisruptionRecord],
    *,
    is_over: bool,
    used_up: str = "",
) -> bool:
    """Write the disruptions that began at `since`, each once; later calls complete them.

    With `is_over` nothing more is expected of them. `used_up` is said of a workload that failed
    with its last restart. Return False where the workload is in another attempt, or they are over.
    """
    with journal_transaction() as journal_tx:
        workload = (
            Workload.objects.select_for_update(of=("self",))
            .filter(pk=workload_id, disrupted_at=since)
            .only("project", "attempt", "submitted_by", "name")
            .first()
        )
        if workload is None:
            return False
        stored = {
            row.uid: row
            for row in Event.objects.filter(
                workload=workload, uid__in=[each.key for each in records]
            ).order_by()
        }
        is_changed = [_write_record(workload, stored.get(each.key), each) for each in records]
        if used_up:
            Event.objects.get_or_create(
                workload=workload,
                uid=f"used-up-{workload.attempt}",
                defaults={
                    "attempt": workload.attempt,
                    "kind": Event.Kind.SCALE,
                    "is_warning": True,
                    "reason": RESTARTS_USED_UP,
                    "text": used_up,
                    "source": SOURCE,
                },
            )
        if is_over or any(is_changed):
            values = {"disrupted_at": None} if is_over else {}
            Workload.objects.filter(pk=workload_id).update(changed=journal_tx.position, **values)
            journal_tx.mark_changed(workload.project_id)
    return True


def _write_record(workload: Workload, stored: Event | None, record: DisruptionRecord) -> bool:
    """Write one disruption. Return whether that changed anything."""
    disruption = record.disruption
    stored_disruption = decode_disruption(stored.cause) if stored is not None else None
    if stored_disruption == disruption:
        return False
    values = {
        "text": describe_disruption(disruption, record.at, record.taker),
        "cause": msgspec.to_builtins(disruption),
    }
    # Told once: as soon as the notice can say how it goes on.
    is_telling = _can_tell(disruption) and (
        stored_disruption is None or not _can_tell(stored_disruption)
    )
    if is_telling and workload.submitted_by_id is not None:
        values["notice_to_id"] = workload.submitted_by_id
    if stored is not None:
        Event.objects.filter(pk=stored.pk).update(**values)
        return True
    make_room_for_change(workload)
    Event.objects.create(
        workload=workload,
        attempt=workload.attempt,
        at=record.at,
        kind=Event.Kind.SCALE,
        is_warning=disruption.action is not Action.CONSOLIDATE,
        reason=REASONS[disruption.action],
        source=SOURCE,
        uid=record.key,
        **values,
    )
    return True


def _can_tell(disruption: Disruption) -> bool:
    return disruption.is_waiting or not disruption.is_open


def dismiss_notices(user_id: int, newest: int) -> None:
    """Record that a user was told of what happened to their workloads, up to the event `newest`."""
    Event.objects.filter(notice_to=user_id, pk__lte=newest).update(notice_to=None)
