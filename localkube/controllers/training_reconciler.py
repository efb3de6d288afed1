"""One look at one training job: what its spec and the state of its pods ask for is done, and its
status is written.

Where the real operator (1.9) has an oddity that no user would want, this does what the
documentation promises; each such place says so.
"""

from datetime import timedelta
from typing import Literal

from localkube import clock
from localkube.controllers.children import RETRY_AFTER
from localkube.controllers.framework import PodCounts, Replica, TrainingJob, find_problems
from localkube.controllers.owned_objects import OwnedObjects, TrainingContext
from localkube.controllers.pod_state import exit_code_of, is_active, phase_of, was_shut_down
from localkube.controllers.training_pods import ReplicaKey, format_selector
from localkube.controllers.training_status import TrainingStatus
from localkube.lifecycle import DeleteOptions
from localkube.metadata import Object, is_terminating, name_of, uid_of

FIRST_RETRYABLE = 128
"""Exit codes from here on say that a signal ended the process; restartPolicy ExitCode takes those
below as the program's own word.
"""

FailureOutcome = Literal["restart", "replace", "fatal", "final"]
"""Of a failed pod: made anew and counted; made anew and not counted; the end of the job; a failed
replica for good.
"""


class TrainingReconciler:
    """The state of one look. The status is built up as a copy and written once, at the end."""

    def __init__(self, context: TrainingContext, job: TrainingJob) -> None:
        self._context = context
        self._job = job
        self._owned_objects = OwnedObjects(context, job)
        self._kind = context.framework.resource.kind
        self._title = f"{self._kind} {job.name}"
        self._status = TrainingStatus(self._kind, job.object.get("status"))

    def reconcile(self) -> float | None:
        """Do what there is to do; gives the seconds after which to look again."""
        status, again = self._status, None
        if not status.conditions:
            status.set_condition("Created", f"{self._title} is created.")
        if not status.is_finished:
            wrong = find_problems(self._context.framework, self._job)
            if wrong:
                self._report_problems("; ".join(wrong))
            elif self._job.suspended:
                self._suspend_job()
            else:
                again = self._reconcile_pods()
        if status.is_finished:
            self._apply_clean_pod_policy()
        self._write_status()
        return self._expire_job() if status.is_finished else again

    def _report_problems(self, text: str) -> None:
        """A spec that makes no sense fails the job before it starts; a job that runs when its spec
        is edited into nonsense goes on.
        """
        if self._owned_objects.list_pods():
            self._context.trouble_reports.report_once(
                self._job.object, uid_of(self._job.object), f"{self._kind}FailedValidation", text
            )
        elif self._status.set_condition("Failed", text, reason_word="FailedValidation"):
            self._record_event("Warning", "FailedValidation", text)

    def _suspend_job(self) -> None:
        """Every pod goes, whatever cleanPodPolicy says."""
        status, text = self._status, f"{self._title} is suspended."
        self._owned_objects.remove_all()
        status.update_active({})
        if status.has_condition("Running") or status.has_condition("Restarting"):
            status.set_condition("Running", text, status=False, reason_word="Suspended")
        if status.set_condition("Suspended", text):
            self._record_event("Normal", "Suspended", text)

    def _reconcile_pods(self) -> float | None:
        """Bring the pods of a job that shall run to what its spec says, and draw the
        conclusions.
        """
        self._start_or_resume()
        left = self._seconds_until_deadline()
        if left is not None and left <= 0:
            self._fail_by_limit(
                f"Job {self._job.name} has failed because it was active longer than specified "
                "deadline"
            )
            return None
        self._owned_objects.remove_surplus_replicas()
        complete = self._owned_objects.ensure_services()
        restarted = self._handle_failed_pods()
        if self._status.is_finished:
            return None
        again = self._owned_objects.create_missing_pods() if complete else RETRY_AFTER
        self._update_conditions(restarted)
        for pod in self._owned_objects.list_pods().values():
            if is_active(pod):
                self._context.trouble_reports.report_troubles(self._job.object, pod)
        return left if again is None else again if left is None else min(again, left)

    def _start_or_resume(self) -> None:
        status = self._status
        if status.has_condition("Suspended"):
            text = f"{self._title} is resumed."
            status.set_condition("Suspended", text, status=False, reason_word="Resumed")
            self._record_event("Normal", "Resumed", text)
            status.set_start_time()
        elif "startTime" not in status.body:
            status.set_start_time()

    def _seconds_until_deadline(self) -> float | None:
        """Seconds until activeDeadlineSeconds is over. The real operator notices that only when
        something else happens to the job.
        """
        start = self._status.body.get("startTime")
        if self._job.deadline_seconds is None or start is None:
            return None
        return (
            clock.parse_time(str(start))
            + timedelta(seconds=self._job.deadline_seconds)
            - clock.now()
        ).total_seconds()

    def _handle_failed_pods(self) -> bool:
        """Make failed pods anew, or end the job over them; true when one was made anew."""
        failed = [
            (place, pod)
            for place, pod in self._owned_objects.list_pods().items()
            if place[0] in self._job.replicas
            and phase_of(pod) == "Failed"
            and not is_terminating(pod)
        ]
        fates = [
            (place, pod, self._decide_outcome(self._job.replicas[place[0]], pod))
            for place, pod in failed
        ]
        for (type, _), pod, fate in fates:
            self._report_exit(pod)
            if fate == "fatal":
                text = (
                    f"job {self._job.name!r} is failing because {type!r} replica(s) failed."
                ).replace("'", '"')
                self._fail_job(text, "Warning")
                return False
        for place, pod, fate in fates:
            if fate == "restart":
                self._owned_objects.record_restart(place, pod)
        if self._is_past_backoff():
            self._fail_by_limit(
                f"Job {self._job.name} has failed because it has reached the specified backoff "
                "limit"
            )
            return False
        anew = [(place, pod) for place, pod, fate in fates if fate in ("restart", "replace")]
        for place, pod in anew:
            self._restart_replica(place, pod)
        return bool(anew)

    def _decide_outcome(self, replica: Replica, pod: Object) -> FailureOutcome:
        if was_shut_down(pod):
            return "replace"
        if not self._context.framework.replaces_failed_pod(replica):
            return "final"
        if replica.restart_policy == "ExitCode":
            code = exit_code_of(pod, self._context.framework.container_name)
            # A pod that failed without a word about its container, as an evicted one does, may be
            # tried again.
            return "restart" if code is None or code >= FIRST_RETRYABLE else "fatal"
        return "restart"

    def _restart_replica(self, key: ReplicaKey, pod: Object) -> None:
        self._owned_objects.remove_pod(pod)
        text = f"job {self._job.name} is restarting because {key[0]} replica(s) failed."
        self._status.set_condition("Restarting", text)
        self._record_event("Warning", "Restarting", text)

    def _is_past_backoff(self) -> bool:
        limit = self._job.backoff_limit
        if limit is None:
            return False
        restarts = self._owned_objects.count_restarts()
        return restarts > 0 if limit == 0 else restarts >= limit

    def _fail_by_limit(self, text: str) -> None:
        """The job is over although its pods are not: they end, so that none restarts for ever or
        keeps its GPUs.

        The real operator leaves them running under cleanPodPolicy None, its default.
        """
        self._fail_job(text, "Normal")
        for pod in self._owned_objects.list_pods().values():
            if is_active(pod):
                self._owned_objects.remove_pod(pod)

    def _fail_job(self, text: str, type: Literal["Normal", "Warning"]) -> None:
        self._count_pods()
        self._status.set_condition("Failed", text)
        self._record_event(type, "Failed", text)

    def _update_conditions(self, restarted: bool) -> None:
        """Count, and say whether the job runs, has succeeded or has failed."""
        tallies = self._count_pods()
        framework, status = self._context.framework, self._status
        if framework.has_succeeded(self._job, tallies):
            text = f"{self._title} is successfully completed."
            status.set_condition("Succeeded", text)
            self._record_event("Normal", "Succeeded", text)
            return
        for type, tally in tallies.items():
            lost = tally.failed and tally.succeeded + tally.active < self._job.replicas[type].count
            if lost and not framework.tolerates_failure(self._job, type):
                self._fail_job(
                    f"{self._title} is failed because {tally.failed} {type} replica(s) failed.",
                    "Normal",
                )
                return
        if framework.is_running(self._job, tallies) and not restarted:
            status.set_condition("Running", f"{self._title} is running.")

    def _count_pods(self) -> dict[str, PodCounts]:
        tallies = self._owned_objects.count_pods()
        self._status.set_replica_statuses(
            tallies,
            {type: format_selector(self._context.framework, self._job, type) for type in tallies},
        )
        return tallies

    def _apply_clean_pod_policy(self) -> None:
        """What cleanPodPolicy says of the pods of a finished job, each with its service."""
        # The real operator forgets the completion time after a permanent exit code, and such a job
        # then never expires.
        self._status.set_completion_time()
        if self._job.clean_pod_policy == "All":
            self._owned_objects.remove_all()
        elif self._job.clean_pod_policy == "Running":
            self._owned_objects.remove_replicas(
                place
                for place, pod in self._owned_objects.list_pods().items()
                if phase_of(pod) in ("Running", "Pending")
            )
        if self._status.has_condition("Succeeded"):
            self._status.count_active_as_succeeded()
        else:
            self._status.update_active(
                {type: tally.active for type, tally in self._owned_objects.count_pods().items()}
            )

    def _write_status(self) -> None:
        status, job = self._status, self._job
        if status.has_changed:
            status.body["lastReconcileTime"] = clock.format_time()
            resource = self._context.framework.resource
            self._context.objects.modify(
                resource,
                job.namespace,
                job.name,
                lambda it: it.update(status=status.body),
                subresource="status",
            )

    def _expire_job(self) -> float | None:
        """Remove the job when its ttlSecondsAfterFinished is over; gives the seconds until then."""
        job = self._job
        if job.ttl_seconds is None:
            return None
        end = clock.parse_time(str(self._status.body["completionTime"]))
        left = (end + timedelta(seconds=job.ttl_seconds) - clock.now()).total_seconds()
        if left > 0:
            return left
        self._context.recorder.record_event(
            job.object, "Normal", self._context.framework.expired_reason, f"Deleted job: {job.name}"
        )
        options = DeleteOptions(propagation_policy="Background", uid=uid_of(job.object))
        self._context.objects.delete(
            self._context.framework.resource, job.namespace, job.name, options
        )
        return None

    def _report_exit(self, pod: Object) -> None:
        code = exit_code_of(pod, self._context.framework.container_name)
        if code is not None:
            text = f"Pod: {self._job.namespace}.{name_of(pod)} exited with code {code}"
            self._context.recorder.record_event(self._job.object, "Normal", "ExitedWithCode", text)

    def _record_event(self, type: Literal["Normal", "Warning"], word: str, text: str) -> None:
        self._context.recorder.record_event(self._job.object, type, self._kind + word, text)
