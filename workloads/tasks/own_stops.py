"""Stops that Muster requests by itself, because a limit or a setting says so."""

from django.db import transaction

from console.errors import Clash
from projects import audit
from projects.scopes import project_scope
from workloads import journal
from workloads.models import Workload
from workloads.states import BY_ITSELF
from workloads.tasks.teardown import stop


def stop_workload(
    workload: Workload, event_reason: str, why: str, *, runs_again: bool = False
) -> bool:
    """Request the stop on behalf of Muster. `why` follows "Stopped: ".

    With `runs_again` it is to run again once it has stopped. Return False when somebody requested
    the stop before, or the workload has ended.
    """
    reason = f"{BY_ITSELF}{why}"
    try:
        with transaction.atomic():
            is_requested = journal.request_stop(
                workload.pk,
                None,
                reason=reason,
                event_reason=event_reason,
                attempt=workload.attempt,
                runs_again=runs_again,
            )
            if is_requested:
                audit.record(
                    audit.Event.STOP,
                    "workload",
                    by=None,
                    id=workload.pk,
                    name=workload.name,
                    scope=project_scope(workload.project_id),
                    text=reason,
                )
    except Clash:
        # The workload has ended, or is being deleted.
        return False
    if is_requested:
        stop.enqueue(str(workload.pk))
    return is_requested
