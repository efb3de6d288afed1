"""The controller of the kubeflow.org training kinds, one for each `Framework`: what all of them
have in common.
"""

from collections.abc import Iterator, Mapping

from localkube.controllers.children import Children
from localkube.controllers.framework import OPERATOR, Framework, operator_name, parse_training_job
from localkube.controllers.loop import Key, Trigger
from localkube.controllers.owned_objects import TrainingContext
from localkube.controllers.ports import PortAllocator
from localkube.controllers.training_pods import JOB_NAME, OPERATOR_NAME
from localkube.controllers.training_reconciler import TrainingReconciler
from localkube.controllers.trouble_reports import TroubleReports
from localkube.event_recorder import EventRecorder
from localkube.metadata import is_terminating
from localkube.objects import Objects
from localkube.resources import PODS, SERVICES
from localkube.resources.resource import Resource
from localkube.store import Change


class TrainingController:
    """Brings the pods, services and status of each job of one kind in line with its spec."""

    def __init__(self, objects: Objects, framework: Framework, ports: PortAllocator) -> None:
        recorder = EventRecorder(objects, operator_name(framework))
        children = Children(objects, recorder, kind_in_reason=True)
        self._context = TrainingContext(
            objects, framework, children, recorder, ports, TroubleReports(recorder)
        )

    @property
    def name(self) -> str:
        return operator_name(self._context.framework)

    def triggers(self) -> Mapping[Resource, Trigger]:
        return {
            self._context.framework.resource: self._job_changed,
            PODS: self._child_changed,
            SERVICES: self._child_changed,
        }

    def reconcile(self, key: Key) -> float | None:
        obj = self._context.objects.find(self._context.framework.resource, *key)
        # A job on its way out makes nothing any more; what it has made is the garbage collector's.
        if obj is None or is_terminating(obj):
            return None
        job = parse_training_job(self._context.framework, obj)
        if job.managed_by != OPERATOR:
            return None
        return TrainingReconciler(self._context, job).reconcile()

    def _job_changed(self, change: Change) -> Iterator[Key]:
        if change.type != "DELETED":
            yield change.record.namespace, change.record.name

    def _child_changed(self, change: Change) -> Iterator[Key]:
        labels = change.record.labels
        if labels.get(OPERATOR_NAME) == self.name and JOB_NAME in labels:
            yield change.record.namespace, labels[JOB_NAME]
