"""One reconciliation of one MPIJob: makes and removes its objects, follows its launcher, writes its
status.
"""

from functools import partial
from itertools import islice

from localkube import clock
from localkube.controllers.children import RETRY_AFTER
from localkube.controllers.framework import PodCounts, TrainingJob
from localkube.controllers.job_memory import JobMemory
from localkube.controllers.job_rules import find_end_condition
from localkube.controllers.mpi_objects import (
    build_config_map,
    build_hostfile,
    build_launcher,
    build_service,
    build_worker,
    config_map_name,
    launcher_name,
)
from localkube.controllers.mpi_spec import (
    LAUNCHER,
    WHEN_READY,
    WORKER,
    count_workers,
    creation_policy,
)
from localkube.controllers.operator_reconciler import OperatorReconciler, find_earliest
from localkube.controllers.owned_objects import PODS_PER_RECONCILE, OperatorContext
from localkube.metadata import Object, is_controlled_by, name_of, uid_of
from localkube.resources import CONFIGMAPS, JOBS, PODS, SERVICES
from localkube.resources.resource import Resource


class MpiJobReconciler(OperatorReconciler):
    """One reconciliation of a job that ends as its launcher does.

    Its workers are its own pods; the launcher's pods belong to a batch Job, and so do restarts,
    limits and the time to live.
    """

    def __init__(self, context: OperatorContext, job: TrainingJob, memory: JobMemory) -> None:
        workers = {type: replica for type, replica in job.replicas.items() if type == WORKER}
        super().__init__(context, job, workers, f"{job.namespace}/{job.name}", memory)

    def _advance_job(self) -> float | None:
        if not self._status.conditions:
            self._report_condition("Created", f"{self._title} is created.")
        delay = self._ensure_objects()
        if self._job.suspended:
            self._report_condition("Suspended", "MPIJob suspended")
            self._stop_running()
        else:
            self._start_or_resume("MPIJob resumed")
        self._update_conditions()
        return delay

    def _ensure_objects(self) -> float | None:
        """Create the missing objects, and suspend or resume the launcher together with the job."""
        launcher = self._find_launcher()
        if launcher is not None and find_end_condition(launcher) is not None:
            return None
        has_service = self._ensure_object(SERVICES, build_service(self._job))
        if not has_service or not self._ensure_config_map():
            return RETRY_AFTER
        suspended = self._job.suspended
        delay = self._owned_objects.remove_all() if suspended else self._ensure_workers()
        if delay is not None:
            return delay
        if launcher is not None:
            self._align_suspension(launcher)
        elif self._can_launch():
            new_launcher = build_launcher(self._job)
            created = self._context.children.create(self._job.object, JOBS, new_launcher)
            return None if created is not None else RETRY_AFTER
        return None

    def _ensure_object(self, resource: Resource, obj: Object) -> bool:
        """Create an object unless the job owns it already.

        Returns False, with an event, when an object of that name belongs to somebody else or the
        creation is refused.
        """
        name = name_of(obj)
        existing = self._context.objects.find(resource, self._job.namespace, name)
        if existing is None:
            return self._context.children.create(self._job.object, resource, obj) is not None
        if is_controlled_by(existing, self._job.object):
            return True
        text = (
            f'Resource "{name}" of Kind "{resource.kind}" already exists and is not managed by '
            "MPIJob"
        )
        self._context.recorder.record_event(self._job.object, "Warning", "ErrResourceExists", text)
        return False

    def _ensure_config_map(self) -> bool:
        name = config_map_name(self._job)
        version = self._find_hostfile_version()
        if version is not None and self._memory.hostfile_version == version:
            return True
        if not self._ensure_object(CONFIGMAPS, build_config_map(self._job)):
            return False
        config_map = self._context.objects.get(CONFIGMAPS, self._job.namespace, name)
        data = {"hostfile": build_hostfile(self._job)}
        if config_map.get("data") != data:
            self._context.objects.modify(
                CONFIGMAPS, self._job.namespace, name, lambda obj: obj.update(data=data)
            )
        self._memory.hostfile_version = self._find_hostfile_version()
        return True

    def _find_hostfile_version(self) -> tuple[int, int] | None:
        """Return the generation of the job and the version of its hostfile, None without one.

        A hostfile of ten thousand lines is not built again while both are the same.
        """
        name, generation = config_map_name(self._job), self._job.object["metadata"]["generation"]
        record = self._context.objects.store.find(CONFIGMAPS.key, self._job.namespace, name)
        return None if record is None else (generation, record.rv)

    def _ensure_workers(self) -> float | None:
        """Create missing workers, remove surplus ones, and replace those that a node shutdown
        ended.
        """
        surplus_delay = self._owned_objects.remove_surplus_replicas()
        self._report_held_back_pods()
        # Pods of other roles are left out before the batch is cut: enough of them would fill it.
        records = self._owned_objects.iterate_pods(
            lambda tally: tally.shut_down and not tally.terminating and tally.role == WORKER.lower()
        )
        for _, pod in self._owned_objects.read_pods(list(islice(records, PODS_PER_RECONCILE))):
            self._owned_objects.remove_pod(pod)
        missing = self._owned_objects.find_missing_replicas()
        delay = self._owned_objects.create_pods(missing, partial(build_worker, self._job))
        return find_earliest(surplus_delay, delay)

    def _can_launch(self) -> bool:
        return creation_policy(self._job) != WHEN_READY or self._owned_objects.are_all_ready()

    def _align_suspension(self, launcher: Object) -> None:
        if bool(launcher["spec"].get("suspend")) != self._job.suspended:
            suspended = self._job.suspended
            self._context.objects.modify(
                JOBS,
                self._job.namespace,
                name_of(launcher),
                lambda obj: obj["spec"].update(suspend=suspended),
            )

    def _find_launcher(self) -> Object | None:
        launcher = self._context.objects.find(JOBS, self._job.namespace, launcher_name(self._job))
        return (
            launcher
            if launcher is not None and is_controlled_by(launcher, self._job.object)
            else None
        )

    def _update_conditions(self) -> None:
        """Count the pods, and set whether the job runs or has ended, as its launcher has."""
        launcher = self._find_launcher()
        workers = self._owned_objects.count_pods().get(WORKER, PodCounts())
        if launcher is None:
            self._status.set_replica_statuses({WORKER: workers}, {})
            return
        counts = self._count_launcher(launcher)
        self._status.set_replica_statuses({WORKER: workers, LAUNCHER: counts}, {})
        end = find_end_condition(launcher)
        if end is not None:
            self._set_end_condition(launcher, end)
        elif (
            counts.active and workers.active == count_workers(self._job) and not self._job.suspended
        ):
            self._report_condition("Running", f"{self._title} is running.")

    def _count_launcher(self, launcher: Object) -> PodCounts:
        tallies = self._context.objects.store.count_controlled(PODS.key, uid_of(launcher))
        return PodCounts(
            active=sum(count for tally, count in tallies.items() if tally.phase == "Running"),
            succeeded=int((find_end_condition(launcher) or {}).get("type") == "Complete"),
            failed=int((launcher.get("status") or {}).get("failed") or 0),
        )

    def _set_end_condition(self, launcher: Object, end: Object) -> None:
        if end["type"] == "Complete":
            self._status.body.setdefault(
                "completionTime",
                (launcher.get("status") or {}).get("completionTime") or clock.format_time(),
            )
            self._report_condition("Succeeded", f"{self._title} successfully completed.")
        else:
            self._report_condition(
                "Failed",
                str(end.get("message") or f"{self._title} has failed"),
                reason=str(end.get("reason") or "MPIJobFailed"),
                event_type="Warning",
            )

    def _recount_pods(self) -> None:
        """Count no worker as active where cleanPodPolicy removes them."""
        if self._job.clean_pod_policy != "None":
            statuses = self._status.body.get("replicaStatuses") or {}
            statuses.get(WORKER, {}).pop("active", None)
