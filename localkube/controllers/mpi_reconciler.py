"""One look at one MPIJob: its objects made and removed, its launcher followed, its status
written.
"""

from dataclasses import dataclass
from typing import Literal

from localkube import clock
from localkube.controllers.children import RETRY_AFTER, Children
from localkube.controllers.mpi_objects import (
    JOB_ROLE,
    build_config_map,
    build_hostfile,
    build_launcher,
    build_service,
    build_worker,
    config_map_name,
    launcher_name,
    worker_name,
)
from localkube.controllers.mpi_spec import LAUNCHER, WHEN_READY, WORKER, MpiJob
from localkube.controllers.pod_state import is_active, is_ready, phase_of, was_shut_down
from localkube.controllers.training_status import TrainingStatus
from localkube.event_recorder import EventRecorder
from localkube.metadata import (
    Object,
    find_condition,
    is_controlled_by,
    is_terminating,
    labels_of,
    name_of,
    uid_of,
)
from localkube.objects import Objects
from localkube.resources import CONFIGMAPS, JOBS, MPIJOBS, PODS, SERVICES
from localkube.resources.resource import Resource

WORKERS_PER_RECONCILE = 25
"""Workers that one look starts, so that a job of hundreds does not hold up everything else."""


@dataclass(frozen=True, slots=True)
class MpiContext:
    """What the controller works with; the same for all jobs."""

    objects: Objects
    children: Children
    recorder: EventRecorder


