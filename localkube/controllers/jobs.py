"""The controller of batch/v1 Jobs, as in Kubernetes 1.31 and later.

Not served: backoffLimitPerIndex and successPolicy. A pod that a node shutdown ended is replaced and
counts for nothing.
"""

from collections.abc import Iterator, Mapping

from localkube.controllers.children import Children
from localkube.controllers.job_pods import JOB_NAME, TRACKING_FINALIZER, release_pod
from localkube.controllers.job_reconciler import JobReconciler
from localkube.controllers.job_rules import find_end_condition
from localkube.controllers.loop import Key, Trigger
from localkube.event_recorder import EventRecorder
from localkube.metadata import is_controlled_by
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

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._recorder = EventRecorder(objects, self.name)
        self._children = Children(objects, self._recorder, kind_in_reason=False)

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
        pods = [
            pod
            for pod in self._objects.list_owned(PODS, job["metadata"]["uid"])
            if is_controlled_by(pod, job)
        ]
        if find_end_condition(job) is not None:
            for pod in pods:
                release_pod(self._objects, pod)
            return None
        return JobReconciler(self._objects, self._children, self._recorder, job, pods).reconcile()

    def _job_changed(self, change: Change) -> Iterator[Key]:
        record = change.record
        if change.type != "DELETED":
            yield record.namespace, record.name
            return
        yield from (
            (pod.namespace, POD_KEY_PREFIX + pod.name)
            for pod in self._objects.store.list_owned(PODS.key, record.uid)
        )

    def _pod_changed(self, change: Change) -> Iterator[Key]:
        record = change.record
        job = record.labels.get(JOB_NAME)
        if job is None:
            return
        yield record.namespace, job
        if (
            change.type != "DELETED"
            and TRACKING_FINALIZER.encode() in record.raw
            and not self._has_job(record, job)
        ):
            yield record.namespace, POD_KEY_PREFIX + record.name

    def _has_job(self, pod: Record, name: str) -> bool:
        job = self._objects.store.find(JOBS.key, pod.namespace, name)
        return job is not None and job.uid in pod.owners

    def _release_ownerless_pod(self, namespace: str, name: str) -> None:
        """Release a pod whose Job is gone."""
        record = self._objects.store.find(PODS.key, namespace, name)
        if record is not None and not self._has_job(record, record.labels.get(JOB_NAME, "")):
            release_pod(self._objects, self._objects.decode_record(PODS, record))
