"""Writing one workload's change: the guarded UPDATE, its attempt's row, and its event."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.utils import timezone

from projects.models import User
from workloads.journal import bulk_sql
from workloads.journal.transactions import JournalTransaction
from workloads.models import Attempt, Event, Workload

STEP_CHECK_DELAY = timedelta(seconds=10)
"""Time after which the sweep checks whether a requested step was done. Its message may be lost."""

ATTEMPT_FIELDS = ("status", "reason", "started_at", "ended_at", "ended", "job_uid")
"""Fields that the current attempt's row copies from its workload."""

NOTHING_ALLOCATED: Mapping[str, int] = {
    "gpus_allocated": 0,
    "cpu_allocated": 0,
    "memory_allocated": 0,
}
"""The values of a workload without pods."""


def update_workload(
    journal_tx: JournalTransaction,
    workload: Workload,
    new_values: Mapping[str, Any],
    *,
    update_attempt: bool = True,
) -> None:
    """Set these values if the workload's row is still as it was read.

    `update_attempt` copies them to its current attempt's row as well. Raises ConcurrentChange.
    """
    expected = {"status": workload.status, "attempt": workload.attempt}
    bulk_sql.update_rows(
        Workload,
        "id",
        [bulk_sql.RowChange(workload.pk, expected, {**new_values, "changed": journal_tx.position})],
    )
    mirrored = {name: new_values[name] for name in ATTEMPT_FIELDS if name in new_values}
    if update_attempt and mirrored:
        Attempt.objects.filter(
            workload=workload, number=new_values.get("attempt", workload.attempt)
        ).update(**mirrored)
    journal_tx.mark_changed(workload.project_id)


def create_action_event(
    workload: Workload,
    reason: str,
    text: str,
    user: User | None,
    *,
    new_status: str = "",
    attempt: int | None = None,
) -> None:
    """Create an event for a user's action; with `new_status`, it is a change of status too."""
    Event.objects.create(
        workload=workload,
        attempt=attempt or workload.attempt,
        kind=Event.Kind.ACTION,
        old=workload.status if new_status and reason != SUBMITTED else "",
        new=new_status,
        reason=reason,
        text=text,
        by=user,
    )


SUBMITTED = "Submitted"


def build_due_step_fields() -> dict[str, Any]:
    """Return the fields of a workload for which a step was just requested."""
    return {"tries": 0, "trouble": "", "next_try_at": timezone.now() + STEP_CHECK_DELAY}
