"""Derivation of a workload's counts, ranks, status and event from its objects."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from clusters.job_kinds import RANK_0_ROLES
from workloads.journal.cluster_events import MAX_CLOCK_LAG, parse_moment, refine_moment
from workloads.journal.object_merging import clamp_gpus
from workloads.journal.workload_updates import WorkloadUpdate
from workloads.kube_objects import (
    Object,
    build_pod_view,
    compute_rank,
    filter_own_pods,
    find_true_condition,
    nested_dict,
)
from workloads.models import Desired, Event, Pod
from workloads.states import (
    BY_ITSELF,
    RESTING,
    STARTING,
    TERMINAL,
    DerivedStatus,
    Status,
    can_move,
    derive_status,
)

PREEMPTED = "It was preempted and waits for its turn again."
REQUEUED = "Its pods lost their places, and it waits for its turn again."


def apply_derived_status(update: WorkloadUpdate, now: datetime) -> Event | None:
    """Set the values that follow from the objects. Return the event of a status change, if any."""
    workload, job = update.workload, update.job
    before = Status(workload.status)
    live = update.live_pods()
    objects = [pod.data for pod in live]
    if job is not None:
        own_ids = {id(each) for each in filter_own_pods(job, objects)}
        live = [pod for pod in live if id(pod.data) in own_ids]
    derived = derive_status(
        job, objects, update["pod_group"], before=_find_status_before(update, before)
    )
    if (
        before is Status.STOPPING
        and workload.reason.startswith(BY_ITSELF)
        and derived.status in (Status.STOPPING, Status.STOPPED)
    ):
        # The reason for the stop matters more than its progress.
        derived = replace(derived, reason=workload.reason)
    placed = (
        pod.gpus
        for pod in live
        if pod.gpus and pod.node and pod.phase not in ("Succeeded", "Failed")
    )
    update.set_values(
        running_pods=sum(pod.is_ready for pod in live),
        gpus_allocated=clamp_gpus(sum(placed, Decimal(0))),
    )
    if job is not None and before is not Status.DELETING:
        update.set_values(requested_pods=max(0, min(derived.requested, (1 << 31) - 1)))
    _assign_ranks(update, live, _has_master(job))
    if (
        before is Status.DELETING
        and job is None
        and not any(pod.vanished_at is None for pod in update.pods.values())
    ):
        # The step `remove` may check at once whether everything is gone.
        update.set_values(next_try_at=min(workload.next_try_at or now, now))
    if derived.status is not before and can_move(before, derived.status):
        return _apply_status_change(update, derived, live, now)
    if before in TERMINAL:
        update.set_values(ended=derived.ended or workload.ended)
    elif (
        before not in RESTING
        and derived.status is before
        and (derived.reason or before is not Status.STOPPING)
    ):
        # While it stops without a reason of its own, the reason that it began with stays.
        update.set_values(reason=derived.reason)
    return None


def _find_status_before(update: WorkloadUpdate, before: Status) -> Status:
    """Return the status that the derivation starts from.

    An attempt whose job existed and is gone has begun, however short that was; and it only stops
    where stopping was requested.
    """
    is_to_end = update.workload.desired != Desired.RUNNING
    is_gone = update.job is None and update["job_uid"]
    return (
        Status.PENDING
        if is_gone and (before in STARTING or (before is Status.STOPPING and not is_to_end))
        else before
    )


def _apply_status_change(
    update: WorkloadUpdate, derived: DerivedStatus, live: Sequence[Pod], now: datetime
) -> Event:
    workload, new = update.workload, derived.status
    update.set_values(status=new.value, reason=derived.reason, status_at=now)
    if new in (Status.RUNNING, Status.DEGRADED) and workload.started_at is None:
        update.set_values(
            started_at=_clamp_moment(workload.status_at, _find_last_ready_moment(update), now)
        )
    if new in RESTING:
        if workload.started_at is None and new in TERMINAL:
            first_started_at = min((pod.started_at for pod in live if pod.started_at), default=None)
            update.set_values(
                started_at=_clamp_moment(workload.status_at, first_started_at, now)
                if first_started_at
                else None
            )
        ended = (
            parse_moment(nested_dict(update.job, "status").get("completionTime"), update.clock_lead)
            if new in TERMINAL
            else None
        )
        update.set_values(
            ended_at=_clamp_moment(update["started_at"] or workload.status_at, ended, now),
            ended=derived.ended,
        )
        update.new_values |= {"next_try_at": None, "tries": 0, "trouble": ""}
    if new is Status.STOPPED:
        update.set_values(desired=Desired.STOPPED.value)
    reason, text = "", derived.reason
    if derived.requeued:
        preempted = any(
            build_pod_view(pod.data).preempted
            for pod in update.pods.values()
            if pod.attempt == workload.attempt
        )
        reason, text = ("Preempted", PREEMPTED) if preempted else ("Requeued", REQUEUED)
        text = (
            f"{text} {derived.reason}"
            if derived.reason and derived.reason != "Its pods lost their places."
            else text
        )
    return Event(
        workload=workload,
        attempt=workload.attempt,
        at=now,
        kind=Event.Kind.STATUS,
        is_warning=new in (Status.FAILED, Status.DEGRADED) or derived.requeued,
        old=workload.status,
        new=new.value,
        reason=reason,
        text=text,
    )


def _clamp_moment(earliest: datetime, at: datetime | None, now: datetime) -> datetime:
    """Limit the cluster's moment to the range that our own moments allow.

    Where the cluster's clock is far behind ours, the result is `now`, when we heard of it.
    """
    return (
        now
        if at is None or at < earliest - MAX_CLOCK_LAG
        else min(max(earliest, refine_moment(at, now)), now)
    )


def _find_last_ready_moment(update: WorkloadUpdate) -> datetime | None:
    """Return when the last of the ready pods became ready."""
    conditions = (
        find_true_condition(pod.data, "Ready") for pod in update.live_pods() if pod.is_ready
    )
    return max(
        (
            at
            for condition in conditions
            if condition
            and (at := parse_moment(condition.get("lastTransitionTime"), update.clock_lead))
        ),
        default=None,
    )


def _has_master(job: Object | None) -> bool:
    """Return whether the job will have a leading pod, even before that pod exists."""
    kinds = [
        kind
        for name in nested_dict(job, "spec")
        if name.endswith("ReplicaSpecs")
        for kind in nested_dict(job, "spec", name)
    ]
    return any(str(kind).lower() in RANK_0_ROLES for kind in kinds)


def _assign_ranks(update: WorkloadUpdate, pods: Sequence[Pod], has_master: bool) -> None:
    has_master = has_master or any(pod.role in RANK_0_ROLES for pod in pods)
    for pod in pods:
        rank = compute_rank(pod.role, pod.index, has_master=has_master)
        if pod.rank != rank:
            pod.rank = rank
            update.changed_pod_uids.add(pod.uid)
