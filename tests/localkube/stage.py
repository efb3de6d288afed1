"""A cluster of objects and controllers alone: the tests play the kubelet and move the clock."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from localkube import clock, resources
from localkube.controllers.loop import Controller, ControllerLoop
from localkube.lifecycle import DeleteOptions
from localkube.metadata import Object, name_of
from localkube.objects import Objects
from localkube.options import ADDRESS_ANNOTATION
from localkube.resources import EVENTS, NAMESPACES, PODS, PYTORCHJOBS, SERVICES
from localkube.resources.resource import Resource
from localkube.store import Record, Store

SPACE = "team"
START = datetime(2026, 11, 21, 3, tzinfo=UTC)

Make = Callable[[Objects], Iterable[Controller]]


class Killed(Exception):
    """The process was killed instead of making a write."""


class KillableStore(Store):
    """A store that dies at the write after `left` more, once armed."""

    left: int | None = None

    def put_object(self, key: str, obj: Object) -> Record:
        self._live()
        return super().put_object(key, obj)

    def remove_object(self, key: str, obj: Object) -> Record:
        self._live()
        return super().remove_object(key, obj)

    def _live(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Killed


def fields(key: str, obj: Object) -> dict[str, str]:
    resource = resources.find_by_key(key)
    return (
        {path: value(obj) for path, value in resource.field_selectors.items()} if resource else {}
    )


class Stage:
    """One namespace, the controllers that `make` makes, and a clock that only the test moves."""

    def __init__(self, path: Path, patch: pytest.MonkeyPatch, make: Make) -> None:
        self._path, self._make = path, make
        self._passed = 0.0
        patch.setattr(clock, "current_time", lambda: START + timedelta(seconds=self._passed))
        self.open()
        for name in ("default", SPACE):
            self.objects.create(NAMESPACES, "", {"metadata": {"name": name}})

    def open(self) -> None:
        """Start, or start again as after a kill: from the file, with nothing remembered."""
        self.store = KillableStore(self._path, fields)
        self.objects = Objects(self.store)
        self.loop = ControllerLoop(self.objects, elapsed=lambda: self._passed)
        for controller in self._make(self.objects):
            self.loop.add_controller(controller)

    def close(self) -> None:
        self.loop.stop()
        self.store.close()

    def settle(self, seconds: float = 0) -> None:
        """Move the clock, and let the controllers work until nothing is left to do."""
        self._passed += seconds
        self.loop.run_until_idle()

    def settle_for_good(self) -> None:
        """Settle, second by second, until nothing was due for two of them."""
        idle = 0
        while idle < 2:
            idle = 0 if self.loop.run_until_idle(limit=200_000) else idle + 1
            self._passed += 1

    def create(self, resource: Resource, obj: Object) -> Object:
        made = self.objects.create(resource, SPACE if resource.namespaced else "", obj)
        self.settle()
        return made

    def get(self, resource: Resource, name: str) -> Object:
        return self.objects.get(resource, SPACE if resource.namespaced else "", name)

    def names(self, resource: Resource) -> list[str]:
        return [name_of(obj) for obj in self.objects.list(resource, SPACE)]

    def modify(self, resource: Resource, name: str, change: Callable[[Object], Any]) -> None:
        self.objects.modify(resource, SPACE if resource.namespaced else "", name, change)
        self.settle()

    def delete(self, resource: Resource, name: str, **options: Any) -> None:
        self.objects.delete(
            resource, SPACE if resource.namespaced else "", name, DeleteOptions(**options)
        )
        self.settle()

    def report(self, pod: str, phase: str, *, settle: bool = True, **status: Any) -> None:
        """Report a phase, as the scheduler and kubelet would: the pod is on the node."""
        if not self.get(PODS, pod)["spec"].get("nodeName"):
            self.objects.modify(
                PODS, SPACE, pod, lambda obj: obj["spec"].update(nodeName="localkube")
            )
        written = {"phase": phase, **status}
        self.objects.modify(
            PODS, SPACE, pod, lambda obj: obj.update(status=written), subresource="status"
        )
        if settle:
            self.settle()

    def end(self, pod: str, code: int, container: str = "pytorch", **status: Any) -> None:
        """End the pod's only container with this exit code, now."""
        ended = {
            "exitCode": code,
            "reason": "Completed" if code == 0 else "Error",
            "finishedAt": clock.format_time(),
        }
        state = {"name": container, "restartCount": 0, "state": {"terminated": ended}}
        self.report(
            pod, "Succeeded" if code == 0 else "Failed", containerStatuses=[state], **status
        )

    def shut_down(self, pod: str) -> None:
        """Fail the pod as a node shutdown does."""
        self.report(
            pod,
            "Failed",
            reason="NodeShutdown",
            message="Pod was terminated in response to imminent node shutdown.",
        )

    def confirm_deletions(self) -> None:
        """Confirm every pod deletion, as the kubelet does once the processes have ended."""
        for pod in self.objects.list(PODS, SPACE):
            if pod["metadata"].get("deletionTimestamp"):
                self.objects.delete(PODS, SPACE, name_of(pod), DeleteOptions(grace_seconds=0))
        self.settle()

    def phases(self) -> dict[str, str]:
        return {
            name_of(pod): pod.get("status", {}).get("phase", "")
            for pod in self.objects.list(PODS, SPACE)
        }

    def events(self, kind: str) -> list[tuple[str, str, str]]:
        """Return (type, reason, message) of the events about objects of a kind, in order."""
        found = [
            event
            for event in self.objects.list(EVENTS, SPACE)
            if event["involvedObject"]["kind"] == kind
        ]
        found.sort(key=lambda event: int(event["metadata"]["name"].rpartition(".")[2], 16))
        return [(event["type"], event["reason"], event["message"]) for event in found]

    def reasons(self, kind: str) -> list[str]:
        return [reason for _, reason, _ in self.events(kind)]


def conditions(obj: Object) -> list[tuple[str, str, str]]:
    """Return (type, status, reason) of each condition, in the order of the list."""
    return [
        (each["type"], each["status"], each["reason"])
        for each in obj.get("status", {}).get("conditions", [])
    ]


def replica(
    count: int | None = 1, restart: str | None = None, container: str = "pytorch", **spec: Any
) -> Object:
    """Build an entry of a replica map whose container runs `train`."""
    entry: Object = {
        "template": {"spec": {"containers": [{"name": container, "image": "train:1"}], **spec}}
    }
    return (
        entry
        | ({} if count is None else {"replicas": count})
        | ({} if restart is None else {"restartPolicy": restart})
    )


def pytorchjob(name: str, replicas: Object, policy: Object | None = None, **spec: Any) -> Object:
    body: Object = {"pytorchReplicaSpecs": replicas, **spec}
    return {"metadata": {"name": name}, "spec": body | ({"runPolicy": policy} if policy else {})}


def variables(stage: Stage, pod: str, container: int = 0) -> dict[str, str]:
    """Return the variables with plain values of a pod's container."""
    return {
        each["name"]: each["value"]
        for each in stage.get(PODS, pod)["spec"]["containers"][container].get("env", ())
    }


def address(stage: Stage, service: str) -> str:
    """Return where a replica listens, as the operator wrote it on its service."""
    found: str = stage.get(SERVICES, service)["metadata"]["annotations"][ADDRESS_ANNOTATION]
    return found


def status_of(stage: Stage, job: str) -> Object:
    found: Object = stage.get(PYTORCHJOBS, job).get("status", {})
    return found
