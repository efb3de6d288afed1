"""How the status of a workload follows from its job, its pods and its pod group."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from clusters.job_kinds import JobShape, find_shape
from workloads.kube_objects import (
    KUEUE_QUEUE,
    WAITS_FOR_DATA,
    Object,
    clean_text,
    filter_own_pods,
    find_true_condition,
    int_or_zero,
    nested_dict,
    nested_list,
)
from workloads.pod_counts import (
    PLACED,
    WITHOUT_NODE,
    ExamplePod,
    PodCounts,
    Standing,
    count_pods,
    find_standing,
)
from workloads.pod_views import PodView, build_pod_view, rank_pods
from workloads.states import (
    DATA_READY,
    DATA_WORKERS_STAY,
    HELD_BY_KUEUE,
    RESTING,
    STARTING,
    SUSPENDED_BY_OTHERS,
    TERMINAL,
    UP,
    Status,
    was_suspended_by_others,
)


@dataclass(frozen=True, slots=True)
class DerivedStatus:
    """What the cluster's objects mean for an attempt.

    `reason` is text for the person; it may come from the cluster, hence it is hostile and bounded.
    `running` counts pods that are ready, `requested` those that are wanted now. `requeued` says
    that it had nodes and lost them. `ended` says how the pods ended, once the job has: "3
    succeeded".
    """

    status: Status
    reason: str = ""
    running: int = 0
    requested: int = 0
    requeued: bool = False
    ended: str = ""


def derive_status(
    job: Object | None,
    pods: Iterable[Object],
    pod_group: Object | None = None,
    *,
    before: Status = Status.CREATING,
) -> DerivedStatus:
    """Derive an attempt's status from its job, all its pods and its PodGroup.

    See `derive_from_counts`, which needs no pods.
    """
    own_pods = list(pods) if job is None else filter_own_pods(job, pods)
    views = [build_pod_view(pod) for pod in own_pods]
    return derive_from_counts(
        job, count_pods(views), pod_group, before=before, find_example=find_examples(views).get
    )


def find_examples(views: Iterable[PodView]) -> dict[Standing, ExamplePod]:
    """Return the pod of the lowest rank of each standing; of unschedulable ones, with a reason.

    Of failed pods without a rank it is the newest: the last try of a batch Job decided.
    """
    first: dict[Standing, PodView] = {}
    for rank, view in rank_pods(list(views)):
        standing = find_standing(view)
        if not view.reason and standing is Standing.UNSCHEDULABLE:
            continue
        example = first.setdefault(standing, view)
        is_newer = rank is None and example.rank is None and view.created_at > example.created_at
        if standing is Standing.FAILED and is_newer:
            first[standing] = view
    return {
        standing: ExamplePod(view.title, view.status, view.reason)
        for standing, view in first.items()
    }


FindExample = Callable[[Standing], ExamplePod | None]
"""Returns the pod of a standing that a reason names."""


def derive_from_counts(
    job: Object | None,
    counts: PodCounts,
    pod_group: Object | None,
    *,
    before: Status,
    find_example: FindExample,
) -> DerivedStatus:
    """Derive an attempt's status from its job, the counts of its pods and its PodGroup.

    The job is of any kind that has an adapter. `before` is the status so far; it decides what the
    same objects mean. A pod that is not ready is a start before the first RUNNING and damage after
    it; a missing job is not yet created, deleted as requested, or deleted by somebody else. The
    returned status is `before`, or one that may follow it in the attempt.
    """
    if before is Status.DELETING or (job is None and before in RESTING):
        return DerivedStatus(before)
    if job is None:
        return _derive_without_job(counts.own + counts.data_workers, before)
    tally = _PodTally.from_job(job, counts, find_example)
    if before in RESTING:
        return DerivedStatus(
            before,
            "",
            tally.running,
            tally.requested,
            ended=_describe_ends(job, tally.requested) if before in TERMINAL else "",
        )
    verdict = _derive_from_job(job, counts, before)
    if verdict is not None:
        status, reason = verdict
        ended = _describe_ends(job, tally.requested) if status in TERMINAL else ""
        return DerivedStatus(
            status, clean_text(reason), tally.running, tally.requested, ended=ended
        )
    status, reason, requeued = _derive_from_pods(tally, pod_group, before)
    if status is Status.PENDING and has_waited_for_data(job) is not None:
        reason = f"{DATA_READY}: {reason}" if reason else f"{DATA_READY}."
    return DerivedStatus(status, clean_text(reason), tally.running, tally.requested, requeued)


def count_requested_pods(job: Object) -> int:
    """Count the pods that a job wants now.

    For a training job all of them; for a batch Job those that must still succeed and may run at
    once.
    """
    spec = nested_dict(job, "spec")
    shape = find_shape(job.get("kind"))
    if shape is JobShape.RUNS:
        parallelism = int_or_zero(spec.get("parallelism", 1))
        completions = int_or_zero(
            spec.get("completions", 1 if "parallelism" not in spec else parallelism)
        )
        return max(
            0,
            min(
                parallelism, completions - int_or_zero(nested_dict(job, "status").get("succeeded"))
            ),
        )
    if shape is JobShape.NODES:
        return int_or_zero(nested_dict(spec, "trainer").get("numNodes", 1))
    replicas = [
        value
        for name, value in spec.items()
        if name.endswith("ReplicaSpecs") and isinstance(value, dict)
    ]
    return sum(
        int_or_zero(nested_dict(each).get("replicas", 1))
        for kinds in replicas
        for each in kinds.values()
    )


@dataclass(frozen=True, slots=True)
class _PodTally:
    """The pods of a job that matter now.

    `minimum` is how many are enough where the job is elastic, else `requested`.
    """

    requested: int
    minimum: int
    running: int
    placed: int
    unplaced: int
    is_unschedulable: bool
    succeeded: int
    failed: int
    """Pods that failed; of a batch Job also those of earlier tries."""
    preempted: bool
    terminating: int
    """Pods that are being deleted and have not ended yet."""
    blocked: int
    find_example: FindExample

    @classmethod
    def from_job(cls, job: Object, counts: PodCounts, find_example: FindExample) -> "_PodTally":
        requested = count_requested_pods(job)
        elastic = nested_dict(job, "spec", "elasticPolicy")
        min_replicas = int_or_zero(elastic.get("minReplicas")) if elastic else requested
        succeeded = counts.count(Standing.SUCCEEDED)
        if find_shape(job.get("kind")) is JobShape.RUNS:
            # `count_requested_pods` already left out those that the job's status counts.
            succeeded = max(0, succeeded - int_or_zero(nested_dict(job, "status").get("succeeded")))
        return cls(
            requested=requested,
            minimum=min(min_replicas, requested),
            running=counts.count(Standing.READY),
            placed=counts.count(*PLACED),
            unplaced=counts.count(*WITHOUT_NODE),
            is_unschedulable=counts.count(Standing.UNSCHEDULABLE) > 0,
            succeeded=succeeded,
            failed=counts.count(Standing.FAILED),
            preempted=counts.preempted > 0,
            terminating=counts.count(Standing.ENDING),
            blocked=counts.count(Standing.BLOCKED),
            find_example=find_example,
        )

    @property
    def is_over(self) -> bool:
        """Whether all pods that are not up are being deleted beside one that succeeded.

        A job looks so just before it reports its success.
        """
        up = self.running + self.succeeded
        return (
            bool(self.succeeded)
            and not self.failed
            and not self.preempted
            and up + self.terminating >= self.requested
        )


def _derive_without_job(pods: int, before: Status) -> DerivedStatus:
    if before in STARTING:
        return DerivedStatus(before)
    if before is Status.STOPPING:
        return (
            DerivedStatus(Status.STOPPING, "Its last pods are ending.")
            if pods
            else DerivedStatus(Status.STOPPED)
        )
    return DerivedStatus(Status.STOPPED, "Its job was deleted in the cluster, and not by Muster.")


def has_waited_for_data(job: Object | None) -> bool | None:
    """Return whether Muster let a job go on that waited for data; False while it waits.

    None for a job that never waited.
    """
    annotations = nested_dict(job, "metadata", "annotations")
    return {"true": False, "false": True}.get(str(annotations.get(WAITS_FOR_DATA)))


def is_suspended(job: Object | None) -> bool:
    """Return whether the spec asks for suspension."""
    return bool(
        nested_dict(job, "spec").get("suspend")
        or nested_dict(job, "spec", "runPolicy").get("suspend")
    )


def is_held_by_kueue(job: Object | None) -> bool:
    """Return whether Kueue keeps a job suspended until its queue admits it."""
    return is_suspended(job) and KUEUE_QUEUE in nested_dict(job, "metadata", "labels")


def is_suspension_over(job: Object | None, status: str, reason: str) -> bool:
    """Return whether the objects decide again over an attempt whose job others suspended.

    They do where the job was resumed or has ended, and where Kueue keeps it from now on.
    """
    if job is None or not was_suspended_by_others(status, reason):
        return False
    has_ended = find_true_condition(job, "Failed", "Succeeded", "Complete") is not None
    return has_ended or not is_suspended(job) or is_held_by_kueue(job)


def _derive_from_job(job: Object, counts: PodCounts, before: Status) -> tuple[Status, str] | None:
    """Return what the job alone decides: its end, or its suspension.

    None where the pods decide.
    """
    if nested_dict(job, "metadata").get("deletionTimestamp"):
        return (
            Status.STOPPING,
            ""
            if before is Status.STOPPING
            else "Its job is being deleted in the cluster, and not by Muster.",
        )
    if condition := find_true_condition(job, "Failed"):
        return Status.FAILED, str(condition.get("message") or condition.get("reason") or "")
    if find_true_condition(job, "Succeeded", "Complete"):
        return Status.COMPLETED, ""
    if is_suspended(job) and has_waited_for_data(job) is False and before is not Status.STOPPING:
        # Where an operator makes pods of it all the same, they decide.
        if counts.own:
            return None
        if not (is_held_by_kueue(job) and before in UP | {Status.INITIALIZING}):
            return (Status.PREPARING if before in STARTING else before), ""
    # A suspended Job keeps the pods that have ended.
    unended = counts.own - counts.count(Standing.SUCCEEDED, Standing.FAILED)
    if is_held_by_kueue(job) and before is not Status.STOPPING and not unended:
        return Status.PENDING, HELD_BY_KUEUE
    # The condition of a job that was just resumed lags behind its spec.
    if find_true_condition(job, "Suspended") and is_suspended(job):
        if unended:
            # It may be resumed before they have ended: it is stopped only without them.
            return before, "It is suspended: its last pods are ending."
        # What a person stops is stopped once its job is gone: others could resume this one.
        if before is not Status.STOPPING:
            stay = f" {DATA_WORKERS_STAY}" if counts.data_workers else ""
            return Status.STOPPED, f"{SUSPENDED_BY_OTHERS}{stay}"
    return (Status.STOPPING, "") if before is Status.STOPPING else None


def _derive_from_pods(
    counts: _PodTally, pod_group: Object | None, before: Status
) -> tuple[Status, str, bool]:
    existing = counts.placed + counts.unplaced + counts.succeeded
    complete = existing >= counts.requested and not counts.unplaced
    if _is_requeued(counts, pod_group, before):
        return (
            Status.PENDING,
            _describe_pending(counts, pod_group) or "Its pods lost their places.",
            True,
        )
    up = counts.running + counts.succeeded
    if up >= counts.requested and (existing or not counts.requested):
        return Status.RUNNING, "", False
    if before is Status.RUNNING and counts.is_over:
        return Status.RUNNING, "", False
    has_begun = before in (Status.RUNNING, Status.DEGRADED)
    if counts.running and counts.minimum <= up < counts.requested and (has_begun or not complete):
        # Pods beyond the minimum may come and go; one that breaks is damage all the same.
        if counts.failed or counts.blocked:
            return Status.DEGRADED, _describe_missing_pods(counts), False
        minimum = f"it runs with {counts.minimum} or more"
        return Status.RUNNING, f"{up} of {counts.requested} pods are up; {minimum}.", False
    if has_begun:
        return Status.DEGRADED, _describe_missing_pods(counts), False
    if complete or before is Status.INITIALIZING:
        return Status.INITIALIZING, _describe_missing_pods(counts), False
    if before is Status.RESUMING and existing < counts.requested:
        return before, "", False
    if before is Status.CREATING and not existing and pod_group is None:
        return before, "", False
    return Status.PENDING, _describe_pending(counts, pod_group), False


def _is_requeued(counts: _PodTally, pod_group: Object | None, before: Status) -> bool:
    """Return whether an attempt that had nodes has none, and the scheduler reports it waiting.

    It was preempted, or its node went away.
    """
    if (
        before not in (Status.INITIALIZING, Status.RUNNING, Status.DEGRADED)
        or counts.placed
        or counts.succeeded >= counts.requested
    ):
        return False
    return (
        counts.is_unschedulable
        or counts.preempted
        or bool(nested_list(pod_group, "status", "schedulingConditions"))
    )


def _describe_pending(counts: _PodTally, pod_group: Object | None) -> str:
    for condition in nested_list(pod_group, "status", "schedulingConditions"):
        for entry in nested_list(condition, "reasons"):
            if entry.get("message"):
                return str(entry["message"])
        if condition.get("message"):
            return str(condition["message"])
    example = counts.find_example(Standing.UNSCHEDULABLE) if counts.is_unschedulable else None
    return example.reason if example else ""


def _describe_missing_pods(counts: _PodTally) -> str:
    """Describe a pod with a known cause, else say how many pods are up, and which failed."""
    if counts.blocked and (blocked := counts.find_example(Standing.BLOCKED)):
        message = f": {blocked.reason}" if blocked.reason else ""
        return f"{blocked.title}: {blocked.status}{message}"
    up = counts.running + counts.succeeded
    failed = counts.find_example(Standing.FAILED) if counts.failed else None
    broken = f" {failed.title} failed: {failed.reason}." if failed else ""
    return f"{up} of {counts.requested} pods are up.{broken}" if counts.requested else ""


def _describe_ends(job: Object, requested: int) -> str:
    """Describe how the pods ended, by the job's own count.

    The job also counts pods that were removed. What neither succeeded nor failed was stopped. Where
    it counts none, how they ended is not known: it counts no pod that failed and was restarted.
    """
    status = nested_dict(job, "status")
    if find_shape(job.get("kind")) is JobShape.RUNS:
        tallies: Sequence[Object] = [status]
        expected = 0
    else:
        tallies = [nested_dict(each) for each in nested_dict(status, "replicaStatuses").values()]
        expected = requested
    if not tallies:
        return ""
    succeeded = sum(int_or_zero(each.get("succeeded")) for each in tallies)
    failed = sum(int_or_zero(each.get("failed")) for each in tallies)
    parts = {
        "succeeded": succeeded,
        "failed": failed,
        "stopped" if succeeded or failed else "ended": max(0, expected - succeeded - failed),
    }
    return ", ".join(f"{count} {word}" for word, count in parts.items() if count)
