"""Requests of users: create, stop, run or delete a workload.

The sweep finds each request in the database, whatever else fails.
"""

import re
import uuid
from collections.abc import Sequence
from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils import timezone

from console.errors import Clash
from projects.models import Project, User
from workloads import runtime_limits
from workloads.asset_references import AssetReference, build_used_asset_rows
from workloads.journal import data_preparation, scaling, workload_writing
from workloads.journal.transactions import JournalTransaction, journal_transaction
from workloads.manifests import choose_target
from workloads.models import Attempt, Desired, Event, UsedAsset, Workload
from workloads.specs import Spec, decode_spec, encode_spec
from workloads.specs.spec_summary import summarize_spec
from workloads.specs.value_rules import MAX_NAME_LENGTH
from workloads.states import ACTIVE, RESTING, STARTING, TERMINAL, Status

_NUMBER_SUFFIX = re.compile(r"-[0-9]{1,6}$")


def create_workload(
    spec: Spec,
    *,
    project: Project,
    user: User | None,
    note: str = "",
    assets: Sequence[AssetReference] = (),
) -> Workload:
    """Create a workload in Creating, with its first attempt and event, made from these assets.

    `note` is added to the event's text. Raises Clash (field "name") when another workload of the
    project has the name; its text offers a free one.
    """
    totals = spec.totals
    workload = Workload(
        project=project,
        cluster_id=project.cluster_id,
        name=spec.name,
        architecture=spec.architecture.value,
        framework=spec.framework.value if spec.framework else "",
        job_kind=choose_target(spec, project.cluster.can).job_kind,
        spec=encode_spec(spec),
        submitted_by=user,
        preemptible=spec.is_preemptible,
        priority=spec.lifecycle.priority.value if spec.lifecycle.priority else "",
        requested_pods=totals.pods,
        pod_counts={},
        gpus_requested=totals.gpus,
        gpu_memory_requested=totals.gpu_memory,
        **summarize_spec(spec),
        auto_delete_seconds=spec.lifecycle.auto_delete_seconds,
        time_limit_seconds=project.time_limit,
        idle_limit_seconds=project.idle_limit,
    )
    workload.next_try_at = timezone.now() + workload_writing.STEP_CHECK_DELAY
    with journal_transaction() as journal_tx:
        workload.changed = journal_tx.position
        try:
            # A savepoint: after a failed INSERT, PostgreSQL refuses every other statement of the
            # transaction, also the query for the reason below.
            with transaction.atomic():
                workload.save(force_insert=True)
        except IntegrityError as error:
            if not Workload.objects.filter(
                project=project, name=spec.name, released_at=None
            ).exists():
                raise
            raise _build_name_clash(project, spec.name) from error
        UsedAsset.objects.bulk_create(build_used_asset_rows(assets, workload))
        Attempt.objects.create(
            workload=workload,
            number=1,
            status=workload.status,
            requested_by=user,
            requested_at=workload.created_at,
            **scaling.build_scale_fields(spec, workload.job_kind),
        )
        data_preparation.create_preparation(workload, 1, spec)
        text = f"It was submitted. {note}".strip()
        workload_writing.create_action_event(
            workload, workload_writing.SUBMITTED, text, user, new_status=workload.status
        )
        journal_tx.mark_changed(project.pk)
    return workload


def require_free_name(project: Project, name: str) -> None:
    """Raise Clash (field "name") where a workload of the project has this name. A query."""
    if Workload.objects.filter(project=project, name=name, released_at=None).exists():
        raise _build_name_clash(project, name)


def suggest_free_name(project: Project, name: str) -> str:
    """Return this name if it is free in the project, else a similar one."""
    stem = _NUMBER_SUFFIX.sub("", name)
    taken = set(
        Workload.objects.filter(
            project=project, name__startswith=stem[: MAX_NAME_LENGTH - 8], released_at=None
        ).values_list("name", flat=True)
    )
    if name not in taken:
        return name
    return next(
        candidate
        for number in range(2, len(taken) + 3)
        if (candidate := _add_number(stem, number)) not in taken
    )


