"""The controller of MPIJobs, as mpi-operator 0.8 runs them (engine facts 1.7): workers as pods, the
launcher as a batch Job.

What mpirun needs to start ranks in the workers' pods on one machine is not here but in the kubelet
(`kubelet.mpi`).
"""

from collections.abc import Iterator, Mapping

from localkube.controllers.children import Children
from localkube.controllers.loop import Key, Trigger
from localkube.controllers.mpi_objects import JOB_NAME, OPERATOR, OPERATOR_NAME
from localkube.controllers.mpi_reconciler import MpiContext, MpiJobReconciler
from localkube.controllers.mpi_spec import MANAGER, find_problems, parse_mpi_job
from localkube.event_recorder import EventRecorder
from localkube.metadata import is_terminating
from localkube.objects import Objects
from localkube.resources import JOBS, MPIJOBS, PODS
from localkube.resources.resource import Resource
from localkube.store import Change


class MpiJobController:
    """Brings the objects and the status of each MPIJob in line with its spec."""

    name = "mpi-job-controller"

    def __init__(self, objects: Objects) -> None:
        recorder = EventRecorder(objects, self.name)
        self._context = MpiContext(
            objects, Children(objects, recorder, kind_in_reason=True), recorder
        )

    def triggers(self) -> Mapping[Resource, Trigger]:
        return {MPIJOBS: self._job_changed, PODS: self._child_changed, JOBS: self._child_changed}

    def reconcile(self, key: Key) -> float | None:
        obj = self._context.objects.find(MPIJOBS, *key)
        # A job on its way out makes nothing any more; what it has made is the garbage collector's.
        if obj is None or is_terminating(obj):
            return None
        job = parse_mpi_job(obj)
        if job.managed_by != MANAGER:
            return None
        wrong = "; ".join(find_problems(job))
        if wrong:
            self._context.recorder.record_event(
                obj, "Warning", "ValidationError", f"Found validation errors: {wrong}"
            )
            return None
        return MpiJobReconciler(self._context, job).reconcile()

    def _job_changed(self, change: Change) -> Iterator[Key]:
        if change.type != "DELETED":
            yield change.record.namespace, change.record.name

    def _child_changed(self, change: Change) -> Iterator[Key]:
        labels = change.record.labels
        if labels.get(OPERATOR_NAME) == OPERATOR and JOB_NAME in labels:
            yield change.record.namespace, labels[JOB_NAME]
