"""One reconciliation of one training job: does what its spec and pods ask for, and writes its
status.

Where the real operator (1.9) has an oddity that no user would want, this does what the
documentation promises; each such place says so.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Literal

from localkube import clock
from localkube.controllers.children import RETRY_AFTER
from localkube.controllers.framework import PodCounts, Replica, TrainingJob, find_problems
from localkube.controllers.job_memory import JobMemory, take_names
from localkube.controllers.operator_reconciler import OperatorReconciler, find_earliest
from localkube.controllers.owned_objects import PODS_PER_RECONCILE
from localkube.controllers.pod_state import exit_code_of, is_active, was_shut_down
from localkube.controllers.replica_services import ReplicaServices, TrainingContext
from localkube.controllers.training_pods import ReplicaKey, build_pod, format_selector
from localkube.lifecycle import DeleteOptions
from localkube.metadata import Object, find_condition, name_of, uid_of
from localkube.store import Record

FIRST_RETRYABLE = 128
"""Exit codes from here on mean that a signal ended the process.

restartPolicy ExitCode takes lower codes as the program's own decision.
"""

CHANGES_PER_RECONCILE = 100
"""Changed pods whose troubles one reconciliation looks for."""

PAST_BACKOFF = "it has reached the specified backoff limit"
PAST_DEADLINE = "it was active longer than specified deadline"
"""The ends of the messages of a job that a limit has failed."""

FailureOutcome = Literal["restart", "replace", "fatal", "final"]
"""What happens to a failed pod.