def _add_number(stem: str, number: int) -> str:
    return f"{stem[: MAX_NAME_LENGTH - len(str(number)) - 1].rstrip('-')}-{number}"


def _build_name_clash(project: Project, name: str) -> Clash:
    other = suggest_free_name(project, name)
    return Clash(
        (
            f"The project {project.name} has a workload named {name} already. Choose another "
            f"name: {other} is free."
        ),
        field="name",
    )


def request_stop(
    workload_id: uuid.UUID,
    user: User | None,
    *,
    reason: str = "",
    event_reason: str = "Stop",
    attempt: int | None = None,
    runs_again: bool = False,
) -> bool:
    """Set the workload to Stopping, for the step `stop`.

    Return False when it is stopping or stopped already, or in another attempt than `attempt`. What
    others suspended and may resume is not stopped yet. With `runs_again` it is to run again once it
    has stopped; without, that is not wanted any more.
    `reason` begins with BY_ITSELF where Muster stops it: it stays the reason once it has stopped.
    Raises Clash when the workload has ended or is deleted.
    """
    with journal_transaction() as journal_tx:
        workload = Workload.objects.get(pk=workload_id)
        if attempt not in (None, workload.attempt):
            return False
        status = Status(workload.status)
        may_go_on = workload.may_be_resumed_by_others
        if (status is Status.STOPPED and not may_go_on) or (
            status is Status.STOPPING and workload.desired == Desired.STOPPED
        ):
            _update_run_due(journal_tx, workload, runs_again)
            return False
        if status is Status.DELETING:
            raise Clash(f"{workload.name} is being deleted, which also ends what it runs.")
        if status in TERMINAL:
            raise Clash(
                f"{workload.name} has ended ({status.label.lower()}): it holds nothing that "
                "could be freed."
            )
        new = Status.STOPPING
        values = {
            "desired": Desired.STOPPED,
            "is_run_due": runs_again,
            **workload_writing.build_due_step_fields(),
        }
        if new is not status:
            values |= {"status": new, "reason": reason, "status_at": timezone.now()}
        workload_writing.update_workload(journal_tx, workload, values)
        workload_writing.create_action_event(
            workload, event_reason, reason or "Stopping was asked for.", user, new_status=new
        )
    return True


def _update_run_due(journal_tx: JournalTransaction, workload: Workload, runs_again: bool) -> None:
    """Change whether a workload that stops runs again then."""
    if workload.is_run_due != runs_again:
        Workload.objects.filter(pk=workload.pk).update(
            is_run_due=runs_again, changed=journal_tx.position
        )
        journal_tx.mark_changed(workload.project_id)


def cancel_due_run(workload_id: uuid.UUID, why: str) -> None:
    """Record that a workload does not run again by itself; `why` says it in its history."""
    with journal_transaction() as journal_tx:
        workload = Workload.objects.filter(pk=workload_id, is_run_due=True).first()
        if workload is not None:
            _update_run_due(journal_tx, workload, runs_again=False)
            workload_writing.create_action_event(workload, "NotRunAgain", why, None)


def exclude_nodes(workload_id: uuid.UUID, nodes: Sequence[str], user: User | None) -> bool:
    """Set the nodes that the workload's next attempts do not run on. Return False for the same."""
    with journal_transaction() as journal_tx:
        workload = Workload.objects.get(pk=workload_id)
        if list(nodes) == workload.excluded_nodes:
            return False
        Workload.objects.filter(pk=workload_id).update(
            excluded_nodes=list(nodes), changed=journal_tx.position
        )
        listed = ", ".join(nodes)
        text = (
            f"From its next run on it does not use {listed}." if nodes else "It may use any node."
        )
        workload_writing.create_action_event(workload, "NodesExcluded", text, user)
        journal_tx.mark_changed(workload.project_id)
    return True


