"""What a cluster lacks, done by the API in one namespace as those who are not there would:
operators, controllers, a kubelet.

Nothing is remembered between two turns: each looks at what is there and does what is next, as a
controller does. How far the pods are is the test's to say where no kubelet runs (`stage`); where
one does, from PLACED on they are on their own.
"""

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import IntEnum

from tests.conformance.api import STRATEGIC, Api, Object
from tests.journeys import jobs, made
from tests.journeys.jobs import Kind
from tests.journeys.place import Place

AT_ONCE = {"gracePeriodSeconds": 0}


class Stage(IntEnum):
    """How far the pods are to come."""

    QUEUED = 0
    PLACED = 1
    UP = 2
    DONE = 3
    BROKEN = 4


class StandIn:
    """Everything in a namespace that nobody does there by itself."""

    def __init__(self, api: Api, place: Place, namespace: str) -> None:
        self._api = api
        self._place = place
        self._namespace = namespace
        self._kinds = jobs.list_served_kinds(api)
        self._jobs = jobs.JOB.path(namespace)
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._node = ""
        self.stage = Stage.QUEUED

    def turn(self) -> None:
        """Look once, and do what is to be done now."""
        if not self._place.controllers:
            self._account()
        for kind in () if self._place.operators else self._kinds:
            for job in self._listed(kind.path(self._namespace)):
                if kind is not jobs.JOB and "deletionTimestamp" not in job["metadata"]:
                    self._operate(kind, job)
        if not self._place.controllers:
            for job in self._listed(self._jobs):
                if "deletionTimestamp" not in job["metadata"]:
                    self._run(job)
            self._collect()
        for pod in self.pods():
            self._move(pod)

    def close(self) -> None:
        """Take back what is not in the namespace."""
        if self._node:
            self._api.delete(f"/api/v1/nodes/{self._node}")

    def pods(self) -> list[Object]:
        return self._listed(self._pods)

    # The operators

    def _operate(self, kind: Kind, job: Object) -> None:
        mine = [each for each in self.pods() if made.owner(each) == job["metadata"]["uid"]]
        between = [
            each for each in self._listed(self._jobs) if made.owner(each) == job["metadata"]["uid"]
        ]
        if not made.is_finished(job):
            names = {each["metadata"]["name"] for each in (*mine, *between)}
            for wanted in kind.children(job):
                if wanted["metadata"]["name"] not in names:
                    self._made(self._jobs if wanted["kind"] == "Job" else self._pods, wanted)
        elif kind.cleans_up(job):
            for pod in mine:
                if (
                    pod["status"].get("phase") in ("Pending", "Running")
                    and "deletionTimestamp" not in pod["metadata"]
                ):
                    self._api.delete(f"{self._pods}/{pod['metadata']['name']}")
        status = kind.status(job, mine, between, self._below(between), _format_now())
        if status != job.get("status"):
            path = f"{kind.path(self._namespace)}/{job['metadata']['name']}/status"
            self._api.patch(path, {"status": status})

    def _below(self, between: list[Object]) -> list[Object]:
        uids = {each["metadata"]["uid"] for each in between}
        return [each for each in self.pods() if made.owner(each) in uids]

    # The controllers

    def _account(self) -> None:
        """Without its default service account no pod is let into a namespace."""
        path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts"
        if (
            self._api.get(f"/api/v1/namespaces/{self._namespace}")
            .json()
            .get("status", {})
            .get("phase")
            == "Active"
        ):
            self._api.post(path, {"metadata": {"name": "default"}})

    def _run(self, job: Object) -> None:
        """As the Job controller; a try is not repeated."""
        mine = [each for each in self.pods() if made.owner(each) == job["metadata"]["uid"]]
        wanted, there = job["spec"].get("completions", 1), {made.index(each) for each in mine}
        missing = [number for number in range(wanted) if number not in there][: wanted - len(mine)]
        for number in () if made.is_finished(job) else missing:
            self._made(self._pods, made.pod_of(job, number))
        status = made.batch_status(job, mine, _format_now())
        if status != job.get("status"):
            self._api.patch(f"{self._jobs}/{job['metadata']['name']}/status", {"status": status})

    def _collect(self) -> None:
        """As the garbage collector, and as whoever lets go of volumes."""
        # The owners are looked at last: what is made meanwhile has one that is there.
        below = [(path, each) for path in (self._jobs, self._pods) for each in self._listed(path)]
        there = {
            each["metadata"]["uid"]
            for kind in self._kinds
            for each in self._listed(kind.path(self._namespace))
        }
        for path, obj in below:
            if (
                made.owner(obj)
                and made.owner(obj) not in there
                and "deletionTimestamp" not in obj["metadata"]
            ):
                self._api.delete(
                    f"{path}/{obj['metadata']['name']}", {"propagationPolicy": "Background"}
                )
        claims = f"/api/v1/namespaces/{self._namespace}/persistentvolumeclaims"
        for claim in self._listed(claims):
            if "deletionTimestamp" in claim["metadata"]:
                self._api.patch(
                    f"{claims}/{claim['metadata']['name']}", {"metadata": {"finalizers": None}}
                )

    # The scheduler and the kubelet

    def _move(self, pod: Object) -> None:
        metadata = pod["metadata"]
        path = f"{self._pods}/{metadata['name']}"
        if "deletionTimestamp" in metadata:
            if not self._place.pods:
                self._api.delete(path, AT_ONCE | {"preconditions": {"uid": metadata["uid"]}})
            return
        if self.stage is Stage.QUEUED or self._place.operators:
            return
        if not pod["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": self._a_node()}
            # Another scheduler may have been faster.
            self._api.post(
                f"{path}/binding", {"metadata": {"name": metadata["name"]}, "target": target}
            )
            return
        if not self._place.pods and pod["status"]["phase"] not in ("Succeeded", "Failed"):
            status = made.pod_status(pod, self._phase(pod), _format_now())
            if status["phase"] != pod["status"]["phase"] or not pod["status"].get(
                "containerStatuses"
            ):
                self._api.patch(
                    f"{path}/status",
                    {"metadata": {"uid": metadata["uid"]}, "status": status},
                    STRATEGIC,
                )

    def _phase(self, pod: Object) -> str:
        if self.stage is Stage.PLACED:
            return "Pending"
        if self.stage is Stage.DONE and not made.waits_for_ever(pod):
            return "Succeeded"
        return (
            "Failed"
            if self.stage is Stage.BROKEN and made.is_first(pod, self.pods())
            else "Running"
        )

    def _a_node(self) -> str:
        """One that is there and ready; where no kubelet is, one that says so and does nothing."""
        if self._place.pods:
            ready = (
                each
                for each in self._listed("/api/v1/nodes")
                if made.holds(each, "Ready") and not each["spec"].get("unschedulable")
            )
            return str(next(ready)["metadata"]["name"])
        if not self._node:
            self._node = f"journey-{secrets.token_hex(4)}"
            self._api.post("/api/v1/nodes", {"metadata": {"name": self._node}}).ok(201)
            ready_now = {
                "type": "Ready",
                "status": "True",
                "reason": "StandIn",
                "lastHeartbeatTime": _format_now(),
                "lastTransitionTime": _format_now(),
            }
            self._api.patch(
                f"/api/v1/nodes/{self._node}/status",
                {"status": {"conditions": [ready_now]}},
                STRATEGIC,
            ).ok()
        return self._node

    def _made(self, path: str, obj: Object) -> None:
        answer = self._api.post(path, obj)
        # A service account that was just made may not be known yet; the next turn finds out.
        assert answer.status in (201, 409) or "service account" in answer.text, answer.text[:2000]

    def _listed(self, path: str) -> list[Object]:
        answer = self._api.get(path).ok()
        # The items of a list do not say what they are where they are of a built-in kind.
        kind = {"apiVersion": answer["apiVersion"], "kind": answer["kind"].removesuffix("List")}
        return [kind | each for each in answer["items"]]


