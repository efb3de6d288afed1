"""One look at one training job: what its spec and the state of its pods ask for is done, and its
status is written.

Where the real operator (1.9) has an oddity that no user would want, this does what the
documentation promises; each such place says so.
"""

from datetime import timedelta
from typing import Literal

from localkube import clock
from localkube.controllers.children import RETRY_AFTER
from localkube.controllers.framework import Replica, Tally, TrainingJob, problems
from localkube.controllers.podstate import exit_code_of, is_active, phase_of, was_shut_down
from localkube.controllers.training_estate import Estate, Tools
from localkube.controllers.training_pods import Place, selector_text
from localkube.controllers.training_status import TrainingStatus
from localkube.lifecycle import DeleteOptions
from localkube.metadata import Object, is_terminating, name_of, uid_of

FIRST_RETRYABLE = 128
"""Exit codes from here on say that a signal ended the process; restartPolicy ExitCode takes those
below as the program's own word.
"""

Fate = Literal["restart", "replace", "fatal", "final"]
"""Of a failed pod: made anew and counted; made anew and not counted; the end of the job; a failed
replica for good.
"""


class TrainingRun:
    """The state of one look. The status is built up as a copy and written once, at the end."""

    def __init__(self, tools: Tools, job: TrainingJob) -> None:
        self._tools = tools
        self._job = job
        self._estate = Estate(tools, job)
        self._kind = tools.framework.resource.kind
        self._title = f"{self._kind} {job.name}"
        self._status = TrainingStatus(self._kind, job.object.get("status"))

    def go(self) -> float | None:
        """Do what there is to do; gives the seconds after which to look again."""
        status, again = self._status, None
        if not status.conditions:
            status.note("Created", f"{self._title} is created.")
        if not status.is_finished:
            wrong = problems(self._tools.framework, self._job)
            if wrong:
                self._refuse("; ".join(wrong))
            elif self._job.suspended:
                self._suspend()
            else:
                again = self._drive()
        if status.is_finished:
            self._clean()
        self._write()
        return self._expire() if status.is_finished else again

    def _refuse(self, text: str) -> None:
        """A spec that makes no sense fails the job before it starts; a job that runs when its spec
        is edited into nonsense goes on.
        """
        if self._estate.pods():
            self._tools.mirror.tell_once(
                self._job.object, uid_of(self._job.object), f"{self._kind}FailedValidation", text
            )
        elif self._status.note("Failed", text, word="FailedValidation"):
            self._event("Warning", "FailedValidation", text)

    def _suspend(self) -> None:
        """Every pod goes, whatever cleanPodPolicy says."""
        status, text = self._status, f"{self._title} is suspended."
        self._estate.remove_everything()
        status.keep_active({})
        if status.has("Running") or status.has("Restarting"):
            status.note("Running", text, status=False, word="Suspended")
        if status.note("Suspended", text):
            self._event("Normal", "Suspended", text)

    def _drive(self) -> float | None:
        """Bring the pods of a job that shall run to what its spec says, and draw the
        conclusions.
        """
        self._begin()
        left = self._deadline_left()
        if left is not None and left <= 0:
            self._fail_by_limit(
                f"Job {self._job.name} has failed because it was active longer than specified "
                "deadline"
            )
            return None
        self._estate.remove_surplus()
        complete = self._estate.ensure_services()
        restarted = self._see_to_failures()
        if self._status.is_finished:
            return None
        again = self._estate.start_missing() if complete else RETRY_AFTER
        self._conclude(restarted)
        for pod in self._estate.pods().values():
            if is_active(pod):
                self._tools.mirror.tell(self._job.object, pod)
        return left if again is None else again if left is None else min(again, left)

    def _begin(self) -> None:
        status = self._status
        if status.has("Suspended"):
            text = f"{self._title} is resumed."
            status.note("Suspended", text, status=False, word="Resumed")
            self._event("Normal", "Resumed", text)
            status.start()
        elif "startTime" not in status.body:
            status.start()

    def _deadline_left(self) -> float | None:
        """Seconds until activeDeadlineSeconds is over. The real operator notices that only when
        something else happens to the job.
        """
        start = self._status.body.get("startTime")
        if self._job.deadline is None or start is None:
            return None
        return (
            clock.parse(str(start)) + timedelta(seconds=self._job.deadline) - clock.now()
        ).total_seconds()

    def _see_to_failures(self) -> bool:
        """Make failed pods anew, or end the job over them; true when one was made anew."""
        failed = [
            (place, pod)
            for place, pod in self._estate.pods().items()
            if place[0] in self._job.replicas
            and phase_of(pod) == "Failed"
            and not is_terminating(pod)
        ]
        fates = [
            (place, pod, self._fate(self._job.replicas[place[0]], pod)) for place, pod in failed
        ]
        for (type, _), pod, fate in fates:
            self._tell_exit(pod)
            if fate == "fatal":
                text = (
                    f"job {self._job.name!r} is failing because {type!r} replica(s) failed."
                ).replace("'", '"')
                self._fail(text, "Warning")
                return False
        for place, pod, fate in fates:
            if fate == "restart":
                self._estate.count_restart(place, pod)
        if self._is_past_backoff():
            self._fail_by_limit(
                f"Job {self._job.name} has failed because it has reached the specified backoff "
                "limit"
            )
            return False
        anew = [(place, pod) for place, pod, fate in fates if fate in ("restart", "replace")]
        for place, pod in anew:
            self._restart(place, pod)
        return bool(anew)

    def _fate(self, replica: Replica, pod: Object) -> Fate:
        if was_shut_down(pod):
            return "replace"
        if not self._tools.framework.makes_anew(replica):
            return "final"
        if replica.restart == "ExitCode":
            code = exit_code_of(pod, self._tools.framework.container)
            # A pod that failed without a word about its container, as an evicted one does, may be
            # tried again.
            return "restart" if code is None or code >= FIRST_RETRYABLE else "fatal"
        return "restart"

    def _restart(self, place: Place, pod: Object) -> None:
        self._estate.remove_pod(pod)
        text = f"job {self._job.name} is restarting because {place[0]} replica(s) failed."
        self._status.note("Restarting", text)
        self._event("Warning", "Restarting", text)

    def _is_past_backoff(self) -> bool:
        limit = self._job.backoff_limit
        if limit is None:
            return False
        restarts = self._estate.restarts()
        return restarts > 0 if limit == 0 else restarts >= limit

    def _fail_by_limit(self, text: str) -> None:
        """The job is over although its pods are not: they end, so that none restarts for ever or
        keeps its GPUs.

        The real operator leaves them running under cleanPodPolicy None, its default.
        """
        self._fail(text, "Normal")
        for pod in self._estate.pods().values():
            if is_active(pod):
                self._estate.remove_pod(pod)

    def _fail(self, text: str, type: Literal["Normal", "Warning"]) -> None:
        self._count()
        self._status.note("Failed", text)
        self._event(type, "Failed", text)

    def _conclude(self, restarted: bool) -> None:
        """Count, and say whether the job runs, has succeeded or has failed."""
        tallies = self._count()
        framework, status = self._tools.framework, self._status
        if framework.has_succeeded(self._job, tallies):
            text = f"{self._title} is successfully completed."
            status.note("Succeeded", text)
            self._event("Normal", "Succeeded", text)
            return
        for type, tally in tallies.items():
            lost = tally.failed and tally.succeeded + tally.active < self._job.replicas[type].count
            if lost and not framework.forgives(self._job, type):
                self._fail(
                    f"{self._title} is failed because {tally.failed} {type} replica(s) failed.",
                    "Normal",
                )
                return
        if framework.is_running(self._job, tallies) and not restarted:
            status.note("Running", f"{self._title} is running.")

    def _count(self) -> dict[str, Tally]:
        tallies = self._estate.tallies()
        self._status.count(
            tallies,
            {type: selector_text(self._tools.framework, self._job, type) for type in tallies},
        )
        return tallies

    def _clean(self) -> None:
        """What cleanPodPolicy says of the pods of a finished job, each with its service."""
        # The real operator forgets the completion time after a permanent exit code, and such a job
        # then never expires.
        self._status.complete()
        if self._job.clean == "All":
            self._estate.remove_everything()
        elif self._job.clean == "Running":
            self._estate.remove(
                place
                for place, pod in self._estate.pods().items()
                if phase_of(pod) in ("Running", "Pending")
            )
        if self._status.has("Succeeded"):
            self._status.fold_active()
        else:
            self._status.keep_active(
                {type: tally.active for type, tally in self._estate.tallies().items()}
            )

    def _write(self) -> None:
        status, job = self._status, self._job
        if status.has_changed:
            status.body["lastReconcileTime"] = clock.stamp()
            resource = self._tools.framework.resource
            self._tools.objects.modify(
                resource,
                job.namespace,
                job.name,
                lambda it: it.update(status=status.body),
                subresource="status",
            )

    def _expire(self) -> float | None:
        """Remove the job when its ttlSecondsAfterFinished is over; gives the seconds until then."""
        job = self._job
        if job.ttl is None:
            return None
        end = clock.parse(str(self._status.body["completionTime"]))
        left = (end + timedelta(seconds=job.ttl) - clock.now()).total_seconds()
        if left > 0:
            return left
        self._tools.recorder.event(
            job.object, "Normal", self._tools.framework.removed_reason, f"Deleted job: {job.name}"
        )
        options = DeleteOptions(policy="Background", uid=uid_of(job.object))
        self._tools.objects.delete(self._tools.framework.resource, job.namespace, job.name, options)
        return None

    def _tell_exit(self, pod: Object) -> None:
        code = exit_code_of(pod, self._tools.framework.container)
        if code is not None:
            text = f"Pod: {self._job.namespace}.{name_of(pod)} exited with code {code}"
            self._tools.recorder.event(self._job.object, "Normal", "ExitedWithCode", text)

    def _event(self, type: Literal["Normal", "Warning"], word: str, text: str) -> None:
        self._tools.recorder.event(self._job.object, type, self._kind + word, text)
