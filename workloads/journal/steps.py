"""How the steps of a workload went: made in the cluster, refused by it, put off, let go of."""

import uuid
from datetime import timedelta
from typing import Any

from django.utils import timezone

from workloads.journal import writing
from workloads.journal.folding import fold
from workloads.journal.seeing import Seen, things
from workloads.journal.turns import Turn, turn
from workloads.models import Desired, Event, Pod, Workload
from workloads.observed import Object, plain
from workloads.states import LEAVING, STARTING, Status


def launched(workload_id: uuid.UUID, attempt: int, job: Object) -> bool:
    """The attempt's objects are in the cluster, and this is its job. False when there is another
    attempt by now.
    """
    seen = list(things([Seen("job", job)]))
    with turn() as mine:
        workload = Workload.objects.only("cluster", "project", "attempt", "desired").get(
            pk=workload_id
        )
        if workload.attempt != attempt:
            return False
        fold(mine, workload.cluster_id, seen)
        if workload.desired == Desired.RUNNING:
            _settle(mine, workload)
    return True


def refused(workload_id: uuid.UUID, attempt: int, reason: str) -> bool:
    """The cluster does not take the attempt's objects: Failed, with its reason. False when the
    attempt is not starting (any more).
    """
    with turn() as mine:
        workload = Workload.objects.get(pk=workload_id)
        if workload.attempt != attempt or workload.status not in STARTING:
            return False
        now, text = timezone.now(), plain(reason)
        values = {"status": Status.FAILED, "reason": text, "status_at": now, "ended_at": now}
        writing.write(mine, workload, {**values, "next_try_at": None, "tries": 0, "trouble": ""})
        _tell(workload, Status.FAILED, "Refused", text, is_warning=True)
    return True


def delayed(workload_id: uuid.UUID, why: str, seconds: float) -> int:
    """The step that is wanted did not work this time; the sweep asks for it again in so many
    seconds. Gives how often that was so.

    Where the workload has come to where it is wanted meanwhile, that is counted and nothing else:
    nothing is outstanding, and no trouble.
    """
    with turn() as mine:
        rows = Workload.objects.filter(pk=workload_id)
        workload = rows.only(
            "project", "status", "desired", "job_uid", "released_at", "tries", "trouble"
        ).get()
        tries: int = workload.tries + 1
        to: dict[str, Any] = {"tries": tries}
        if _is_on_its_way(workload):
            to |= {
                "trouble": plain(why),
                "next_try_at": timezone.now() + timedelta(seconds=seconds),
            }
            if to["trouble"] != workload.trouble:
                to["changed"] = mine.position
                mine.changed(workload.project_id)
        rows.update(**to)
    return tries


def _is_on_its_way(workload: Workload) -> bool:
    status = Status(workload.status)
    return (status in LEAVING and workload.released_at is None) or (
        status in STARTING and not workload.job_uid
    )


def released(workload_id: uuid.UUID) -> bool:
    """The cluster has let go of all objects of a workload that is being deleted: its name is free.
    False when it was so already.
    """
    with turn() as mine:
        workload = Workload.objects.get(pk=workload_id)
        if workload.status != Status.DELETING or workload.released_at is not None:
            return False
        now = timezone.now()
        values = {
            "released_at": now,
            "running_pods": 0,
            "gpus_allocated": 0,
            "job": None,
            "pod_group": None,
        }
        if workload.started_at is not None and workload.ended_at is None:
            values["ended_at"] = now
        writing.write(mine, workload, {**values, "next_try_at": None, "tries": 0, "trouble": ""})
        Pod.objects.filter(workload=workload, vanished_at=None).update(vanished_at=now)
        _tell(workload, None, "Deleted", "The cluster has let go of all its objects.")
    return True


def _settle(turn: Turn, workload: Workload) -> None:
    """Nothing is outstanding any more."""
    Workload.objects.filter(pk=workload.pk).update(
        tries=0, trouble="", next_try_at=None, changed=turn.position
    )
    turn.changed(workload.project_id)


def _tell(
    workload: Workload, new: Status | None, reason: str, text: str, *, is_warning: bool = False
) -> None:
    Event.objects.create(
        workload=workload,
        attempt=workload.attempt,
        kind=Event.Kind.STATUS if new else Event.Kind.ACTION,
        is_warning=is_warning,
        old=workload.status if new else "",
        new=new or "",
        reason=reason,
        text=text,
    )
