"""One reconciliation of one batch/v1 Job: counts ended pods, starts or removes pods, writes the
status.
"""

from collections.abc import Sequence
from datetime import timedelta
from itertools import islice

from localkube import clock
from localkube.controllers.children import RETRY_AFTER, Children
from localkube.controllers.job_pods import (
    build_job_pod,
    has_tracking_finalizer,
    release_pod,
    sort_for_removal,
)
from localkube.controllers.job_rules import (
    JobSpec,
    completion_index,
    counts_as_failed,
    exceeds_restart_limit,
    format_indexes,
    match_failure_policy,
    parse_indexes,
    seconds_until_retry,
    set_job_condition,
)
from localkube.controllers.pod_state import (
    is_active,
    is_finished,
    is_ready,
    phase_of,
    was_shut_down,
)
from localkube.event_recorder import EventRecorder
from localkube.metadata import (
    Object,
    deep_copy,
    find_condition,
    is_terminating,
    name_of,
    namespace_of,
)
from localkube.objects import Objects
from localkube.resources import JOBS, PODS

PODS_PER_RECONCILE = 25
"""Pods that one reconciliation starts, so that a Job of a thousand does not block the rest."""

END_CONDITIONS = {"FailureTarget": "Failed", "SuccessCriteriaMet": "Complete"}
"""The condition that announces how a Job will end, and the one set once its last pod has ended."""

Outcome = tuple[str, str, str]
"""A key of END_CONDITIONS, the reason and the message."""


