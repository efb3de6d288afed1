"""What one reconciliation is for every kind of job that an operator runs.

It advances an unfinished job, cleans up after a finished one, and writes the status.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Literal

from localkube import clock
from localkube.controllers.framework import Replica, TrainingJob
from localkube.controllers.job_memory import JobMemory
from localkube.controllers.owned_objects import AHEAD_FACTOR, OperatorContext, OwnedObjects
from localkube.controllers.training_status import TrainingStatus

LARGE_JOB = 100
"""From more replicas than this on a job's status is not written at each change of a count."""

STATUS_PAUSE_SECONDS = 0.5

LIMITED = "PodsLimited"
"""The condition that says that not all pods of a job are made at once."""


def find_earliest(*delays: float | None) -> float | None:
    """Return the shortest of several times in seconds; None means never."""
    return min((seconds for seconds in delays if seconds is not None), default=None)


class OperatorReconciler(ABC):
    """The state of one reconciliation. The status is changed in a copy and written once, at the
    end.
    """

    def __init__(
        self,
        context: OperatorContext,
        job: TrainingJob,
        pod_replicas: Mapping[str, Replica],
        title: str,
        memory: JobMemory,
    ) -> None:
        self._context = context
        self._job = job
        self._memory = memory
        self._owned_objects = OwnedObjects(context, job, pod_replicas, memory)
        self._kind = context.kind.resource.kind
        self._title = f"{self._kind} {title}"
        self._status = TrainingStatus(self._kind, job.object.get("status"))

    @abstractmethod
    def _advance_job(self) -> float | None:
        """Do what an unfinished job needs; return the seconds until the next time, if any."""

    @abstractmethod
    def _recount_pods(self) -> None:
        """Correct the counts of active pods after the clean-up of a finished job."""

    def reconcile(self) -> float | None:
        """Do everything that is due; return the seconds until the next reconciliation, if any."""
        delay = None if self._status.is_finished else self._advance_job()
        if self._status.is_finished:
            delay = find_earliest(delay, self._apply_clean_pod_policy())
        return find_earliest(delay, self._write_status())

    def _apply_clean_pod_policy(self) -> float | None:
        """Remove a batch of a finished job's pods, each with its service, as cleanPodPolicy says.

        Returns 0 when there are more.
        """
        # Set it here too: the real operator omits the completion time after a permanent exit code,
        # and such a job then never expires.
        self._status.set_completion_time()
        delay: float | None = None
        if self._job.clean_pod_policy == "All":
            delay = self._owned_objects.remove_all()
        elif self._job.clean_pod_policy == "Running":
            delay = self._owned_objects.remove_unfinished()
        self._recount_pods()
        return delay

    def _write_status(self) -> float | None:
        """Write a changed status; return the seconds until it may be written, if not yet.

        Of a large job counts alone are written at most twice a second.
        """
        status, job, memory = self._status, self._job, self._memory
        if not status.has_changed:
            return None
        now = clock.current_time().timestamp()
        if job.total_replicas > LARGE_JOB and not status.has_changed_conditions:
            written_at = memory.status_written_at
            # A clock that was set back must not stop the status.
            if written_at is not None and 0 <= now - written_at < STATUS_PAUSE_SECONDS:
                return STATUS_PAUSE_SECONDS - (now - written_at)
        memory.status_written_at = now
        status.body["lastReconcileTime"] = clock.format_time()
        self._context.objects.modify(
            self._context.kind.resource,
            job.namespace,
            job.name,
            lambda obj: obj.update(status=status.body),
            subresource="status",
        )
        return None

    def _report_held_back_pods(self) -> None:
        """Say in the status when not all pods are made at once, and take it back after."""
        most, wanted = self._context.pods_ahead, self._job.total_replicas
        reason = f"{self._kind}PodsLimited"
        if self._owned_objects.wants_more_than_allowed:
            text = (
                f"{self._title} wants {wanted} pods; at most {most} of a job are made before "
                f"others of it have ended, {AHEAD_FACTOR} times the pods of all nodes: start "
                "localkube with a larger --max-pods for more."
            )
            if self._status.set_note(LIMITED, text, status=True, reason=reason):
                self._context.recorder.record_event(self._job.object, "Warning", reason, text)
        elif self._status.has_condition(LIMITED):
            text = f"{self._title} may have all its {wanted} pods."
            self._status.set_note(LIMITED, text, status=False, reason=reason)

    def _start_or_resume(self, text: str) -> None:
        """Set the start time; `text` reports that a suspended job is resumed."""
        if self._status.has_condition("Suspended"):
            reason = f"{self._kind}Resumed"
            self._report_condition("Suspended", text, status=False, reason=reason)
            self._status.set_start_time()
        elif "startTime" not in self._status.body:
            self._status.set_start_time()

    def _stop_running(self) -> None:
        """Set that a suspended job does not run."""
        if self._status.has_condition("Running") or self._status.has_condition("Restarting"):
            text, reason = f"{self._title} is suspended.", f"{self._kind}Suspended"
            self._status.set_condition("Running", text, status=False, reason=reason)

    def _report_condition(
        self,
        type: str,
        text: str,
        *,
        status: bool = True,
        reason: str = "",
        event_type: Literal["Normal", "Warning"] = "Normal",
    ) -> None:
        """Set a condition, and record an event with its reason where that changed it."""
        reason = reason or self._kind + type
        if self._status.set_condition(type, text, status=status, reason=reason):
            self._context.recorder.record_event(self._job.object, event_type, reason, text)
