"""Nodes with a store of their own and real processes, which end with the test's process."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from localkube import resources
from localkube.kubelet import runs
from localkube.kubelet.host import Host
from localkube.lifecycle import DeleteOptions
from localkube.machine import LogOptions
from localkube.metadata import Object, name_of
from localkube.objects import Objects
from localkube.options import NODE_NAME, Options
from localkube.resources import EVENTS, NAMESPACES, PODS
from localkube.store import Store

T = TypeVar("T")
PATIENCE = 90.0
TEAM = "team-a"
ANY_IMAGE = "busybox"


def shell(script: str, name: str = "main", **fields: Any) -> Object:
    """Build a container that runs a shell script."""
    return {"name": name, "image": ANY_IMAGE, "command": ["sh", "-c", script]} | fields


def pod(
    *containers: Object,
    name: str = "p",
    policy: str = "Never",
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """Build a pod that is bound to the one node, or with `nodeName` to another."""
    metadata = {"name": name, "namespace": TEAM, "annotations": dict(annotations or {})}
    return {
        "metadata": metadata,
        "spec": {"nodeName": NODE_NAME, "restartPolicy": policy, "containers": list(containers)}
        | spec,
    }


class Machine:
    """The store of a cluster on a data directory, and the kubelets that run on it."""

    def __init__(self, data: Path, **options: Any) -> None:
        self.options = Options(data=data, die_with=os.getpid(), **options)
        data.mkdir(exist_ok=True)
        self.store = Store(data / "state.db", _fields)
        self.objects = Objects(self.store)
        for name in (TEAM, "kube-node-lease"):
            if self.objects.find(NAMESPACES, "", name) is None:
                self.objects.create(NAMESPACES, "", {"metadata": {"name": name}})
        self.host = Host(self.objects, self.options)

    def submit(self, made: Object) -> str:
        """Create a pod and return its name."""
        return name_of(self.objects.create(PODS, TEAM, made))

    def delete(self, name: str = "p", grace: int | None = None) -> None:
        self.objects.delete(PODS, TEAM, name, DeleteOptions(grace_seconds=grace))

    def pod(self, name: str = "p") -> Object:
        return self.objects.get(PODS, TEAM, name)

    def status(self, name: str = "p") -> Object:
        status: Object = self.pod(name)["status"]
        return status

    def container(self, name: str = "p", index: int = 0) -> Object:
        entry: Object = (self.status(name).get("containerStatuses") or [{}])[index]
        return entry

    def events(self, name: str = "p") -> list[tuple[str, str]]:
        """Return reason and message of the events about a pod, in their order."""
        pod_events = [
            event
            for event in self.objects.list(EVENTS, TEAM)
            if event["involvedObject"]["name"] == name
        ]
        pod_events.sort(key=lambda event: int(event["metadata"]["name"].rsplit(".", 1)[1], 16))
        return [(event["reason"], event["message"]) for event in pod_events]

    async def until(self, look: Callable[[], T]) -> T:
        """Wait until `look` returns something true, and return it."""
        async with asyncio.timeout(PATIENCE):
            # What is waited for is in another process.
            while not (found := look()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            return found

    async def finished(self, name: str = "p") -> Object:
        """Wait until a pod has ended, and return its status."""
        await self.until(lambda: self.status(name).get("phase") in ("Succeeded", "Failed"))
        return self.status(name)

    async def running(self, name: str = "p") -> Object:
        """Wait until the first container runs, and return its running state."""
        await self.until(lambda: "running" in self.container(name).get("state", {}))
        state: Object = self.container(name)["state"]["running"]
        return state

    async def gone(self, name: str = "p") -> None:
        await self.until(lambda: self.objects.find(PODS, TEAM, name) is None)

    async def logged(self, text: str, name: str, container: str = "main") -> None:
        """Wait until a container's log contains this text."""
        async with asyncio.timeout(PATIENCE):
            # What is waited for is in another process.
            while text not in await self.log(name, container):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def log(self, name: str = "p", container: str = "main", **options: Any) -> str:
        chunks = self.host.read_log(self.pod(name), container, LogOptions(**options))
        return b"".join([chunk async for chunk in chunks]).decode()


@asynccontextmanager
async def machine(data: Path, *, keep_pods: bool = False, **options: Any) -> AsyncIterator[Machine]:
    """Run the kubelets; at the end their pods are ended, or kept for the next start."""
    made = Machine(data, **options)
    await made.host.start()
    try:
        yield made
    finally:
        await made.host.stop(keep_pods=keep_pods)
        if not keep_pods:
            runs.kill_all_runs(data / "pods")
        made.store.close()


def _fields(key: str, obj: Object) -> Mapping[str, str]:
    resource = resources.find_by_key(key)
    return (
        {}
        if resource is None
        else {path: value(obj) for path, value in resource.field_selectors.items()}
    )
