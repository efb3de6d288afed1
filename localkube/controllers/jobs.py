"""The controller of batch/v1 Jobs, as in Kubernetes 1.31 and later.

A pod that a node shutdown ended is replaced and counts for nothing.
"""

from collections.abc import Iterator, Mapping
from itertools import islice

from localkube.controllers.children import Children
from localkube.controllers.job_memory import JobMemories
from localkube.controllers.job_pods import JOB_NAME, release_pod
from localkube.controllers.job_reconciler import JobContext, JobReconciler
from localkube.controllers.job_rules import find_end_condition
from localkube.controllers.loop import Key, Trigger
from localkube.controllers.owned_objects import DEFAULT_PODS_AHEAD, PODS_PER_RECONCILE
from localkube.event_recorder import EventRecorder
from localkube.metadata import Object, uid_of
from localkube.objects import Objects
from localkube.resources import JOBS, PODS
from localkube.resources.resource import Resource
from localkube.store import Change, Record

MANAGER = "kubernetes.io/job-controller"

POD_KEY_PREFIX = "pods/"
"""The prefix of a key that names a single pod instead of a Job; no Job's name can contain it."""


class JobController:
    """Bring each Job's pods and status in line with its spec.

    Every pod carries a finalizer until its end is counted, so a pod that is deleted early is
    counted too. Count and release are one transaction, so `status.uncountedTerminatedPods` is
    always empty.
    """

    name = "job-controller"

    def __init__(self, objects: Objects, pods_ahead: int = DEFAULT_PODS_AHEAD) -> None:
        self._objects = objects
        recorder = EventRecorder(objects, self.name)
        children = Children(objects, recorder, kind_in_reason=False)
        self._context = JobContext(objects, children, recorder, pods_ahead)
        self._memories = JobMemories()

    def triggers(self) -> Mapping[Resource, Trigger]:
        return {JOBS: self._job_changed, PODS: self._pod_changed}

    def reconcile(self, key: Key) -> float | None:
        namespace, name = key
        if name.startswith(POD_KEY_PREFIX):
            self._release_ownerless_pod(namespace, name.removeprefix(POD_KEY_PREFIX))
            return None
        job = self._objects.find(JOBS, namespace, name)
        if job is None or job["spec"].get("managedBy", MANAGER) != MANAGER:
            return None
        if find_end_condition(job) is not None:
            return self._release_pods(job)
        return JobReconciler(self._context, job, self._memories.get(uid_of(job))).reconcile()

    def _release_pods(self, job: Object) -> float | None:
        """Release a batch of the pods that an ended Job has not counted; return 0 for more."""
        records = self._objects.store.iterate_controlled(
            PODS.key, uid_of(job), lambda tally: tally.tracked
        )
        batch = list(islice(records, PODS_PER_RECONCILE))
        for record in batch:
            release_pod(self._objects, self._objects.decode_record(PODS, record))
        return 0 if len(batch) == PODS_PER_RECONCILE else None

    def _job_changed(self, change: Change) -> Iterator[Key]:
        record = change.record
        if change.type != "DELETED":
            yield record.namespace, record.name
            return
        self._memories.forget(record.uid)
        yield from (
            (pod.namespace, POD_KEY_PREFIX + pod.name)
            for pod in self._objects.store.list_owned(PODS.key, record.uid)
        )

    def _pod_changed(self, change: Change) -> Iterator[Key]:
        self._follow_index(change)
        record = change.record
        job = record.labels.get(JOB_NAME)
        if job is None:
            return
        yield record.namespace, job
        if (
            change.type != "DELETED"
            and record.tally is not None
            and record.tally.tracked
            and not self._has_job(record, job)
        ):
            yield record.namespace, POD_KEY_PREFIX + record.name

    def _follow_index(self, change: Change) -> None:
        record, previous = change.record, change.previous
        memory = self._memories.find(record.controller)
        if memory is not None and memory.pod_indexes is not None:
            memory.pod_indexes.follow_change(change)
        if previous is None or previous.controller == record.controller:
            return
        memory = self._memories.find(previous.controller)
        if memory is not None and memory.pod_indexes is not None:
            memory.pod_indexes.forget_pod(record.name)

    def _has_job(self, pod: Record, name: str) -> bool:
        job = self._objects.store.find(JOBS.key, pod.namespace, name)
        return job is not None and job.uid in pod.owners

    def _release_ownerless_pod(self, namespace: str, name: str) -> None:
        """Release a pod whose Job is gone."""
        record = self._objects.store.find(PODS.key, namespace, name)
        if record is not None and not self._has_job(record, record.labels.get(JOB_NAME, "")):
            release_pod(self._objects, self._objects.decode_record(PODS, record))
