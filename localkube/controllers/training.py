"""The controller of the kubeflow.org training kinds, one for each `Framework`."""

from localkube.controllers.children import Children
from localkube.controllers.framework import OPERATOR, Framework, TrainingJob, operator_name
from localkube.controllers.job_memory import JobMemory
from localkube.controllers.operator_controller import OperatorController
from localkube.controllers.owned_objects import DEFAULT_PODS_AHEAD
from localkube.controllers.ports import PortAllocator
from localkube.controllers.replica_services import TrainingContext
from localkube.controllers.training_reconciler import TrainingReconciler
from localkube.controllers.trouble_reports import TroubleReports
from localkube.event_recorder import EventRecorder
from localkube.objects import Objects
from localkube.resources import PODS, SERVICES


class TrainingController(OperatorController):
    """The controller of one training kind: its jobs own pods, each with a service."""

    manager = OPERATOR
    owned_resources = (PODS, SERVICES)
    _context: TrainingContext

    def __init__(
        self,
        objects: Objects,
        framework: Framework,
        ports: PortAllocator,
        pods_ahead: int = DEFAULT_PODS_AHEAD,
    ) -> None:
        super().__init__()
        self.name = self.operator_label = operator_name(framework)
        recorder = EventRecorder(objects, self.name)
        children = Children(objects, recorder, kind_in_reason=True)
        self._context = TrainingContext(
            objects,
            framework,
            children,
            recorder,
            pods_ahead,
            ports,
            TroubleReports(recorder),
        )

    def _reconcile_job(self, job: TrainingJob, memory: JobMemory) -> float | None:
        return TrainingReconciler(self._context, job, memory).reconcile()
