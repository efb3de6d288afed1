"""How one workload's change is written: the guarded UPDATE, its attempt's row, and its event."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.utils import timezone

from projects.models import User
from workloads.journal import rows
from workloads.journal.turns import Turn
from workloads.models import Attempt, Event, Workload

FIRST_TRY = timedelta(seconds=10)
"""After which the sweep looks whether a step that was asked for has been done: its message may be
lost.
"""

MIRRORED = ("status", "reason", "started_at", "ended_at", "ended", "job_uid")
"""What the current attempt's row has of its workload's."""


def write(turn: Turn, workload: Workload, to: Mapping[str, Any], *, mirror: bool = True) -> None:
    """Give one workload these values, if it is still as it was read. `mirror`: its current
    attempt's row as well.
    """
    was = {"status": workload.status, "attempt": workload.attempt}
    rows.update(Workload, "id", [rows.Change(workload.pk, was, {**to, "changed": turn.position})])
    mirrored = {name: to[name] for name in MIRRORED if name in to}
    if mirror and mirrored:
        Attempt.objects.filter(
            workload=workload, number=to.get("attempt", workload.attempt)
        ).update(**mirrored)
    turn.changed(workload.project_id)


def asked(
    workload: Workload,
    what: str,
    text: str,
    by: User | None,
    *,
    new: str = "",
    attempt: int | None = None,
) -> None:
    """An event for what somebody did; with `new` it is a change of status, too."""
    Event.objects.create(
        workload=workload,
        attempt=attempt or workload.attempt,
        kind=Event.Kind.ACTION,
        old=workload.status if new and what != SUBMITTED else "",
        new=new,
        reason=what,
        text=text,
        by=by,
    )


SUBMITTED = "Submitted"


def soon() -> dict[str, Any]:
    """The fields of a workload for which a step was just asked."""
    return {"tries": 0, "trouble": "", "next_try_at": timezone.now() + FIRST_TRY}