def empty_namespace(api: Api, place: Place, namespace: str) -> None:
    """Nothing of a namespace is there any more, the namespace included."""
    everything = [kind.path(namespace) for kind in (*jobs.list_served_kinds(api), jobs.JOB)]
    everything += [
        f"/api/v1/namespaces/{namespace}/{plural}"
        for plural in ("pods", "persistentvolumeclaims", "secrets", "configmaps")
    ]
    everything += [
        f"/api/v1/namespaces/{namespace}/{plural}" for plural in ("serviceaccounts", "events")
    ]
    for path in everything:
        api.delete(path, AT_ONCE | {"propagationPolicy": "Background"})
    for path in _list_held_objects(api, namespace):
        api.patch(path, {"metadata": {"finalizers": None}})
    api.delete(f"/api/v1/namespaces/{namespace}")
    if not place.controllers:
        api.put(
            f"/api/v1/namespaces/{namespace}/finalize",
            {"metadata": {"name": namespace}, "spec": {"finalizers": []}},
        )


def _list_held_objects(api: Api, namespace: str) -> Iterator[str]:
    for plural in ("persistentvolumeclaims", "pods"):
        path = f"/api/v1/namespaces/{namespace}/{plural}"
        answer = api.get(path)
        for each in answer.json()["items"] if answer.status == 200 else ():
            if each["metadata"].get("finalizers"):
                yield f"{path}/{each['metadata']['name']}"


def _format_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
