"""What the controllers of the operators' jobs share: which changes concern which job, and which
jobs are theirs.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

from localkube.controllers.framework import TrainingJob, parse_training_job
from localkube.controllers.job_memory import JobMemories, JobMemory
from localkube.controllers.loop import Key, Trigger
from localkube.controllers.owned_objects import OperatorContext
from localkube.controllers.training_pods import JOB_NAME, OPERATOR_NAME
from localkube.metadata import is_terminating, uid_of
from localkube.resources import PODS
from localkube.resources.resource import Resource
from localkube.store import Change


class OperatorController(ABC):
    """Bring the objects and the status of each job of one kind in line with its spec."""

    manager: str
    """The value of managedBy that means this operator; a job without one is its own too."""
    operator_label: str
    """The operator's name in the labels of what it makes."""
    owned_resources: Sequence[Resource]
    """The resources whose changes concern the job that their labels name."""
    _context: OperatorContext

    def __init__(self) -> None:
        self._memories = JobMemories()

    @abstractmethod
    def _reconcile_job(self, job: TrainingJob, memory: JobMemory) -> float | None: ...

    def triggers(self) -> Mapping[Resource, Trigger]:
        return {
            self._context.kind.resource: self._job_changed,
            **dict.fromkeys(self.owned_resources, self._child_changed),
        }

    def reconcile(self, key: Key) -> float | None:
        obj = self._context.objects.find(self._context.kind.resource, *key)
        # A terminating job makes nothing any more; the garbage collector removes what it made.
        if obj is None or is_terminating(obj):
            return None
        job = parse_training_job(self._context.kind, obj)
        if job.managed_by not in (None, "", self.manager):
            return None
        return self._reconcile_job(job, self._memories.get(uid_of(obj)))

    def _job_changed(self, change: Change) -> Iterator[Key]:
        if change.type == "DELETED":
            self._memories.forget(change.record.uid)
        else:
            yield change.record.namespace, change.record.name

    def _child_changed(self, change: Change) -> Iterator[Key]:
        labels = change.record.labels
        if change.key == PODS.key:
            self._remember_pod(change)
        if labels.get(OPERATOR_NAME) == self.operator_label and JOB_NAME in labels:
            yield change.record.namespace, labels[JOB_NAME]

    def _remember_pod(self, change: Change) -> None:
        record = change.record
        # A job of which nothing is remembered is looked through as a whole.
        memory = self._memories.find(record.controller)
        if memory is None:
            return
        if change.type == "DELETED":
            memory.removed_names[record.name] = None
            memory.changed_names.pop(record.name, None)
            memory.settled_uids.discard(record.uid)
        else:
            memory.changed_names[record.name] = None
