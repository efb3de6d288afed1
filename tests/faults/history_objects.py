"""The objects of a history in the cluster: what is there, and what the test makes as operator."""

import contextlib

from clusters.job_kinds import JOBS
from clusters.job_kinds.pytorch import PYTORCHJOBS
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import Conflict
from clusters.kube.resources import CONFIGMAPS, PODS, Resource
from tests.faults import operating
from tests.faults.operating import Object

HELD = {"localkube.muster.dev/hold": "true"}


class HistoryObjects:
    """Finds and makes objects in the namespace of one history."""

    def __init__(self, direct: Client, namespace: str) -> None:
        self.direct, self.namespace = direct, namespace
        self.foreign: set[str] = set()
        """The uids of what belongs to somebody else."""

    def _jobs(self) -> list[Object]:
        batch = [{"apiVersion": "batch/v1", "kind": "Job", **each} for each in self._all(JOBS)]
        return [*self._all(PYTORCHJOBS), *batch]

    def _all(self, resource: Resource) -> list[Object]:
        return calls.list_page(self.direct, resource, namespace=self.namespace).items

    def _one(self, resource: Resource, number: int) -> Object | None:
        found = self._all(resource)
        return found[number % len(found)] if found else None

    def _job(self, number: int) -> Object | None:
        found = [each for each in self._jobs() if each["metadata"]["uid"] not in self.foreign]
        return found[number % len(found)] if found else None

    def _make_pod(
        self,
        name: str,
        template: Object,
        owner: Object | None,
        labels: Object,
        *,
        is_foreign: bool = False,
    ) -> None:
        given = template.get("metadata") or {}
        metadata = {
            "name": name,
            "labels": {**given.get("labels", {}), **labels},
            "annotations": {**given.get("annotations", {}), **HELD},
        }
        metadata |= {"ownerReferences": [owner]} if owner else {}
        spec = {**template["spec"], "restartPolicy": "Never", "schedulerName": "nobody"}
        with contextlib.suppress(Conflict):
            made = calls.create(
                self.direct,
                PODS,
                {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec},
                namespace=self.namespace,
            )
            if is_foreign:
                self.foreign.add(made["metadata"]["uid"])

    def _make_job(
        self, resource: Resource, name: str, labels: Object, owner: Object | None
    ) -> None:
        metadata = {"name": name, "labels": labels} | (
            {"ownerReferences": [owner]} if owner else {}
        )
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "pytorch", "image": "any"}], "restartPolicy": "Never"},
        }
        body: Object = {
            "apiVersion": resource.api_version,
            "kind": "Job" if resource == JOBS else "PyTorchJob",
            "metadata": metadata,
        }
        body["spec"] = (
            {"template": template}
            if resource == JOBS
            else {"pytorchReplicaSpecs": {"Worker": {"replicas": 1, "template": template}}}
        )
        operating.without_controller(body)
        with contextlib.suppress(Conflict):
            self.foreign.add(
                calls.create(self.direct, resource, body, namespace=self.namespace)["metadata"][
                    "uid"
                ]
            )

    def _somebody(self) -> Object:
        """The owner reference of something that is not ours and there."""
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "somebody"}}
        made = calls.apply(self.direct, CONFIGMAPS, "somebody", body, namespace=self.namespace)
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "somebody",
            "uid": made["metadata"]["uid"],
            "controller": True,
        }
