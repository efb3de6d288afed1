"""Derivation of a workload's counts, status and event from its objects."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import F, Max, Min, OuterRef, Q, QuerySet, Subquery

from workloads.journal.cluster_events import MAX_CLOCK_LAG, parse_moment, refine_moment
from workloads.journal.object_merging import clamp_amount, clamp_bytes
from workloads.journal.workload_updates import WorkloadUpdate
from workloads.kube_objects import DATA_WORKER, nested_dict
from workloads.models import Desired, Event, Pod, Workload
from workloads.pod_counts import ExamplePod, Standing
from workloads.pod_views import describe_pod
from workloads.states import (
    BY_ITSELF,
    RESTING,
    STARTING,
    TERMINAL,
    Status,
    can_move,
    was_suspended_by_others,
)
from workloads.status_rules import (
    DerivedStatus,
    FindExample,
    derive_from_counts,
    is_suspended,
    is_suspension_over,
)

_HAS_BEGUN = (Status.RUNNING, Status.DEGRADED, *TERMINAL)
_EXAMPLE_FIELDS = ("workload", "standing", "role", "index", "name", "status", "reason")
PREEMPTED = "It was preempted and waits for its turn again."
RESUMED = "Its job was resumed in the cluster, and not by Muster."
REQUEUED = "Its pods lost their places, and it waits for its turn again."


def apply_derived_statuses(updates: Iterable[WorkloadUpdate], now: datetime) -> list[Event]:
    """Set the values that follow from the objects. Return the events of status changes.

    The pods' rows are written before: the pods that reasons name, and the moments of a change, are
    read from them, with three queries at most.
    """
    affected = [(each, *_derive_naming_pods(each)) for each in updates if each.affects_status]
    examples = _load_example_pods(
        [(update, standings) for update, _, standings in affected if standings]
    )
    changes = []
    for update, derived, standings in affected:
        final = _derive(update, examples.get(update.workload.pk, {}).get) if standings else derived
        if (changed := _apply_derived_values(update, final, now)) is not None:
            changes.append((update, changed))
    begun = [update for update, derived in changes if derived.status in _HAS_BEGUN]
    moments = _load_pod_moments(begun)
    return [
        _apply_status_change(update, derived, moments.get(update.workload.pk, _NO_MOMENTS), now)
        for update, derived in changes
    ]


def _derive_naming_pods(update: WorkloadUpdate) -> tuple[DerivedStatus, set[Standing]]:
    """Derive the status without examples. Return also of which standings it needs one."""
    needed: set[Standing] = set()

    def find_example(standing: Standing) -> None:
        needed.add(standing)

    return _derive(update, find_example), needed


def _derive(update: WorkloadUpdate, find_example: FindExample) -> DerivedStatus:
    workload = update.workload
    assert update.counts is not None
    before = Status(workload.status)
    derived = derive_from_counts(
        update.job,
        update.counts,
        update["pod_group"],
        before=find_status_before(update, before),
        find_example=find_example,
    )
    if (
        before is Status.STOPPING
        and workload.reason.startswith(BY_ITSELF)
        and derived.status in (Status.STOPPING, Status.STOPPED)
    ):
        # The reason for the stop matters more than its progress.
        return replace(derived, reason=workload.reason)
    if before is derived.status is Status.PREPARING:
        # How far the data is, its data workers say: the journal's other way in.
        return replace(derived, reason=workload.reason)
    return derived


def _load_example_pods(
    needed: Sequence[tuple[WorkloadUpdate, set[Standing]]],
) -> dict[uuid.UUID, dict[Standing, ExamplePod]]:
    """Load the pod that a reason names for each of these standings, by workload."""
    if not needed:
        return {}
    standings = set[Standing]().union(*(each for _, each in needed))
    firsts = {
        f"{standing.value}_pod": Subquery(_order_examples(standing).values("pk")[:1])
        for standing in standings
    }
    rows = Workload.objects.filter(pk__in=[update.workload.pk for update, _ in needed])
    keys = {key for row in rows.order_by().annotate(**firsts).values_list(*firsts) for key in row}
    examples: dict[uuid.UUID, dict[Standing, ExamplePod]] = {}
    for pod in Pod.objects.filter(pk__in=keys - {None}).order_by().only(*_EXAMPLE_FIELDS):
        examples.setdefault(pod.workload_id, {})[Standing(pod.standing)] = ExamplePod(
            describe_pod(pod.role, pod.index, pod.name), pod.status, pod.reason
        )
    return examples


def _order_examples(standing: Standing) -> QuerySet[Pod]:
    """Return the pods of a standing of an outer workload; the one that a reason names is first.

    That is the pod of the lowest rank. Of failed pods without a rank, as of a batch Job that tries
    again, it is the newest: the last try decided.
    """
    pods = Pod.objects.filter(
        workload=OuterRef("pk"),
        attempt=OuterRef("attempt"),
        vanished_at=None,
        standing=standing.value,
    ).exclude(role=DATA_WORKER)
    pods = pods.exclude(reason="") if standing is Standing.UNSCHEDULABLE else pods
    newest_first = standing is Standing.FAILED
    # A pod and the one that replaces it may have all but their uids in common.
    return pods.order_by(
        F("rank").asc(nulls_last=True),
        "-created_at" if newest_first else "created_at",
        "name",
        "uid",
    )


def _apply_derived_values(
    update: WorkloadUpdate, derived: DerivedStatus, now: datetime
) -> DerivedStatus | None:
    """Set the values that follow while the status stays. Return a new status that is allowed."""
    workload, job, counts = update.workload, update.job, update.counts
    assert counts is not None
    before = Status(workload.status)
    update.set_values(
        running_pods=counts.count(Standing.READY),
        gpus_allocated=clamp_amount(counts.gpus),
        cpu_allocated=clamp_amount(counts.cores),
        memory_allocated=clamp_bytes(counts.memory),
    )
    if job is not None and before is not Status.DELETING:
        update.set_values(requested_pods=max(0, min(derived.requested, (1 << 31) - 1)))
    is_ending = before is Status.DELETING or (
        before is Status.STOPPING and workload.desired == Desired.STOPPED
    )
    if is_ending and job is None and not counts.existing:
        # The step `stop` or `remove` may check at once whether everything is gone.
        update.set_values(next_try_at=min(workload.next_try_at or now, now))
    if derived.status is not before and can_move(before, derived.status):
        return derived
    if before is Status.STOPPED and job is None:
        # Nobody can resume it any more, and what it left is removed.
        update.set_values(desired=Desired.STOPPED.value)
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


def find_status_before(update: WorkloadUpdate, before: Status) -> Status:
    """Return the status that the derivation starts from.

    An attempt whose job existed and is gone has begun, however short that was; and it only stops
    where stopping was requested. One whose job others suspended waits again once that is over.
    """
    if is_suspension_over(update.job, before, update.workload.reason):
        return Status.PENDING
    is_to_end = update.workload.desired != Desired.RUNNING
    is_gone = update.job is None and update["job_uid"]
    return (
        Status.PENDING
        if is_gone and (before in STARTING or (before is Status.STOPPING and not is_to_end))
        else before
    )


@dataclass(frozen=True, slots=True)
class _PodMoments:
    """When the attempt's existing pods first started, and when the last of them became ready."""

    first_started_at: datetime | None = None
    last_ready_at: datetime | None = None


