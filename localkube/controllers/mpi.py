"""The controller of MPIJobs as mpi-operator 0.8 runs them: workers as pods, the launcher as a batch
Job.

The rules are in engine facts 1.7. What mpirun needs to start ranks in the workers' pods on one
machine is in the kubelet (`kubelet.mpi`).
"""

from localkube.controllers.children import Children
from localkube.controllers.framework import TrainingJob
from localkube.controllers.job_memory import JobMemory
from localkube.controllers.mpi_objects import OPERATOR
from localkube.controllers.mpi_reconciler import MpiJobReconciler
from localkube.controllers.mpi_spec import MANAGER, Mpi, find_problems
from localkube.controllers.operator_controller import OperatorController
from localkube.controllers.owned_objects import DEFAULT_PODS_AHEAD, OperatorContext
from localkube.event_recorder import EventRecorder
from localkube.objects import Objects
from localkube.resources import JOBS, PODS


class MpiJobController(OperatorController):
    """The controller of MPIJobs, each of which owns pods and a Job."""

    name = "mpi-job-controller"
    manager = MANAGER
    operator_label = OPERATOR
    owned_resources = (PODS, JOBS)

    def __init__(self, objects: Objects, pods_ahead: int = DEFAULT_PODS_AHEAD) -> None:
        super().__init__()
        recorder = EventRecorder(objects, self.name)
        children = Children(objects, recorder, kind_in_reason=True)
        self._context = OperatorContext(objects, Mpi(), children, recorder, pods_ahead)

    def _reconcile_job(self, job: TrainingJob, memory: JobMemory) -> float | None:
        """Advance a valid job; report the problems of another as an event, and leave it alone."""
        problems = "; ".join(find_problems(job))
        if not problems:
            return MpiJobReconciler(self._context, job, memory).reconcile()
        self._context.recorder.record_event(
            job.object, "Warning", "ValidationError", f"Found validation errors: {problems}"
        )
        return None
