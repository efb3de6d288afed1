"""What one reconciliation is for every kind of job that an operator runs.

It advances an unfinished job, cleans up after a finished one, and writes the status.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Literal

from localkube import clock
from localkube.controllers.framework import Replica, TrainingJob
from localkube.controllers.owned_objects import OperatorContext, OwnedObjects
from localkube.controllers.pod_state import phase_of
from localkube.controllers.training_status import TrainingStatus


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
    ) -> None:
        self._context = context
        self._job = job
        self._owned_objects = OwnedObjects(context, job, pod_replicas)
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
            self._apply_clean_pod_policy()
        self._write_status()
        return delay

    def _apply_clean_pod_policy(self) -> None:
        """Remove the pods of a finished job, each with its service, as cleanPodPolicy says."""
        # Set it here too: the real operator omits the completion time after a permanent exit code,
        # and such a job then never expires.
        self._status.set_completion_time()
        if self._job.clean_pod_policy == "All":
            self._owned_objects.remove_all()
        elif self._job.clean_pod_policy == "Running":
            self._owned_objects.remove_replicas(
                key
                for key, pod in self._owned_objects.list_pods().items()
                if phase_of(pod) in ("Running", "Pending")
            )
        self._recount_pods()

    def _write_status(self) -> None:
        status, job = self._status, self._job
        if status.has_changed:
            status.body["lastReconcileTime"] = clock.format_time()
            self._context.objects.modify(
                self._context.kind.resource,
                job.namespace,
                job.name,
                lambda obj: obj.update(status=status.body),
                subresource="status",
            )

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