_NO_MOMENTS = _PodMoments()


def _load_pod_moments(updates: Sequence[WorkloadUpdate]) -> dict[uuid.UUID, _PodMoments]:
    """Load the moments of those attempts that have not begun by their row."""
    ids = [each.workload.pk for each in updates if each.workload.started_at is None]
    if not ids:
        return {}
    pods = Pod.objects.filter(workload__in=ids, attempt=F("workload__attempt"), vanished_at=None)
    pods = pods.exclude(standing=Standing.FOREIGN.value).exclude(role=DATA_WORKER)
    moments = (
        pods.order_by()
        .values_list("workload")
        .annotate(first=Min("started_at"), last=Max("ready_at", filter=Q(is_ready=True)))
    )
    return {pk: _PodMoments(first, last) for pk, first, last in moments}


def _apply_status_change(
    update: WorkloadUpdate, derived: DerivedStatus, moments: _PodMoments, now: datetime
) -> Event:
    workload, new = update.workload, derived.status
    update.set_values(status=new.value, reason=derived.reason, status_at=now)
    if new in (Status.RUNNING, Status.DEGRADED) and workload.started_at is None:
        update.set_values(started_at=_clamp_moment(workload.status_at, moments.last_ready_at, now))
    if new in RESTING:
        if workload.started_at is None and new in TERMINAL:
            first = moments.first_started_at
            update.set_values(
                started_at=_clamp_moment(workload.status_at, first, now) if first else None
            )
        ended = (
            parse_moment(nested_dict(update.job, "status").get("completionTime"), update.clock_lead)
            if new in TERMINAL
            else None
        )
        ended_at = _clamp_moment(update["started_at"] or workload.status_at, ended, now)
        if new is Status.STOPPED and workload.ended_at is not None:
            # A person stopped what others had suspended: it has not run since.
            ended_at = workload.ended_at
        update.set_values(ended_at=ended_at, ended=derived.ended)
        update.new_values |= {"next_try_at": None, "tries": 0, "trouble": ""}
    if new is Status.STOPPED and not was_suspended_by_others(new, derived.reason):
        # What others suspended they may resume: its job stays in the cluster.
        update.set_values(desired=Desired.STOPPED.value)
    reason, text = "", derived.reason
    if workload.status == Status.STOPPED:
        update.set_values(desired=Desired.RUNNING.value)
        if new not in RESTING:
            update.set_values(ended_at=None, ended="")
        if not is_suspended(update.job):
            text = f"{RESUMED} {derived.reason}".strip()
    if derived.requeued:
        # Also those of this batch that are gone already.
        preempted = (update.counts is not None and update.counts.preempted > 0) or any(
            pod.is_preempted and pod.attempt == workload.attempt for pod in update.pods.values()
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
