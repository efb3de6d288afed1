"""One look at one batch/v1 Job: counts what ended, decides, starts and removes pods, and writes the
status.
"""

from collections.abc import Sequence
from datetime import timedelta
from itertools import islice

from localkube import clock
from localkube.controllers.children import RETRY_AFTER, Children
from localkube.controllers.job_pods import build, is_held, release, removal_order
from localkube.controllers.job_rules import (
    JobSpec,
    delay_left,
    failed,
    format_indexes,
    index_of,
    judge,
    parse_indexes,
    put_condition,
    restarted_too_often,
)
from localkube.controllers.podstate import is_active, is_finished, is_ready, phase_of, was_shut_down
from localkube.metadata import Object, condition_of, copied, is_terminating, name_of, namespace_of
from localkube.objects import Objects
from localkube.recorder import Recorder
from localkube.resources import JOBS, PODS

BATCH = 25
"""Pods that one look starts, so that a Job of a thousand does not hold up everything else."""

ENDS = {"FailureTarget": "Failed", "SuccessCriteriaMet": "Complete"}
"""The condition that says how a Job will end, once its last pod has, and the one that says that it
has ended.
"""

Outcome = tuple[str, str, str]
"""One of ENDS, the reason and the message."""


class JobRun:
    """The state of one look. The status is built up as a copy and written once, at the end."""

    def __init__(
        self,
        objects: Objects,
        children: Children,
        recorder: Recorder,
        job: Object,
        pods: Sequence[Object],
    ) -> None:
        self._objects = objects
        self._children = children
        self._recorder = recorder
        self._job = job
        self._pods = pods
        self._spec = JobSpec.of(job)
        self._status: Object = copied(job.get("status") or {})
        self._conditions: list[Object] = self._status.setdefault("conditions", [])
        self._completed = parse_indexes(
            self._status.get("completedIndexes") or "", self._spec.completions or 0
        )
        self._failures = int(self._status.get("failed") or 0)
        self._successes = (
            len(self._completed) if self._spec.indexed else int(self._status.get("succeeded") or 0)
        )
        self._verdict = ""
        self._active: list[Object] = []

    def go(self) -> float | None:
        """Do what there is to do; gives the seconds after which to look again."""
        if not self._spec.suspended:
            self._status.setdefault("startTime", clock.stamp())
        self._count()
        self._active = [pod for pod in self._pods if is_active(pod)]
        outcome = self._announced() or self._failure()
        again: float | None = None
        if outcome is not None:
            self._end_pods()
        elif not is_terminating(self._job):
            again = self._manage()
            outcome = self._success()
            if outcome is None:
                self._tell_suspension()
        if outcome is not None:
            self._conclude(outcome)
        self._write()
        return _sooner(again, None if outcome is not None else self._deadline_left())

    def _count(self) -> None:
        """Count each pod that ended, once: its finalizer goes with the count."""
        for pod in self._pods:
            if not is_held(pod):
                continue
            if phase_of(pod) == "Succeeded":
                self._count_success(pod)
            elif (
                failed(pod, self._spec)
                or _is_past_grace(pod)
                or (is_terminating(self._job) and is_terminating(pod))
            ):
                self._count_failure(pod)
            else:
                continue
            release(self._objects, pod)

    def _count_success(self, pod: Object) -> None:
        if not self._spec.indexed:
            self._successes += 1
        elif 0 <= index_of(pod) < (self._spec.completions or 0):
            self._completed.add(index_of(pod))
            self._successes = len(self._completed)

    def _count_failure(self, pod: Object) -> None:
        if was_shut_down(pod):
            # Not the pod's doing: it is replaced, and no trace of it counts against the Job.
            self._children.delete(self._job, PODS, pod)
            return
        action, text = (
            judge(pod, self._spec.failure_rules) if phase_of(pod) == "Failed" else ("Count", "")
        )
        if action == "FailJob":
            self._verdict = self._verdict or text
        if action != "Ignore":
            self._failures += 1

    def _announced(self) -> Outcome | None:
        """How the Job is to end, when an earlier look has said so already."""
        for kind in ENDS:
            condition = condition_of(self._conditions, kind)
            if condition is not None and condition["status"] == "True":
                return kind, str(condition.get("reason")), str(condition.get("message"))
        return None

    def _failure(self) -> Outcome | None:
        if self._verdict:
            return "FailureTarget", "PodFailurePolicy", self._verdict
        if self._failures > self._spec.backoff_limit or restarted_too_often(self._pods, self._spec):
            return (
                "FailureTarget",
                "BackoffLimitExceeded",
                "Job has reached the specified backoff limit",
            )
        left = self._deadline_left()
        if left is not None and left <= 0:
            return (
                "FailureTarget",
                "DeadlineExceeded",
                "Job was active longer than specified deadline",
            )
        return None

    def _success(self) -> Outcome | None:
        wanted = self._spec.completions
        # Without completions any success ends the Job, once the pods that still run have ended too.
        enough = self._successes > 0 if wanted is None else self._successes >= wanted
        if not enough or self._active:
            return None
        return (
            "SuccessCriteriaMet",
            "CompletionsReached",
            "Reached expected number of succeeded pods",
        )

    def _deadline_left(self) -> float | None:
        start = self._status.get("startTime")
        if self._spec.deadline is None or self._spec.suspended or not start:
            return None
        return (
            clock.parse(str(start)) + timedelta(seconds=int(self._spec.deadline)) - clock.now()
        ).total_seconds()

    def _end_pods(self) -> None:
        """The pods that still run when a Job fails: they stay until they are counted."""
        for pod in self._active:
            self._children.delete(self._job, PODS, pod)

    def _manage(self) -> float | None:
        """Start or remove pods until as many are active as should be; never both in one look."""
        spec = self._spec
        wanted = 0 if spec.suspended else self._wanted()
        order = removal_order(self._active, spec.completions if spec.indexed else None)
        surplus = max(0, len(order) - wanted)
        if surplus:
            for pod in order[:surplus]:
                # Released first: a pod that the Job itself takes away is no failure.
                release(self._objects, pod)
                self._children.delete(self._job, PODS, pod)
            self._active = list(order[surplus:])
            return None
        waiting = (
            0
            if spec.replace_terminating
            else sum(is_terminating(pod) and not is_finished(pod) for pod in self._pods)
        )
        missing = wanted - len(self._active) - waiting
        return self._start(missing) if missing > 0 else None

    def _wanted(self) -> int:
        if self._spec.completions is None:
            return len(self._active) if self._successes else self._spec.parallelism
        return max(0, min(self._spec.parallelism, self._spec.completions - self._successes))

    def _start(self, missing: int) -> float | None:
        counted = [
            pod
            for pod in self._pods
            if phase_of(pod) == "Failed"
            and not was_shut_down(pod)
            and judge(pod, self._spec.failure_rules)[0] != "Ignore"
        ]
        delay = delay_left(
            counted, (pod for pod in self._pods if phase_of(pod) == "Succeeded"), clock.now()
        )
        if delay > 0:
            return delay
        now = min(missing, BATCH)
        indexes = list(islice(self._free_indexes(), now)) if self._spec.indexed else [None] * now
        for index in indexes:
            made = self._children.create(self._job, PODS, build(self._job, index))
            if made is None:
                return RETRY_AFTER
            self._active.append(made)
        return 0 if missing > now else None

    def _free_indexes(self) -> list[int]:
        """The indexes that neither have succeeded nor have a pod that may still succeed."""
        busy = {index_of(pod) for pod in self._active}
        if not self._spec.replace_terminating:
            busy |= {index_of(pod) for pod in self._pods if not is_finished(pod)}
        return [
            index
            for index in range(self._spec.completions or 0)
            if index not in busy and index not in self._completed
        ]

    def _tell_suspension(self) -> None:
        if self._spec.suspended:
            if put_condition(self._conditions, "Suspended", True, "JobSuspended", "Job suspended"):
                self._recorder.event(self._job, "Normal", "Suspended", "Job suspended")
        elif put_condition(self._conditions, "Suspended", False, "JobResumed", "Job resumed"):
            self._recorder.event(self._job, "Normal", "Resumed", "Job resumed")
            # The time in suspension does not count against activeDeadlineSeconds.
            self._status["startTime"] = clock.stamp()

    def _conclude(self, outcome: Outcome) -> None:
        """Say how the Job will end and, when no pod is left to wait for, that it has."""
        kind, reason, message = outcome
        put_condition(self._conditions, kind, True, reason, message)
        if any(is_held(pod) or not is_finished(pod) for pod in self._living()):
            return
        put_condition(self._conditions, ENDS[kind], True, reason, message)
        if kind == "SuccessCriteriaMet":
            self._status["completionTime"] = clock.stamp()
            self._recorder.event(self._job, "Normal", "Completed", "Job completed")
        else:
            self._recorder.event(self._job, "Warning", reason, message)

    def _living(self) -> Sequence[Object]:
        """The Job's pods as the store has them now, after what this look did."""
        return self._objects.owned(PODS, self._job["metadata"]["uid"])

    def _write(self) -> None:
        living = self._living()
        active = [pod for pod in living if is_active(pod)]
        counts = {"active": len(active), "succeeded": self._successes, "failed": self._failures}
        for field, count in counts.items():
            self._status.pop(field, None)
            if count:
                self._status[field] = count
        self._status["ready"] = sum(is_ready(pod) for pod in active)
        self._status["terminating"] = sum(
            is_terminating(pod) and not is_finished(pod) for pod in living
        )
        self._status["uncountedTerminatedPods"] = {}
        if self._completed:
            self._status["completedIndexes"] = format_indexes(self._completed)
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
    """Ended and gone but for its finalizer: the kubelet has confirmed the deletion."""
    return is_terminating(pod) and not pod["metadata"].get("deletionGracePeriodSeconds")


def _sooner(one: float | None, other: float | None) -> float | None:
    return one if other is None else other if one is None else min(one, other)
