"""What people ask for: a new workload, to stop it, run it again, delete it. The sweep finds it,
whatever else fails.
"""

import re
import uuid
from collections.abc import Sequence
from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils import timezone

from console.errors import Clash
from projects.models import Project, User
from workloads import limits
from workloads.asset_uses import Used, rows_of
from workloads.journal import writing
from workloads.journal.turns import turn
from workloads.manifests import target
from workloads.models import Attempt, Desired, Event, UsedAsset, Workload
from workloads.specs import Spec, from_json, to_json
from workloads.specs.rules import LONGEST_NAME
from workloads.states import ACTIVE, RESTING, STARTING, Status

_COUNTED = re.compile(r"-[0-9]{1,6}$")


def opened(
    spec: Spec, *, project: Project, by: User | None, note: str = "", assets: Sequence[Used] = ()
) -> Workload:
    """A new workload, in Creating, with its first attempt and event, made from these assets. `note`
    is added to the event's text.

    Raises Clash (field "name") when another workload of the project has the name; the text offers
    one that is free.
    """
    totals = spec.totals
    workload = Workload(
        project=project,
        cluster_id=project.cluster_id,
        name=spec.name,
        architecture=spec.architecture.value,
        framework=spec.framework.value if spec.framework else "",
        job_kind=target(spec, project.cluster.can).job_kind,
        spec=to_json(spec),
        submitted_by=by,
        preemptible=spec.is_preemptible,
        priority=spec.lifecycle.priority.value if spec.lifecycle.priority else "",
        requested_pods=totals.pods,
        gpus_requested=totals.gpus,
        gpu_memory_requested=totals.gpu_memory,
        auto_delete_seconds=spec.lifecycle.auto_delete_seconds,
        time_limit_seconds=project.time_limit,
        idle_limit_seconds=project.idle_limit,
    )
    workload.next_try_at = timezone.now() + writing.FIRST_TRY
    with turn() as mine:
        workload.changed = mine.position
        try:
            with transaction.atomic():
                workload.save(force_insert=True)
        except IntegrityError as error:
            if not Workload.objects.filter(
                project=project, name=spec.name, released_at=None
            ).exists():
                raise
            raise _taken(project, spec.name) from error
        UsedAsset.objects.bulk_create(rows_of(assets, workload))
        Attempt.objects.create(
            workload=workload,
            number=1,
            status=workload.status,
            asked_by=by,
            asked_at=workload.created_at,
        )
        text = f"It was submitted. {note}".strip()
        writing.asked(workload, writing.SUBMITTED, text, by, new=workload.status)
        mine.changed(project.pk)
    return workload


def free_name(project: Project, name: str) -> str:
    """A name like this one that no workload of the project has now; this one, if it is free."""
    stem = _COUNTED.sub("", name)
    taken = set(
        Workload.objects.filter(
            project=project, name__startswith=stem[: LONGEST_NAME - 8], released_at=None
        ).values_list("name", flat=True)
    )
    if name not in taken:
        return name
    return next(
        found
        for number in range(2, len(taken) + 3)
        if (found := _numbered(stem, number)) not in taken
    )


def _numbered(stem: str, number: int) -> str:
    return f"{stem[: LONGEST_NAME - len(str(number)) - 1].rstrip('-')}-{number}"


def _taken(project: Project, name: str) -> Clash:
    other = free_name(project, name)
    return Clash(
        (
            f"The project {project.name} has a workload named {name} already. Choose another "
            f"name: {other} is free."
        ),
        field="name",
    )


def asked_to_stop(
    workload_id: uuid.UUID,
    by: User | None,
    *,
    why: str = "",
    what: str = "Stop",
    attempt: int | None = None,
) -> bool:
    """Stopping, for the step `stop` to do. False when it is stopping or stopped already, or is in
    another attempt than `attempt`.

    `why` begins with BY_ITSELF where Muster does it by itself: that stays its reason once it has
    stopped. Raises Clash when it has ended or is deleted.
    """
    with turn() as mine:
        workload = Workload.objects.get(pk=workload_id)
        if attempt not in (None, workload.attempt):
            return False
        status = Status(workload.status)
        if status is Status.STOPPED or (
            status is Status.STOPPING and workload.desired == Desired.STOPPED
        ):
            return False
        if status is Status.DELETING:
            raise Clash(f"{workload.name} is being deleted, which also ends what it runs.")
        if status in RESTING:
            raise Clash(
                f"{workload.name} has ended ({status.label.lower()}): it holds nothing that "
                "could be freed."
            )
        new = Status.STOPPING
        values = {"desired": Desired.STOPPED, **writing.soon()}
        if new is not status:
            values |= {"status": new, "reason": why, "status_at": timezone.now()}
        writing.write(mine, workload, values)
        writing.asked(workload, what, why or "Stopping was asked for.", by, new=new)
    return True


