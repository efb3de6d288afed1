"""How one workload's change is written: the guarded UPDATE, its attempt's row, and its event."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.utils import timezone

from projects.models import User
from workloads.journal import bulk_sql
from workloads.journal.transactions import JournalTransaction
from workloads.models import Attempt, Event, Workload

STEP_CHECK_DELAY = timedelta(seconds=10)
"""After which the sweep looks whether a step that was asked for has been done: its message may be
lost.
"""

ATTEMPT_FIELDS = ("status", "reason", "started_at", "ended_at", "ended", "job_uid")
"""What the current attempt's row has of its workload's."""


def update_workload(
    journal_tx: JournalTransaction,
    workload: Workload,
    new_values: Mapping[str, Any],
    *,
    update_attempt: bool = True,
) -> None:
    """Give one workload these values, if it is still as it was read. `mirror`: its current
    attempt's row as well.
    """
    was = {"status": workload.status, "attempt": workload.attempt}
    bulk_sql.update_rows(
        Workload,
        "id",
        [bulk_sql.RowChange(workload.pk, was, {**new_values, "changed": journal_tx.position})],
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
    """An event for what somebody did; with `new` it is a change of status, too."""
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
    """The fields of a workload for which a step was just asked."""
    return {"tries": 0, "trouble": "", "next_try_at": timezone.now() + STEP_CHECK_DELAY}