class MpiJobReconciler:
    """The state of one look. The status is built up as a copy and written once, at the end."""

    def __init__(self, context: MpiContext, job: MpiJob) -> None:
        self._context = context
        self._job = job
        self._title = f"MPIJob {job.namespace}/{job.name}"
        self._status = TrainingStatus(MPIJOBS.kind, job.object.get("status"))

    def reconcile(self) -> float | None:
        """Do what there is to do; gives the seconds after which to look again."""
        status, job = self._status, self._job
        text = f"{self._title} is created."
        if not status.conditions and status.set_condition("Created", text):
            self._record_event("Normal", "Created", text)
        again = None
        if status.is_finished:
            self._apply_clean_pod_policy()
        else:
            if not job.suspended and "startTime" not in status.body:
                status.set_start_time()
            again = self._ensure_objects()
            self._update_conditions()
            if status.is_finished:
                self._apply_clean_pod_policy()
        if status.has_changed:
            status.body["lastReconcileTime"] = clock.format_time()
            self._context.objects.modify(
                MPIJOBS,
                job.namespace,
                job.name,
                lambda it: it.update(status=status.body),
                subresource="status",
            )
        return again

    def _ensure_objects(self) -> float | None:
        """Make what is missing, and have the launcher rest or run as the job does."""
        launcher = self._find_launcher()
        if launcher is not None and _find_end_condition(launcher) is not None:
            return None
        if (
            not self._ensure_object(SERVICES, self._job.name, build_service(self._job))
            or not self._ensure_config_map()
        ):
            return RETRY_AFTER
        if self._job.suspended:
            self._delete_pods(self._list_workers())
        else:
            again = self._ensure_workers()
            if again is not None:
                return again
        if launcher is not None:
            self._align_suspension(launcher)
        elif self._can_launch():
            assert self._job.launcher is not None, "a job without one is refused"
            made = self._context.children.create(
                self._job.object, JOBS, build_launcher(self._job, self._job.launcher)
            )
            return None if made is not None else RETRY_AFTER
        return None

    def _ensure_object(self, resource: Resource, name: str, wanted: Object) -> bool:
        """False where a namesake that is somebody else's stands in the way, or the creation is
        refused; an event tells.
        """
        found = self._context.objects.find(resource, self._job.namespace, name)
        if found is None:
            return self._context.children.create(self._job.object, resource, wanted) is not None
        if is_controlled_by(found, self._job.object):
            return True
        text = (
            f'Resource "{name}" of Kind "{resource.kind}" already exists and is not managed by '
            "MPIJob"
        )
        self._context.recorder.record_event(self._job.object, "Warning", "ErrResourceExists", text)
        return False

    def _ensure_config_map(self) -> bool:
        name = config_map_name(self._job)
        if not self._ensure_object(CONFIGMAPS, name, build_config_map(self._job)):
            return False
        found = self._context.objects.get(CONFIGMAPS, self._job.namespace, name)
        data = {"hostfile": build_hostfile(self._job)}
        if found.get("data") != data:
            self._context.objects.modify(
                CONFIGMAPS, self._job.namespace, name, lambda it: it.update(data=data)
            )
        return True

    def _ensure_workers(self) -> float | None:
        """Make the workers that are not there, remove surplus ones, and make those anew that went
        down with the node.
        """
        role, present = self._job.worker, {name_of(pod): pod for pod in self._list_workers()}
        wanted = [worker_name(self._job, index) for index in range(self._job.worker_count)]
        self._delete_pods(
            [pod for name, pod in present.items() if name not in wanted or was_shut_down(pod)]
        )
        missing = [index for index, name in enumerate(wanted) if name not in present]
        for index in missing[:WORKERS_PER_RECONCILE]:
            assert role is not None, "there are none without it"
            if (
                self._context.children.create(
                    self._job.object, PODS, build_worker(self._job, role, index)
                )
                is None
            ):
                return RETRY_AFTER
        return 0 if len(missing) > WORKERS_PER_RECONCILE else None

    def _can_launch(self) -> bool:
        return self._job.launcher_creation_policy != WHEN_READY or all(
            is_ready(pod) for pod in self._list_workers()
        )

    def _align_suspension(self, launcher: Object) -> None:
        if bool(launcher["spec"].get("suspend")) != self._job.suspended:
            wanted = self._job.suspended
            self._context.objects.modify(
                JOBS,
                self._job.namespace,
                name_of(launcher),
                lambda it: it["spec"].update(suspend=wanted),
            )

    def _find_launcher(self) -> Object | None:
        found = self._context.objects.find(JOBS, self._job.namespace, launcher_name(self._job))
        return found if found is not None and is_controlled_by(found, self._job.object) else None

    def _list_workers(self) -> list[Object]:
        pods = self._context.objects.list_owned(PODS, uid_of(self._job.object))
        return [
            pod
            for pod in pods
            if is_controlled_by(pod, self._job.object) and labels_of(pod).get(JOB_ROLE) == "worker"
        ]

    def _delete_pods(self, pods: list[Object]) -> None:
        for pod in pods:
            if not is_terminating(pod):
                self._context.children.delete(self._job.object, PODS, pod)

    def _update_conditions(self) -> None:
        """Say whether the job is suspended, runs, or has come to its end, which is its
        launcher's.
        """
        launcher, workers = self._find_launcher(), self._list_workers()
        active = 0
        if launcher is not None:
            active = sum(
                phase_of(pod) == "Running"
                for pod in self._context.objects.list_owned(PODS, uid_of(launcher))
            )
        running = sum(phase_of(pod) == "Running" and not is_terminating(pod) for pod in workers)
        self._set_replica_statuses(launcher, active, workers)
        self._report_suspension()
        end = None if launcher is None else _find_end_condition(launcher)
        if launcher is not None and end is not None:
            self._set_end_condition(launcher, end)
        elif active and running == self._job.worker_count and not self._job.suspended:
            text = f"{self._title} is running."
            if self._status.set_condition("Running", text):
                self._record_event("Normal", "Running", text)

    def _set_replica_statuses(
        self, launcher: Object | None, active: int, workers: list[Object]
    ) -> None:
        phases = [phase_of(pod) for pod in workers]
        worker = {
            "active": phases.count("Running"),
            "succeeded": phases.count("Succeeded"),
            "failed": phases.count("Failed"),
        }
        counts: Object = {WORKER: worker}
        if launcher is not None:
            status = launcher.get("status") or {}
            won = (_find_end_condition(launcher) or {}).get("type") == "Complete"
            counts[LAUNCHER] = {
                "active": active,
                "succeeded": int(won),
                "failed": int(status.get("failed") or 0),
            }
        self._status.body["replicaStatuses"] = {
            type: {word: count for word, count in found.items() if count}
            for type, found in counts.items()
        }

    def _report_suspension(self) -> None:
        status = self._status
        if self._job.suspended:
            if status.set_condition("Suspended", "MPIJob suspended"):
                self._record_event("Normal", "Suspended", "MPIJob suspended")
            if find_condition(status.conditions, "Running") is not None:
                status.set_condition(
                    "Running", f"{self._title} is suspended.", status=False, reason_word="Suspended"
                )
        elif find_condition(status.conditions, "Suspended") is not None and status.set_condition(
            "Suspended", "MPIJob resumed", status=False, reason_word="Resumed"
        ):
            self._record_event("Normal", "Resumed", "MPIJob resumed")
            status.set_start_time()

    def _set_end_condition(self, launcher: Object, end: Object) -> None:
        status = self._status
        if end["type"] == "Complete":
            text = f"{self._title} successfully completed."
            status.body.setdefault(
                "completionTime",
                (launcher.get("status") or {}).get("completionTime") or clock.format_time(),
            )
            if status.set_condition("Succeeded", text):
                self._record_event("Normal", "Succeeded", text)
            return
        reason, text = (
            str(end.get("reason") or "MPIJobFailed"),
            str(end.get("message") or f"{self._title} has failed"),
        )
        status.set_completion_time()
        if status.set_condition("Failed", text, reason=reason):
            self._context.recorder.record_event(self._job.object, "Warning", reason, text)

    def _apply_clean_pod_policy(self) -> None:
        """What cleanPodPolicy says of the workers of a finished job. The launcher's pods stay: they
        are its Job's.
        """
        if self._job.clean_pod_policy == "None":
            return
        going = [
            pod
            for pod in self._list_workers()
            if self._job.clean_pod_policy == "All" or is_active(pod)
        ]
        self._delete_pods(going)
        for role, counts in (self._status.body.get("replicaStatuses") or {}).items():
            if role == WORKER:
                counts.pop("active", None)

    def _record_event(self, type: Literal["Normal", "Warning"], word: str, text: str) -> None:
        self._context.recorder.record_event(self._job.object, type, f"MPIJob{word}", text)


def _find_end_condition(launcher: Object) -> Object | None:
    """The condition that says how the launcher's Job has ended; None while it has not."""
    conditions = (launcher.get("status") or {}).get("conditions") or ()
    ends = (find_condition(conditions, kind) for kind in ("Complete", "Failed"))
    return next((end for end in ends if end is not None and end.get("status") == "True"), None)