def warned(
    workload_id: uuid.UUID, what: str, text: str, *, attempt: int, since: datetime | None
) -> bool:
    """A warning in the history, given once `since` a moment; None is once ever. False when it was
    given, or it is in another attempt.
    """
    with turn() as mine:
        rows = Workload.objects.filter(pk=workload_id, attempt=attempt, desired=Desired.RUNNING)
        rows = rows.filter(limit_warned_at=None) if since is None else rows
        workload = rows.only("project", "status", "attempt").first()
        if workload is None or (
            since is not None and workload.events.filter(reason=what, at__gte=since).exists()
        ):
            return False
        values = {"limit_warned_at": timezone.now()} if since is None else {}
        Workload.objects.filter(pk=workload_id).update(changed=mine.position, **values)
        Event.objects.create(
            workload=workload,
            attempt=attempt,
            kind=Event.Kind.ACTION,
            is_warning=True,
            reason=what,
            text=text,
            at=timezone.now(),
        )
        mine.changed(workload.project_id)
    return True


def asked_to_run(workload_id: uuid.UUID, by: User | None) -> bool:
    """Resuming, as a new attempt, for the step `launch` to do. False when it was just asked for.
    Raises Clash when it is not at rest.
    """
    with turn() as mine:
        workload = Workload.objects.get(pk=workload_id)
        status = Status(workload.status)
        if status in STARTING:
            return False
        if status not in RESTING:
            raise Clash(_why_not_run(workload.name, status))
        now, number = timezone.now(), workload.attempt + 1
        spec = from_json(workload.spec)
        totals = spec.totals
        values = {
            "job_kind": target(spec, workload.cluster.can).job_kind,
            "status": Status.RESUMING,
            "reason": "",
            "status_at": now,
            "desired": Desired.RUNNING,
            "attempt": number,
            "running_pods": 0,
            "requested_pods": totals.pods,
            "gpus_allocated": 0,
            "ended": "",
            "started_at": None,
            "ended_at": None,
            "ran_seconds": limits.ran([workload], now)[workload.pk],
            "job": None,
            "job_uid": "",
            "pod_group": None,
            "idle_since": None,
            "use_known": False,
            **writing.soon(),
        }
        writing.write(mine, workload, values, mirror=False)
        Attempt.objects.create(
            workload=workload, number=number, status=Status.RESUMING, asked_by=by, asked_at=now
        )
        writing.asked(
            workload,
            "Run",
            f"Running was asked for: attempt {number}.",
            by,
            new=Status.RESUMING,
            attempt=number,
        )
    return True


def _why_not_run(name: str, status: Status) -> str:
    if status in ACTIVE:
        return (
            f"{name} is active already ({status.label.lower()}). Stop it first to run it anew, or "
            "make a copy."
        )
    if status is Status.STOPPING:
        return f"{name} is still stopping. Run it once it has stopped."
    return f"{name} is being deleted. Make a copy to run it again."


def asked_to_delete(workload_id: uuid.UUID, by: User | None) -> bool:
    """Deleting, for the step `remove` to do. False when that was asked for already."""
    with turn() as mine:
        workload = Workload.objects.get(pk=workload_id)
        status = Status(workload.status)
        if status is Status.DELETING:
            return False
        now = timezone.now()
        values = {
            "status": Status.DELETING,
            "reason": "",
            "status_at": now,
            "desired": Desired.DELETED,
            "deleted_at": now,
            **writing.soon(),
        }
        # An attempt that has come to its end keeps it: only its workload is deleted.
        writing.write(mine, workload, values, mirror=status not in RESTING)
        writing.asked(workload, "Delete", "Deletion was asked for.", by, new=Status.DELETING)
    return True