class JobReconciler:
    """The state of one reconciliation. The status is changed in a copy and written once, at the
    end.
    """

    def __init__(
        self,
        objects: Objects,
        children: Children,
        recorder: EventRecorder,
        job: Object,
        pods: Sequence[Object],
    ) -> None:
        self._objects = objects
        self._children = children
        self._recorder = recorder
        self._job = job
        self._pods = pods
        self._spec = JobSpec.from_job(job)
        self._status: Object = deep_copy(job.get("status") or {})
        self._conditions: list[Object] = self._status.setdefault("conditions", [])
        self._completed_indexes = parse_indexes(
            self._status.get("completedIndexes") or "", self._spec.completions or 0
        )
        self._failed_count = int(self._status.get("failed") or 0)
        self._succeeded_count = (
            len(self._completed_indexes)
            if self._spec.indexed
            else int(self._status.get("succeeded") or 0)
        )
        self._policy_failure = ""
        self._active_pods: list[Object] = []

    def reconcile(self) -> float | None:
        """Do everything that is due; return the seconds until the next reconciliation, if any."""
        if not self._spec.suspended:
            self._status.setdefault("startTime", clock.format_time())
        self._count_ended_pods()
        self._active_pods = [pod for pod in self._pods if is_active(pod)]
        outcome = self._find_announced_outcome() or self._find_failure()
        delay: float | None = None
        if outcome is not None:
            self._delete_active_pods()
        elif not is_terminating(self._job):
            delay = self._scale_pods()
            outcome = self._find_success()
            if outcome is None:
                self._report_suspension()
        if outcome is not None:
            self._set_end_conditions(outcome)
        self._write_status()
        return _earlier(delay, None if outcome is not None else self._seconds_until_deadline())

    def _count_ended_pods(self) -> None:
        """Count each ended pod once; its finalizer is removed together with the count."""
        for pod in self._pods:
            if not has_tracking_finalizer(pod):
                continue
            if phase_of(pod) == "Succeeded":
                self._count_success(pod)
            elif (
                counts_as_failed(pod, self._spec)
                or _is_past_grace(pod)
                or (is_terminating(self._job) and is_terminating(pod))
            ):
                self._count_failure(pod)
            else:
                continue
            release_pod(self._objects, pod)

    def _count_success(self, pod: Object) -> None:
        if not self._spec.indexed:
            self._succeeded_count += 1
        elif 0 <= completion_index(pod) < (self._spec.completions or 0):
            self._completed_indexes.add(completion_index(pod))
            self._succeeded_count = len(self._completed_indexes)

    def _count_failure(self, pod: Object) -> None:
        if was_shut_down(pod):
            # A node shutdown is not the pod's fault: replace it without counting a failure.
            self._children.delete(self._job, PODS, pod)
            return
        action, text = (
            match_failure_policy(pod, self._spec.failure_rules)
            if phase_of(pod) == "Failed"
            else ("Count", "")
        )
        if action == "FailJob":
            self._policy_failure = self._policy_failure or text
        if action != "Ignore":
            self._failed_count += 1

    def _find_announced_outcome(self) -> Outcome | None:
        """Return the outcome that an earlier reconciliation announced, if any."""
        for kind in END_CONDITIONS:
            condition = find_condition(self._conditions, kind)
            if condition is not None and condition["status"] == "True":
                return kind, str(condition.get("reason")), str(condition.get("message"))
        return None

    def _find_failure(self) -> Outcome | None:
        if self._policy_failure:
            return "FailureTarget", "PodFailurePolicy", self._policy_failure
        if self._failed_count > self._spec.backoff_limit or exceeds_restart_limit(
            self._pods, self._spec
        ):
            return (
                "FailureTarget",
                "BackoffLimitExceeded",
                "Job has reached the specified backoff limit",
            )
        seconds_left = self._seconds_until_deadline()
        if seconds_left is not None and seconds_left <= 0:
            return (
                "FailureTarget",
                "DeadlineExceeded",
                "Job was active longer than specified deadline",
            )
        return None

    def _find_success(self) -> Outcome | None:
        completions = self._spec.completions
        # Without completions (a work queue), one success is enough, once all pods have ended.
        has_enough = (
            self._succeeded_count > 0
            if completions is None
            else self._succeeded_count >= completions
        )
        if not has_enough or self._active_pods:
            return None
        return (
            "SuccessCriteriaMet",
            "CompletionsReached",
            "Reached expected number of succeeded pods",
        )

    def _seconds_until_deadline(self) -> float | None:
        start = self._status.get("startTime")
        if self._spec.deadline_seconds is None or self._spec.suspended or not start:
            return None
        return (
            clock.parse_time(str(start))
            + timedelta(seconds=int(self._spec.deadline_seconds))
            - clock.current_time()
        ).total_seconds()

    def _delete_active_pods(self) -> None:
        """Delete the pods that still run when a Job ends; they stay until they are counted."""
        for pod in self._active_pods:
            self._children.delete(self._job, PODS, pod)

    def _scale_pods(self) -> float | None:
        """Start or remove pods until the wanted number is active; never both at once."""
        spec = self._spec
        wanted = 0 if spec.suspended else self._count_wanted_pods()
        order = sort_for_removal(self._active_pods, spec.completions if spec.indexed else None)
        surplus = max(0, len(order) - wanted)
        if surplus:
            for pod in order[:surplus]:
                # Release it first: the count below must not take a pod that the Job itself removes
                # for a failure.
                release_pod(self._objects, pod)
                self._children.delete(self._job, PODS, pod)
            self._active_pods = list(order[surplus:])
            return None
        terminating = (
            0
            if spec.replace_terminating
            else sum(is_terminating(pod) and not is_finished(pod) for pod in self._pods)
        )
        missing = wanted - len(self._active_pods) - terminating
        return self._start_pods(missing) if missing > 0 else None

    def _count_wanted_pods(self) -> int:
        if self._spec.completions is None:
            return len(self._active_pods) if self._succeeded_count else self._spec.parallelism
        return max(0, min(self._spec.parallelism, self._spec.completions - self._succeeded_count))

    def _start_pods(self, missing: int) -> float | None:
        counted_failures = [
            pod
            for pod in self._pods
            if phase_of(pod) == "Failed"
            and not was_shut_down(pod)
            and match_failure_policy(pod, self._spec.failure_rules)[0] != "Ignore"
        ]
        delay = seconds_until_retry(
            counted_failures,
            (pod for pod in self._pods if phase_of(pod) == "Succeeded"),
            clock.current_time(),
        )
        if delay > 0:
            return delay
        batch = min(missing, PODS_PER_RECONCILE)
        indexes = (
            list(islice(self._free_indexes(), batch)) if self._spec.indexed else [None] * batch
        )
        for index in indexes:
            created = self._children.create(self._job, PODS, build_job_pod(self._job, index))
            if created is None:
                return RETRY_AFTER
            self._active_pods.append(created)
        return 0 if missing > batch else None

    def _free_indexes(self) -> list[int]:
        """Return the indexes that have not succeeded and have no pod that still may."""
        busy = {completion_index(pod) for pod in self._active_pods}
        if not self._spec.replace_terminating:
            busy |= {completion_index(pod) for pod in self._pods if not is_finished(pod)}
        return [
            index
            for index in range(self._spec.completions or 0)
            if index not in busy and index not in self._completed_indexes
        ]

    def _report_suspension(self) -> None:
        if self._spec.suspended:
            if set_job_condition(
                self._conditions, "Suspended", True, "JobSuspended", "Job suspended"
            ):
                self._recorder.record_event(self._job, "Normal", "Suspended", "Job suspended")
        elif set_job_condition(self._conditions, "Suspended", False, "JobResumed", "Job resumed"):
            self._recorder.record_event(self._job, "Normal", "Resumed", "Job resumed")
            # The time in suspension does not count against activeDeadlineSeconds.
            self._status["startTime"] = clock.format_time()

    def _set_end_conditions(self, outcome: Outcome) -> None:
        """Announce the Job's outcome and, once no pod is left to wait for, set its end."""
        kind, reason, message = outcome
        set_job_condition(self._conditions, kind, True, reason, message)
        if any(
            has_tracking_finalizer(pod) or not is_finished(pod) for pod in self._list_current_pods()
        ):
            return
        set_job_condition(self._conditions, END_CONDITIONS[kind], True, reason, message)
        if kind == "SuccessCriteriaMet":
            self._status["completionTime"] = clock.format_time()
            self._recorder.record_event(self._job, "Normal", "Completed", "Job completed")
        else:
            self._recorder.record_event(self._job, "Warning", reason, message)

    def _list_current_pods(self) -> Sequence[Object]:
        """Return the Job's pods as the store has them now, after this reconciliation's changes."""
        return self._objects.list_owned(PODS, self._job["metadata"]["uid"])

    def _write_status(self) -> None:
        living = self._list_current_pods()
        active = [pod for pod in living if is_active(pod)]
        counts = {
            "active": len(active),
            "succeeded": self._succeeded_count,
            "failed": self._failed_count,
        }
        for field, count in counts.items():
            self._status.pop(field, None)
            if count:
                self._status[field] = count
        self._status["ready"] = sum(is_ready(pod) for pod in active)
        self._status["terminating"] = sum(
            is_terminating(pod) and not is_finished(pod) for pod in living
        )
        self._status["uncountedTerminatedPods"] = {}
        if self._completed_indexes:
            self._status["completedIndexes"] = format_indexes(self._completed_indexes)
        if not self._conditions:
            del self._status["conditions"]
        self._objects.modify(
            JOBS,
            namespace_of(self._job),
            name_of(self._job),
            lambda job: job.update(status=self._status),
            subresource="status",
        )


def _is_past_grace(pod: Object) -> bool:
    """Return whether the kubelet has confirmed the deletion, so that only the finalizer is left."""
    return is_terminating(pod) and not pod["metadata"].get("deletionGracePeriodSeconds")


def _earlier(first: float | None, second: float | None) -> float | None:
    """Return the shorter of two times; None means never."""
    times = [seconds for seconds in (first, second) if seconds is not None]
    return min(times, default=None)
