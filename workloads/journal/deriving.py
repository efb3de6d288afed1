"""What follows for a workload from its objects: the counts, the ranks, the status, and the event
that tells of it.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from workloads.journal.applying import gpus
from workloads.journal.cases import Case
from workloads.journal.telling import SKEW, moment, refined
from workloads.models import Desired, Event, Pod
from workloads.observed import LEADERS, Object, holds, own, part, rank_of, view
from workloads.states import (
    BY_ITSELF,
    RESTING,
    STARTING,
    TERMINAL,
    Derived,
    Status,
    derive,
    may_move,
)

PREEMPTED = "It was preempted and waits for its turn again."
REQUEUED = "Its pods lost their places, and it waits for its turn again."


def follow_up(case: Case, now: datetime) -> Event | None:
    """Set what follows on the case; the event of its change of status, if there is one."""
    workload, job = case.workload, case.job
    before = Status(workload.status)
    live = case.live()
    objects = [pod.data for pod in live]
    if job is not None:
        mine = {id(each) for each in own(job, objects)}
        live = [pod for pod in live if id(pod.data) in mine]
    told = derive(job, objects, case["pod_group"], before=_so_far(case, before))
    if (
        before is Status.STOPPING
        and workload.reason.startswith(BY_ITSELF)
        and told.status in (Status.STOPPING, Status.STOPPED)
    ):
        # Why it is stopped matters more than how far that is.
        told = replace(told, reason=workload.reason)
    placed = (
        pod.gpus
        for pod in live
        if pod.gpus and pod.node and pod.phase not in ("Succeeded", "Failed")
    )
    case.become(
        running_pods=sum(pod.is_ready for pod in live), gpus_allocated=gpus(sum(placed, Decimal(0)))
    )
    if job is not None and before is not Status.DELETING:
        case.become(requested_pods=max(0, min(told.requested, (1 << 31) - 1)))
    _rank(case, live, _has_master(job))
    if (
        before is Status.DELETING
        and job is None
        and not any(pod.vanished_at is None for pod in case.pods.values())
    ):
        # The step that deletes may look at once whether all is gone.
        case.become(next_try_at=min(workload.next_try_at or now, now))
    if told.status is not before and may_move(before, told.status):
        return _moved(case, told, live, now)
    if before in TERMINAL:
        case.become(ended=told.ended or workload.ended)
    elif (
        before not in RESTING
        and told.status is before
        and (told.reason or before is not Status.STOPPING)
    ):
        # Why it began to stop is still why.
        case.become(reason=told.reason)
    return None


def _so_far(case: Case, before: Status) -> Status:
    """An attempt whose job was there and is not any more has begun, however soon that was; and it
    only stops where that was asked for.
    """
    is_asked = case.workload.desired != Desired.RUNNING
    is_gone = case.job is None and case["job_uid"]
    return (
        Status.PENDING
        if is_gone and (before in STARTING or (before is Status.STOPPING and not is_asked))
        else before
    )


def _moved(case: Case, told: Derived, live: Sequence[Pod], now: datetime) -> Event:
    workload, new = case.workload, told.status
    case.become(status=new.value, reason=told.reason, status_at=now)
    if new in (Status.RUNNING, Status.DEGRADED) and workload.started_at is None:
        case.become(started_at=_between(workload.status_at, _up_since(case), now))
    if new in RESTING:
        if workload.started_at is None and new in TERMINAL:
            first = min((pod.started_at for pod in live if pod.started_at), default=None)
            case.become(started_at=_between(workload.status_at, first, now) if first else None)
        ended = (
            moment(part(case.job, "status").get("completionTime"), case.ahead)
            if new in TERMINAL
            else None
        )
        case.become(
            ended_at=_between(case["started_at"] or workload.status_at, ended, now),
            ended=told.ended,
        )
        case.to |= {"next_try_at": None, "tries": 0, "trouble": ""}
    if new is Status.STOPPED:
        case.become(desired=Desired.STOPPED.value)
    reason, text = "", told.reason
    if told.requeued:
        preempted = any(
            view(pod.data).preempted
            for pod in case.pods.values()
            if pod.attempt == workload.attempt
        )
        reason, text = ("Preempted", PREEMPTED) if preempted else ("Requeued", REQUEUED)
        text = (
            f"{text} {told.reason}"
            if told.reason and told.reason != "Its pods lost their places."
            else text
        )
    return Event(
        workload=workload,
        attempt=workload.attempt,
        at=now,
        kind=Event.Kind.STATUS,
        is_warning=new in (Status.FAILED, Status.DEGRADED) or told.requeued,
        old=workload.status,
        new=new.value,
        reason=reason,
        text=text,
    )


def _between(earliest: datetime, at: datetime | None, now: datetime) -> datetime:
    """The cluster's moment as far as ours allow it; where its clock is far behind ours that is when
    we heard of it.
    """
    return now if at is None or at < earliest - SKEW else min(max(earliest, refined(at, now)), now)


def _up_since(case: Case) -> datetime | None:
    """When the last of the pods that are up became so."""
    told = (holds(pod.data, "Ready") for pod in case.live() if pod.is_ready)
    return max(
        (
            at
            for each in told
            if each and (at := moment(each.get("lastTransitionTime"), case.ahead))
        ),
        default=None,
    )


def _has_master(job: Object | None) -> bool:
    """Whether the job has a pod that leads, before that pod is there."""
    kinds = [
        kind
        for name in part(job, "spec")
        if name.endswith("ReplicaSpecs")
        for kind in part(job, "spec", name)
    ]
    return any(str(kind).lower() in LEADERS for kind in kinds)


def _rank(case: Case, pods: Sequence[Pod], has_master: bool) -> None:
    has_master = has_master or any(pod.role in LEADERS for pod in pods)
    for pod in pods:
        rank = rank_of(pod.role, pod.index, has_master=has_master)
        if pod.rank != rank:
            pod.rank = rank
            case.written.add(pod.uid)