def record_warning(
    workload_id: uuid.UUID, event_reason: str, text: str, *, attempt: int, since: datetime | None
) -> bool:
    """Record a warning in the history, once after `since`; None means once ever.

    Return False when it was recorded before, or the workload is in another attempt.
    """
    with journal_transaction() as journal_tx:
        rows = Workload.objects.filter(pk=workload_id, attempt=attempt, desired=Desired.RUNNING)
        rows = rows.filter(limit_warned_at=None) if since is None else rows
        workload = rows.only("project", "status", "attempt").first()
        if workload is None or (
            since is not None
            and workload.events.filter(reason=event_reason, at__gte=since).exists()
        ):
            return False
        values = {"limit_warned_at": timezone.now()} if since is None else {}
        Workload.objects.filter(pk=workload_id).update(changed=journal_tx.position, **values)
        Event.objects.create(
            workload=workload,
            attempt=attempt,
            kind=Event.Kind.ACTION,
            is_warning=True,
            reason=event_reason,
            text=text,
            at=timezone.now(),
        )
        journal_tx.mark_changed(workload.project_id)
    return True


def request_run(workload_id: uuid.UUID, user: User | None) -> bool:
    """Set the workload to Resuming, as a new attempt, for the step `launch`.

    Return False when that was just requested. Raises Clash when it is not at rest.
    """
    with journal_transaction() as journal_tx:
        workload = Workload.objects.get(pk=workload_id)
        status = Status(workload.status)
        if status in STARTING:
            return False
        if status not in RESTING:
            raise Clash(_describe_why_not_run(workload.name, status))
        now, number = timezone.now(), workload.attempt + 1
        spec = decode_spec(workload.spec)
        totals = spec.totals
        job_kind = choose_target(spec, workload.cluster.can).job_kind
        values = {
            "job_kind": job_kind,
            "status": Status.RESUMING,
            "reason": "",
            "status_at": now,
            "desired": Desired.RUNNING,
            "attempt": number,
            "running_pods": 0,
            "requested_pods": totals.pods,
            **workload_writing.NOTHING_ALLOCATED,
            "ended": "",
            "started_at": None,
            "ended_at": None,
            "ran_seconds": runtime_limits.load_running_seconds([workload], now)[workload.pk],
            "job": None,
            "job_uid": "",
            "pod_group": None,
            "data_job": None,
            "idle_since": None,
            "is_use_known": False,
            "disrupted_at": None,
            "is_run_due": False,
            **workload_writing.build_due_step_fields(),
        }
        workload_writing.update_workload(journal_tx, workload, values, update_attempt=False)
        Attempt.objects.create(
            workload=workload,
            number=number,
            status=Status.RESUMING,
            requested_by=user,
            requested_at=now,
            **scaling.build_scale_fields(spec, job_kind),
        )
        data_preparation.create_preparation(workload, number, spec)
        workload_writing.create_action_event(
            workload,
            "Run",
            f"Running was asked for: attempt {number}.",
            user,
            new_status=Status.RESUMING,
            attempt=number,
        )
    return True


def _describe_why_not_run(name: str, status: Status) -> str:
    if status in ACTIVE:
        return (
            f"{name} is active already ({status.label.lower()}). Stop it first to run it anew, or "
            "make a copy."
        )
    if status is Status.STOPPING:
        return f"{name} is still stopping. Run it once it has stopped."
    return f"{name} is being deleted. Make a copy to run it again."


def request_deletion(workload_id: uuid.UUID, user: User | None) -> bool:
    """Set the workload to Deleting, for the step `remove`. Return False when it is already."""
    with journal_transaction() as journal_tx:
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
            "is_run_due": False,
            **workload_writing.build_due_step_fields(),
        }
        # An attempt that has come to its end keeps it: only its workload is deleted.
        workload_writing.update_workload(
            journal_tx, workload, values, update_attempt=status not in RESTING
        )
        workload_writing.create_action_event(
            workload, "Delete", "Deletion was asked for.", user, new_status=Status.DELETING
        )
    return True
