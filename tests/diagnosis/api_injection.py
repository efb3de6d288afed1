"""Puts the objects of a cause into a real API server, where no controller changes them."""

import copy
from collections.abc import Mapping, Sequence

from tests.conformance.api import Api
from tests.diagnosis.injected import Object
from workloads.journal import Observation
from workloads.manifests import keys

ELSEWHERE = "kueue.x-k8s.io/multikueue"
"""The value of managedBy that makes operators leave a job alone (engine facts 1.2)."""
NOBODY = "nobody"
"""A scheduler that does not exist: what a scheduler says is the cause's to say."""
_GROUP = "scheduling.run.ai/v2alpha2"


class ApiInjection:
    """The objects of one cause on their way into the API; what follows needs the real uids."""

    def __init__(
        self, api: Api, namespace: str, observations: Sequence[Observation], *, is_failing: bool
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._objects = [copy.deepcopy(dict(each.object)) for each in observations]
        self._is_failing = is_failing
        self._uids: dict[str, str] = {}
        self._jobs = f"/apis/kubeflow.org/v1/namespaces/{namespace}/pytorchjobs"
        self._pods = f"/api/v1/namespaces/{namespace}/pods"

    def create_objects(self) -> None:
        """Create the job and its pods, of which nothing is wrong yet."""
        for job in self._list("PyTorchJob"):
            body = _without_status(job)
            policy = body["spec"].setdefault("runPolicy", {})
            policy["managedBy"] = ELSEWHERE
            for replica in body["spec"]["pytorchReplicaSpecs"].values():
                replica["template"] = {
                    "spec": {"containers": [{"name": "pytorch", "image": "train:1"}]}
                }
            self._create(self._jobs, job, body)
        for pod in self._list(""):
            body = _without_status(pod) | {"apiVersion": "v1", "kind": "Pod"}
            body["spec"]["schedulerName"] = NOBODY
            for owner in body["metadata"].get("ownerReferences", ()):
                owner |= {
                    "uid": self._uids[owner["uid"]],
                    "apiVersion": "kubeflow.org/v1",
                    "kind": "PyTorchJob",
                    "name": self._list("PyTorchJob")[0]["metadata"]["name"],
                }
            self._create(self._pods, pod, body)
            if self._is_failing:
                self._patch(self._pods, pod, {"phase": "Running"})

    def inject_cause(self) -> None:
        """Write what shows the cause: statuses, the PodGroup and events."""
        for pod in self._list(""):
            self._patch(self._pods, pod, pod["status"])
        for group in self._list("PodGroup"):
            self._create_group(group)
        for job in self._list("PyTorchJob"):
            self._patch(self._jobs, job, job["status"])
        for event in (each for each in self._objects if "involvedObject" in each):
            self._create_event(event)

    def _create_group(self, group: Object) -> None:
        body = _without_status(group) | {"apiVersion": _GROUP}
        job = self._list("PyTorchJob")[0]["metadata"]
        body["metadata"]["name"] = f"pg-{job['name']}-{self._uids[job['uid']]}"
        groups = f"/apis/{_GROUP}/namespaces/{self._namespace}/podgroups"
        self._create(groups, group, body)
        path = f"{groups}/{body['metadata']['name']}/status"
        self._api.patch(path, {"status": group["status"]}).ok()

    def _create_event(self, event: Object) -> None:
        about = event["involvedObject"]
        about["uid"] = self._uids.get(about["uid"], about["uid"])
        body = copy.deepcopy(event)
        body["metadata"] = {
            "name": event["metadata"]["uid"].lower(),
            "namespace": self._namespace,
        }
        self._api.post(f"/api/v1/namespaces/{self._namespace}/events", body).ok(201)

    def _list(self, kind: str) -> list[Object]:
        return [
            each
            for each in self._objects
            if "involvedObject" not in each and each.get("kind", "") == kind
        ]

    def _create(self, path: str, obj: Object, body: Object) -> None:
        made = self._api.post(path, body).ok(201)
        self._uids[obj["metadata"]["uid"]] = made["metadata"]["uid"]

    def _patch(self, path: str, obj: Object, status: Mapping[str, object]) -> None:
        target = f"{path}/{obj['metadata']['name']}/status"
        self._api.patch(target, {"status": status}).ok()


def _without_status(obj: Object) -> Object:
    body = copy.deepcopy(obj)
    body.pop("status", None)
    for name in ("uid", "resourceVersion", "creationTimestamp"):
        body["metadata"].pop(name, None)
    # Muster follows what bears its label alone.
    body["metadata"].setdefault("labels", {})[keys.MANAGED_BY] = keys.MUSTER
    return body
