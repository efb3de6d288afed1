"""The controller of the kubeflow.org training kinds, one for each `Framework`: what all of them
have in common.
"""

from collections.abc import Iterator, Mapping

from localkube.controllers.children import Children
from localkube.controllers.framework import OPERATOR, Framework, operator_of, read
from localkube.controllers.loop import Key, Trigger
from localkube.controllers.mirror import Mirror
from localkube.controllers.ports import Ports
from localkube.controllers.training_estate import Tools
from localkube.controllers.training_pods import JOB_NAME, OPERATOR_NAME
from localkube.controllers.training_run import TrainingRun
from localkube.metadata import is_terminating
from localkube.objects import Objects
from localkube.recorder import Recorder
from localkube.resources import PODS, SERVICES
from localkube.resources.resource import Resource
from localkube.store import Change


class Training:
    """Brings the pods, services and status of each job of one kind in line with its spec."""

    def __init__(self, objects: Objects, framework: Framework, ports: Ports) -> None:
        recorder = Recorder(objects, operator_of(framework))
        children = Children(objects, recorder, kind_in_reason=True)
        self._tools = Tools(objects, framework, children, recorder, ports, Mirror(recorder))

    @property
    def name(self) -> str:
        return operator_of(self._tools.framework)

    def triggers(self) -> Mapping[Resource, Trigger]:
        return {
            self._tools.framework.resource: self._job_changed,
            PODS: self._child_changed,
            SERVICES: self._child_changed,
        }

    def reconcile(self, key: Key) -> float | None:
        obj = self._tools.objects.find(self._tools.framework.resource, *key)
        # A job on its way out makes nothing any more; what it has made is the garbage collector's.
        if obj is None or is_terminating(obj):
            return None
        job = read(self._tools.framework, obj)
        if job.managed_by != OPERATOR:
            return None
        return TrainingRun(self._tools, job).go()

    def _job_changed(self, change: Change) -> Iterator[Key]:
        if change.type != "DELETED":
            yield change.record.namespace, change.record.name

    def _child_changed(self, change: Change) -> Iterator[Key]:
        labels = change.record.labels
        if labels.get(OPERATOR_NAME) == self.name and JOB_NAME in labels:
            yield change.record.namespace, labels[JOB_NAME]
