"""The steps of a history in the cluster: those of the operator, the kubelet and somebody else."""

import contextlib
import random
import uuid
from typing import Any

from clusters.job_kinds import JOBS
from clusters.job_kinds.pytorch import PYTORCHJOBS
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Conflict, Gone, Rejected
from clusters.kube.resources import EVENTS, PODGROUPS, PODS
from tests.faults import operating
from tests.faults.history_objects import HistoryObjects
from tests.faults.operating import CONDITIONS, PHASES
from workloads import manifests
from workloads.models import Workload

FINALIZER = "example.com/hold"


class ClusterSteps(HistoryObjects):
    """What happens to the objects of one history. For the two numbers of a step see History."""

    def __init__(self, direct: Client, namespace: str, chance: random.Random) -> None:
        super().__init__(direct, namespace)
        self.chance = chance
        self.ends: set[str] = set()
        """The uids of the jobs that have ever had an end."""
        self.behind: set[str] = set()
        """The uids of the jobs that were deleted behind our back."""

    # The operator and the kubelet.

    def make_pods(self, a: int, b: int) -> None:
        """The pods that a job lacks."""
        job = self._job(a)
        if job is None or job["metadata"].get("deletionTimestamp"):
            return
        for role, index, template in operating.replicas(job):
            name = f"{job['metadata']['name']}-{role}-{index}"
            if b % 3 or index == 0:
                self._make_pod(
                    name,
                    template,
                    operating.owned_by(job),
                    operating.replica_labels(role, index, job),
                )

    def move_pod(self, a: int, b: int) -> None:
        pod = self._one(PODS, a)
        if pod is None:
            return
        phase = PHASES[b % len(PHASES)]
        name = pod["metadata"]["name"]
        with contextlib.suppress(Gone, Conflict, Rejected):
            if phase != "Pending" and not pod["spec"].get("nodeName"):
                calls.patch(
                    self.direct,
                    PODS,
                    name,
                    {"spec": {"nodeName": "somewhere"}},
                    namespace=self.namespace,
                )
            if pod["status"].get("phase") not in ("Succeeded", "Failed"):
                status = {"status": operating.pod_status(phase)}
                calls.patch(
                    self.direct, PODS, name, status, namespace=self.namespace, subresource="status"
                )

    def remove_pod(self, a: int, b: int) -> None:
        """A pod goes at once, or lingers, or one that lingers goes."""
        pod = self._one(PODS, a)
        if pod is None or pod["metadata"]["uid"] in self.foreign:
            return
        name, holds = pod["metadata"]["name"], pod["metadata"].get("finalizers")
        with contextlib.suppress(Gone, Rejected):
            if b % 3 == 0 and not holds and not pod["metadata"].get("deletionTimestamp"):
                calls.patch(
                    self.direct,
                    PODS,
                    name,
                    {"metadata": {"finalizers": [FINALIZER]}},
                    namespace=self.namespace,
                )
            if b % 3 == 1 and holds:
                calls.patch(
                    self.direct,
                    PODS,
                    name,
                    {"metadata": {"finalizers": None}},
                    namespace=self.namespace,
                )
            calls.delete(self.direct, PODS, name, namespace=self.namespace, grace_seconds=0)

    def move_job(self, a: int, b: int) -> None:
        job = self._job(a)
        if job is None:
            return
        resource = operating.resource_of(job)
        kind = CONDITIONS[b % len(CONDITIONS)]
        if kind in ("Succeeded", "Failed"):
            self.ends.add(job["metadata"]["uid"])
        status = operating.job_status(job, kind)
        with contextlib.suppress(Gone, Rejected):
            calls.patch(
                self.direct,
                resource,
                job["metadata"]["name"],
                status,
                namespace=self.namespace,
                subresource="status",
            )

    def remove_job(self, a: int, b: int) -> None:
        """A job is deleted behind our back, with its pods or without them."""
        job = self._job(a)
        if job is None:
            return
        self.behind.add(job["metadata"]["uid"])
        how: Any = ("Background", "Orphan", "Foreground")[b % 3]
        with contextlib.suppress(Gone):
            calls.delete(
                self.direct,
                operating.resource_of(job),
                job["metadata"]["name"],
                namespace=self.namespace,
                propagation=how,
            )

    def make_group(self, a: int, b: int) -> None:
        job = self._job(a)
        if job is None:
            return
        name = f"pg-{job['metadata']['name']}-{job['metadata']['uid']}"
        body = {
            "apiVersion": PODGROUPS.api_version,
            "kind": "PodGroup",
            "metadata": {"name": name},
            "spec": {"minMember": 2},
        }
        body["metadata"] |= {"ownerReferences": [operating.owned_by(job)]}  # type: ignore[operator]
        # The cluster collects it at once where its job has just been deleted.
        with contextlib.suppress(Gone, Rejected):
            calls.apply(self.direct, PODGROUPS, name, body, namespace=self.namespace, force=True)
            why = {
                "type": "UnschedulableOnNodePool",
                "status": "True",
                "reason": "Unschedulable",
                "message": f"full {b}",
            }
            status = {"status": {"schedulingConditions": [why] if b % 2 else []}}
            calls.patch(self.direct, PODGROUPS, name, status, namespace=self.namespace)

    def make_event(self, a: int, b: int) -> None:
        pod = self._one(PODS, a)
        if pod is None:
            return
        about = {
            "kind": "Pod",
            "namespace": self.namespace,
            "name": pod["metadata"]["name"],
            "uid": pod["metadata"]["uid"],
        }
        fields = {
            "reason": f"Reason{b % 3}",
            "message": "something",
            "type": "Warning",
            "involvedObject": about,
        }
        metadata = {
            "name": f"event-{uuid.UUID(int=self.chance.getrandbits(128))}",
            "namespace": self.namespace,
        }
        calls.create(
            self.direct, EVENTS, {"metadata": metadata, **fields}, namespace=self.namespace
        )

    # Somebody else.

    def make_foreign(self, a: int, b: int) -> None:
        """What bears our labels and belongs to somebody else; or what nobody has asked for: an
        older attempt's, another job of the name.
        """
        workload = self._workload(a)
        if workload is None:
            return
        labels = {
            manifests.MANAGED_BY: manifests.MUSTER,
            manifests.WORKLOAD: str(workload.pk),
            manifests.ATTEMPT: str(max(1, workload.attempt - b // 4 % 2)),
        }
        owner = self._somebody()
        template = {"spec": {"containers": [{"name": "main", "image": "any"}]}}
        match b % 4:
            case 0 | 1:
                self._make_pod(
                    f"{workload.name}-{'worker-0' if b % 2 else 'copied'}",
                    template,
                    owner,
                    labels,
                    is_foreign=True,
                )
            case 2:
                # A job of another kind under the name.
                self._make_job(
                    JOBS if workload.framework else PYTORCHJOBS, workload.name, labels, None
                )
            case 3:
                self._make_job(
                    PYTORCHJOBS if workload.framework else JOBS, workload.name, labels, owner
                )

    def _workload(self, number: int) -> Workload | None:
        found = list(Workload.objects.filter(released_at=None).order_by("created_at", "pk"))
        return found[number % len(found)] if found else None