restart: replaced and counted; replace: replaced and not counted; fatal: ends the job; final: the
replica has failed for good.
"""


class TrainingReconciler(OperatorReconciler):
    """One reconciliation of a job whose pods decide its end."""

    def __init__(self, context: TrainingContext, job: TrainingJob, memory: JobMemory) -> None:
        super().__init__(context, job, job.replicas, job.name, memory)
        self._framework = context.kind
        self._trouble_reports = context.trouble_reports
        self._services = ReplicaServices(context, job, self._owned_objects)

    def reconcile(self) -> float | None:
        delay = super().reconcile()
        if self._status.is_finished:
            delay = find_earliest(delay, self._end_limited_pods())
        return find_earliest(delay, self._expire_job()) if self._status.is_finished else delay

    def _advance_job(self) -> float | None:
        if not self._status.conditions:
            self._status.set_condition("Created", f"{self._title} is created.")
        problems = find_problems(self._framework, self._job)
        if problems:
            self._report_problems("; ".join(problems))
        elif self._job.suspended:
            return self._suspend_job()
        else:
            return self._reconcile_pods()
        return None

    def _report_problems(self, text: str) -> None:
        """Fail a job with an invalid spec, unless it already has pods.

        A running job whose spec is edited into an invalid one continues.
        """
        if self._owned_objects.has_pods():
            self._trouble_reports.report_once(
                self._job.object, uid_of(self._job.object), f"{self._kind}FailedValidation", text
            )
        else:
            reason = f"{self._kind}FailedValidation"
            self._report_condition("Failed", text, reason=reason, event_type="Warning")

    def _suspend_job(self) -> float | None:
        """Remove every pod, whatever cleanPodPolicy says."""
        delay = self._owned_objects.remove_all()
        self._status.update_active({})
        self._stop_running()
        self._report_condition("Suspended", f"{self._title} is suspended.")
        return delay

    def _reconcile_pods(self) -> float | None:
        """Bring the pods of a job that should run in line with its spec, and set its conditions."""
        self._start_or_resume(f"{self._title} is resumed.")
        seconds_left = self._seconds_until_deadline()
        if seconds_left is not None and seconds_left <= 0:
            self._fail_by_limit(f"Job {self._job.name} has failed because {PAST_DEADLINE}")
            return None
        surplus_delay = self._owned_objects.remove_surplus_replicas()
        self._report_held_back_pods()
        delay = self._services.ensure_known()
        restarted, failure_delay = self._handle_failed_pods()
        if self._status.is_finished:
            return None
        if delay is None:
            delay = self._create_missing_pods()
        if failure_delay is None:
            self._update_conditions(restarted)
        else:
            # Failed pods that nothing was decided about would count as lost.
            self._count_pods()
        trouble_delay = self._report_troubles()
        return find_earliest(delay, seconds_left, surplus_delay, failure_delay, trouble_delay)

    def _report_troubles(self) -> float | None:
        """Report the troubles of a batch of the pods that changed; return 0 when there are more."""
        for name in take_names(self._memory.changed_names, CHANGES_PER_RECONCILE):
            pod = self._owned_objects.find_pod(name)
            if pod is not None and is_active(pod):
                self._trouble_reports.report_troubles(self._job.object, pod)
        return 0 if self._memory.changed_names else None

    def _create_missing_pods(self) -> float | None:
        missing = self._owned_objects.find_missing_replicas()
        if not self._services.ensure(missing):
            return RETRY_AFTER
        find_address = self._services.build_address_finder()

        def build(replica: Replica, index: int) -> Object:
            if replica.template["spec"].get("restartPolicy"):
                text = (
                    "Restart policy in pod template will be overwritten by restart policy in "
                    "replica spec"
                )
                self._context.recorder.record_event(
                    self._job.object, "Warning", "SetPodTemplateRestartPolicy", text
                )
            return build_pod(self._framework, self._job, replica, index, find_address)

        return self._owned_objects.create_pods(missing, build)

    def _seconds_until_deadline(self) -> float | None:
        """Return the seconds until activeDeadlineSeconds is over.

        The real operator notices that only when something else happens to the job.
        """
        start = self._status.body.get("startTime")
        if self._job.deadline_seconds is None or start is None:
            return None
        return (
            clock.parse_time(str(start))
            + clock.bound_seconds(self._job.deadline_seconds)
            - clock.current_time()
        ).total_seconds()

    def _handle_failed_pods(self) -> tuple[bool, float | None]:
        """Replace a batch of failed pods, or end the job over them.

        Returns whether one was replaced, and 0 when there are more.
        """
        failed_pods = list(self._owned_objects.read_pods(self._list_undecided_failures()))
        outcomes = [
            (key, pod, self._decide_outcome(self._job.replicas[key[0]], pod))
            for key, pod in failed_pods
        ]
        for (type, _), pod, outcome in outcomes:
            self._report_exit(pod)
            if outcome == "fatal":
                # The real operator quotes with Go's %q.
                text = (
                    f"job {self._job.name!r} is failing because {type!r} replica(s) failed."
                ).replace("'", '"')
                self._fail_job(text, "Warning")
                return False, None
        for key, pod, outcome in outcomes:
            if outcome == "restart":
                self._services.record_restart(key, pod)
            elif outcome == "final":
                self._memory.settled_uids.add(uid_of(pod))
        if self._is_past_backoff():
            self._fail_by_limit(f"Job {self._job.name} has failed because {PAST_BACKOFF}")
            return False, None
        replaced = [
            (key, pod) for key, pod, outcome in outcomes if outcome in ("restart", "replace")
        ]
        for key, pod in replaced:
            self._restart_replica(key, pod)
        return bool(replaced), 0 if len(failed_pods) == PODS_PER_RECONCILE else None

    def _list_undecided_failures(self) -> Sequence[Record]:
        """Return a batch of the replicas' failed pods that nothing was decided about."""
        settled, roles = self._memory.settled_uids, {type.lower() for type in self._job.replicas}
        failed = self._owned_objects.iterate_pods(
            lambda tally: tally.phase == "Failed" and not tally.terminating and tally.role in roles
        )
        undecided = (record for record in failed if record.uid not in settled)
        return list(islice(undecided, PODS_PER_RECONCILE))

    def _decide_outcome(self, replica: Replica, pod: Object) -> FailureOutcome:
        if was_shut_down(pod):
            return "replace"
        if not self._framework.replaces_failed_pod(replica):
            return "final"
        if replica.restart_policy == "ExitCode":
            code = exit_code_of(pod, self._framework.container_name)
            # The status of an evicted pod has no exit code; such a failure may be retried.
            return "restart" if code is None or code >= FIRST_RETRYABLE else "fatal"
        return "restart"

    def _restart_replica(self, key: ReplicaKey, pod: Object) -> None:
        self._owned_objects.remove_pod(pod)
        text = f"job {self._job.name} is restarting because {key[0]} replica(s) failed."
        self._status.set_condition("Restarting", text)
        self._context.recorder.record_event(
            self._job.object, "Warning", f"{self._kind}Restarting", text
        )

    def _is_past_backoff(self) -> bool:
        limit = self._job.backoff_limit
        if limit is None:
            return False
        restarts = self._services.count_restarts()
        return restarts > 0 if limit == 0 else restarts >= limit

    def _fail_by_limit(self, text: str) -> None:
        """Fail a job whose pods still run; `_end_limited_pods` ends these."""
        self._fail_job(text, "Normal")

    def _end_limited_pods(self) -> float | None:
        """End a batch of the active pods of a job that a limit has failed; return 0 for more.

        So none restarts for ever or keeps its GPUs. The real operator leaves them running under
        cleanPodPolicy None, its default.
        """
        failed = find_condition(self._status.conditions, "Failed") or {}
        if not str(failed.get("message")).endswith((PAST_BACKOFF, PAST_DEADLINE)):
            return None
        return self._owned_objects.remove_active_pods()

    def _fail_job(self, text: str, type: Literal["Normal", "Warning"]) -> None:
        self._count_pods()
        self._report_condition("Failed", text, event_type=type)

    def _update_conditions(self, restarted: bool) -> None:
        """Count the pods, and set whether the job runs, has succeeded or has failed."""
        counts_by_type = self._count_pods()
        framework = self._framework
        if framework.has_succeeded(self._job, counts_by_type):
            self._report_condition("Succeeded", f"{self._title} is successfully completed.")
            return
        for type, counts in counts_by_type.items():
            has_lost_pods = (
                counts.failed and counts.succeeded + counts.active < self._job.replicas[type].count
            )
            if has_lost_pods and not framework.tolerates_failure(self._job, type):
                self._fail_job(
                    f"{self._title} is failed because {counts.failed} {type} replica(s) failed.",
                    "Normal",
                )
                return
        if framework.is_running(self._job, counts_by_type) and not restarted:
            self._status.set_condition("Running", f"{self._title} is running.")

    def _count_pods(self) -> dict[str, PodCounts]:
        counts_by_type = self._owned_objects.count_pods()
        self._status.set_replica_statuses(
            counts_by_type,
            {type: format_selector(self._framework, self._job, type) for type in counts_by_type},
        )
        return counts_by_type

    def _recount_pods(self) -> None:
        if self._status.has_condition("Succeeded"):
            self._status.count_active_as_succeeded()
        else:
            self._status.update_active(
                {type: counts.active for type, counts in self._owned_objects.count_pods().items()}
            )

    def _expire_job(self) -> float | None:
        """Remove the job once ttlSecondsAfterFinished is over; return the seconds until then."""
        job = self._job
        if job.ttl_seconds is None:
            return None
        end = clock.parse_time(str(self._status.body["completionTime"]))
        seconds_left = (
            end + clock.bound_seconds(job.ttl_seconds) - clock.current_time()
        ).total_seconds()
        if seconds_left > 0:
            return seconds_left
        self._context.recorder.record_event(
            job.object, "Normal", self._framework.expired_reason, f"Deleted job: {job.name}"
        )
        options = DeleteOptions(propagation_policy="Background", uid=uid_of(job.object))
        self._context.objects.delete(self._framework.resource, job.namespace, job.name, options)
        return None

    def _report_exit(self, pod: Object) -> None:
        code = exit_code_of(pod, self._framework.container_name)
        if code is not None:
            text = f"Pod: {self._job.namespace}.{name_of(pod)} exited with code {code}"
            self._context.recorder.record_event(self._job.object, "Normal", "ExitedWithCode", text)
