"""One look at one MPIJob: its objects made and removed, its launcher followed, its status
written.
"""

from dataclasses import dataclass
from typing import Literal

from localkube import clock
from localkube.controllers.children import RETRY_AFTER, Children
from localkube.controllers.mpi_objects import (
    JOB_ROLE,
    build_config,
    build_launcher,
    build_service,
    build_worker,
    config_name,
    hostfile,
    launcher_name,
    worker_name,
)
from localkube.controllers.mpi_spec import LAUNCHER, WHEN_READY, WORKER, MpiJob
from localkube.controllers.podstate import is_active, is_ready, phase_of, was_shut_down
from localkube.controllers.training_status import TrainingStatus
from localkube.metadata import (
    Object,
    condition_of,
    is_controlled_by,
    is_terminating,
    labels_of,
    name_of,
    uid_of,
)
from localkube.objects import Objects
from localkube.recorder import Recorder
from localkube.resources import CONFIGMAPS, JOBS, MPIJOBS, PODS, SERVICES
from localkube.resources.resource import Resource

BATCH = 25
"""Workers that one look starts, so that a job of hundreds does not hold up everything else."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What the controller works with; the same for all jobs."""

    objects: Objects
    children: Children
    recorder: Recorder


class MpiRun:
    """The state of one look. The status is built up as a copy and written once, at the end."""

    def __init__(self, tools: Tools, job: MpiJob) -> None:
        self._tools = tools
        self._job = job
        self._title = f"MPIJob {job.namespace}/{job.name}"
        self._status = TrainingStatus(MPIJOBS.kind, job.object.get("status"))

    def go(self) -> float | None:
        """Do what there is to do; gives the seconds after which to look again."""
        status, job = self._status, self._job
        text = f"{self._title} is created."
        if not status.conditions and status.note("Created", text):
            self._event("Normal", "Created", text)
        again = None
        if status.is_finished:
            self._clean()
        else:
            if not job.suspended and "startTime" not in status.body:
                status.start()
            again = self._drive()
            self._conclude()
            if status.is_finished:
                self._clean()
        if status.has_changed:
            status.body["lastReconcileTime"] = clock.stamp()
            self._tools.objects.modify(
                MPIJOBS,
                job.namespace,
                job.name,
                lambda it: it.update(status=status.body),
                subresource="status",
            )
        return again

    def _drive(self) -> float | None:
        """Make what is missing, and have the launcher rest or run as the job does."""
        launcher = self._launcher()
        if launcher is not None and _end_of(launcher) is not None:
            return None
        if (
            not self._ensure(SERVICES, self._job.name, build_service(self._job))
            or not self._ensure_config()
        ):
            return RETRY_AFTER
        if self._job.suspended:
            self._remove(self._workers())
        else:
            again = self._ensure_workers()
            if again is not None:
                return again
        if launcher is not None:
            self._align(launcher)
        elif self._may_launch():
            assert self._job.launcher is not None, "a job without one is refused"
            made = self._tools.children.create(
                self._job.object, JOBS, build_launcher(self._job, self._job.launcher)
            )
            return None if made is not None else RETRY_AFTER
        return None

    def _ensure(self, resource: Resource, name: str, wanted: Object) -> bool:
        """False where a namesake that is somebody else's stands in the way, or the creation is
        refused; an event tells.
        """
        found = self._tools.objects.find(resource, self._job.namespace, name)
        if found is None:
            return self._tools.children.create(self._job.object, resource, wanted) is not None
        if is_controlled_by(found, self._job.object):
            return True
        text = (
            f'Resource "{name}" of Kind "{resource.kind}" already exists and is not managed by '
            "MPIJob"
        )
        self._tools.recorder.event(self._job.object, "Warning", "ErrResourceExists", text)
        return False

    def _ensure_config(self) -> bool:
        name = config_name(self._job)
        if not self._ensure(CONFIGMAPS, name, build_config(self._job)):
            return False
        found = self._tools.objects.get(CONFIGMAPS, self._job.namespace, name)
        data = {"hostfile": hostfile(self._job)}
        if found.get("data") != data:
            self._tools.objects.modify(
                CONFIGMAPS, self._job.namespace, name, lambda it: it.update(data=data)
            )
        return True

    def _ensure_workers(self) -> float | None:
        """Make the workers that are not there, remove surplus ones, and make those anew that went
        down with the node.
        """
        role, present = self._job.worker, {name_of(pod): pod for pod in self._workers()}
        wanted = [worker_name(self._job, index) for index in range(self._job.workers)]
        self._remove(
            [pod for name, pod in present.items() if name not in wanted or was_shut_down(pod)]
        )
        missing = [index for index, name in enumerate(wanted) if name not in present]
        for index in missing[:BATCH]:
            assert role is not None, "there are none without it"
            if (
                self._tools.children.create(
                    self._job.object, PODS, build_worker(self._job, role, index)
                )
                is None
            ):
                return RETRY_AFTER
        return 0 if len(missing) > BATCH else None

    def _may_launch(self) -> bool:
        return self._job.creation != WHEN_READY or all(is_ready(pod) for pod in self._workers())

    def _align(self, launcher: Object) -> None:
        if bool(launcher["spec"].get("suspend")) != self._job.suspended:
            wanted = self._job.suspended
            self._tools.objects.modify(
                JOBS,
                self._job.namespace,
                name_of(launcher),
                lambda it: it["spec"].update(suspend=wanted),
            )

    def _launcher(self) -> Object | None:
        found = self._tools.objects.find(JOBS, self._job.namespace, launcher_name(self._job))
        return found if found is not None and is_controlled_by(found, self._job.object) else None

    def _workers(self) -> list[Object]:
        pods = self._tools.objects.owned(PODS, uid_of(self._job.object))
        return [
            pod
            for pod in pods
            if is_controlled_by(pod, self._job.object) and labels_of(pod).get(JOB_ROLE) == "worker"
        ]

    def _remove(self, pods: list[Object]) -> None:
        for pod in pods:
            if not is_terminating(pod):
                self._tools.children.delete(self._job.object, PODS, pod)

    def _conclude(self) -> None:
        """Say whether the job is suspended, runs, or has come to its end, which is its
        launcher's.
        """
        launcher, workers = self._launcher(), self._workers()
        active = 0
        if launcher is not None:
            active = sum(
                phase_of(pod) == "Running"
                for pod in self._tools.objects.owned(PODS, uid_of(launcher))
            )
        running = sum(phase_of(pod) == "Running" and not is_terminating(pod) for pod in workers)
        self._count(launcher, active, workers)
        self._tell_suspension()
        end = None if launcher is None else _end_of(launcher)
        if launcher is not None and end is not None:
            self._end(launcher, end)
        elif active and running == self._job.workers and not self._job.suspended:
            text = f"{self._title} is running."
            if self._status.note("Running", text):
                self._event("Normal", "Running", text)

    def _count(self, launcher: Object | None, active: int, workers: list[Object]) -> None:
        phases = [phase_of(pod) for pod in workers]
        worker = {
            "active": phases.count("Running"),
            "succeeded": phases.count("Succeeded"),
            "failed": phases.count("Failed"),
        }
        counts: Object = {WORKER: worker}
        if launcher is not None:
            status = launcher.get("status") or {}
            won = (_end_of(launcher) or {}).get("type") == "Complete"
            counts[LAUNCHER] = {
                "active": active,
                "succeeded": int(won),
                "failed": int(status.get("failed") or 0),
            }
        self._status.body["replicaStatuses"] = {
            type: {word: count for word, count in found.items() if count}
            for type, found in counts.items()
        }

    def _tell_suspension(self) -> None:
        status = self._status
        if self._job.suspended:
            if status.note("Suspended", "MPIJob suspended"):
                self._event("Normal", "Suspended", "MPIJob suspended")
            if condition_of(status.conditions, "Running") is not None:
                status.note(
                    "Running", f"{self._title} is suspended.", status=False, word="Suspended"
                )
        elif condition_of(status.conditions, "Suspended") is not None and status.note(
            "Suspended", "MPIJob resumed", status=False, word="Resumed"
        ):
            self._event("Normal", "Resumed", "MPIJob resumed")
            status.start()

    def _end(self, launcher: Object, end: Object) -> None:
        status = self._status
        if end["type"] == "Complete":
            text = f"{self._title} successfully completed."
            status.body.setdefault(
                "completionTime",
                (launcher.get("status") or {}).get("completionTime") or clock.stamp(),
            )
            if status.note("Succeeded", text):
                self._event("Normal", "Succeeded", text)
            return
        reason, text = (
            str(end.get("reason") or "MPIJobFailed"),
            str(end.get("message") or f"{self._title} has failed"),
        )
        status.complete()
        if status.note("Failed", text, reason=reason):
            self._tools.recorder.event(self._job.object, "Warning", reason, text)

    def _clean(self) -> None:
        """What cleanPodPolicy says of the workers of a finished job. The launcher's pods stay: they
        are its Job's.
        """
        if self._job.clean == "None":
            return
        going = [pod for pod in self._workers() if self._job.clean == "All" or is_active(pod)]
        self._remove(going)
        for role, counts in (self._status.body.get("replicaStatuses") or {}).items():
            if role == WORKER:
                counts.pop("active", None)

    def _event(self, type: Literal["Normal", "Warning"], word: str, text: str) -> None:
        self._tools.recorder.event(self._job.object, type, f"MPIJob{word}", text)


def _end_of(launcher: Object) -> Object | None:
    """The condition that says how the launcher's Job has ended; None while it has not."""
    conditions = (launcher.get("status") or {}).get("conditions") or ()
    ends = (condition_of(conditions, kind) for kind in ("Complete", "Failed"))
    return next((end for end in ends if end is not None and end.get("status") == "True"), None)
