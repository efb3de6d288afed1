"""The kubelet: gives every pod that is bound to this node a life, tells that the node is well, and
answers for logs and usage.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from localkube import errors
from localkube.errors import ApiError
from localkube.kubelet import attempts, gpus, logfiles, removal, retention, runs
from localkube.kubelet.node import RENEW_SECONDS, Node
from localkube.kubelet.pods import PodLife
from localkube.kubelet.specs import CLAIMS, Site
from localkube.kubelet.stats import EVERY_SECONDS, Stats
from localkube.kubelet.status import NODE_SHUTDOWN
from localkube.machine import LogOptions, Usage
from localkube.metadata import FINISHED, Object, annotations_of, is_terminating, name_of, uid_of
from localkube.objects import Objects
from localkube.options import HOLD, NODE, Options
from localkube.recorder import Recorder
from localkube.resources import PERSISTENTVOLUMECLAIMS, PODS
from localkube.store import Change, Record

SHUTDOWN_GRACE = 10.0
"""The most seconds that a pod gets to end when the node shuts down."""

SHUTDOWN_SLACK = 5.0
RETENTION_SECONDS = 60.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Member:
    """A pod's life and the task that lives it."""

    life: PodLife
    task: asyncio.Task[None]


class Kubelet:
    """The agent of the one node; implements `machine.Machine`."""

    def __init__(self, objects: Objects, recorder: Recorder, options: Options) -> None:
        self._objects = objects
        self._recorder = recorder
        self._options = options
        self._root = options.data / "pods"
        self._claims = options.data / CLAIMS
        self._stats = Stats()
        self._members: dict[str, _Member] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self._rebooted = False
        self._site: Site | None = None

    async def start(self) -> None:
        """Register the node, end what belongs to no pod, go on with every pod of this node, running
        or not.
        """
        devices = await asyncio.to_thread(gpus.detect, self._options.gpus)
        self._node = Node(self._objects, self._options, devices)
        self._rebooted = self._node.register()
        virtual = any(gpu.virtual for gpu in devices)
        self._site = Site(
            self._objects,
            self._recorder,
            self._options,
            self._node.allocatable,
            virtual,
            lambda: self._node.pressure,
        )
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        known = {record.uid for record in self._objects.store.list(PODS.key)}
        await asyncio.to_thread(runs.sweep, self._root, known)
        claims = {record.uid for record in self._objects.store.list(PERSISTENTVOLUMECLAIMS.key)}
        await asyncio.to_thread(_remove_others, self._claims, claims)
        self._unsubscribe_claims = self._objects.subscribe(
            PERSISTENTVOLUMECLAIMS, self._claim_changed
        )
        self._unsubscribe = self._objects.subscribe(PODS, self._changed)
        for record in self._objects.store.list(PODS.key):
            self._consider(record)
        # Pods that come from now on were never on the machine before its reboot.
        self._rebooted = False
        self._repeat("heartbeat", RENEW_SECONDS, self._renew)
        self._repeat("usage", EVERY_SECONDS, self._measure)
        self._repeat("retention", RETENTION_SECONDS, self._forget)

    async def stop(self, keep_pods: bool) -> None:
        """End every pod as a node that shuts down does, within `SHUTDOWN_GRACE`; with `keep_pods`
        leave them to the next start.

        Does nothing when it was not started, or was stopped already.
        """
        if self._site is None:
            return
        self._is_stopping = True
        self._node.leave()
        if not keep_pods:
            for member in self._members.values():
                member.life.end(NODE_SHUTDOWN, SHUTDOWN_GRACE)
            tasks = [member.task for member in self._members.values()]
            if tasks:
                await asyncio.wait(tasks, timeout=SHUTDOWN_GRACE + SHUTDOWN_SLACK)
        self._unsubscribe()
        self._unsubscribe_claims()
        rest = [*self._tasks, *(member.task for member in self._members.values())]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        self._site = None

    # Following the pods

    def _changed(self, change: Change) -> None:
        record = change.record
        member = self._members.get(record.uid)
        if member is not None:
            member.life.wake()
        elif change.type == "DELETED":
            self._discard(record.uid)
        else:
            self._consider(record)

    def _consider(self, record: Record) -> None:
        """Give the pod a life when it is bound to this node and not over."""
        if self._is_stopping or record.fields.get("spec.nodeName") != NODE:
            return
        pod = record.object()
        phase = (pod.get("status") or {}).get("phase")
        leaves = is_terminating(pod) and bool(pod["metadata"].get("deletionGracePeriodSeconds"))
        if (phase in FINISHED or annotations_of(pod).get(HOLD) == "true") and not leaves:
            return
        assert self._site is not None
        life = PodLife(
            self._site, record.namespace, record.name, record.uid, rebooted=self._rebooted
        )
        task = asyncio.create_task(life.run(), name=f"pod {record.namespace}/{record.name}")
        self._members[record.uid] = _Member(life, task)
        task.add_done_callback(lambda _: self._members.pop(record.uid, None))

    def _claim_changed(self, change: Change) -> None:
        if change.type == "DELETED":
            self._remove(self._claims / change.record.uid)

    def _discard(self, uid: str) -> None:
        """Remove what a finished pod left."""
        self._remove(self._root / uid)

    def _remove(self, directory: Path) -> None:
        """Remove a directory, off the event loop."""
        if directory.exists():
            self._keep(asyncio.create_task(asyncio.to_thread(removal.remove, directory)))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # What is done again and again

    def _repeat(self, name: str, seconds: float, step: Callable[[], Awaitable[None]]) -> None:
        async def loop() -> None:
            while True:
                try:
                    await step()
                except Exception as error:
                    log.error(
                        "the kubelet's %s failed: %s",
                        name,
                        error,
                        exc_info=not isinstance(error, ApiError),
                    )
                await asyncio.sleep(seconds)

        self._keep(asyncio.create_task(loop(), name=name))

    async def _renew(self) -> None:
        self._node.renew()

    async def _measure(self) -> None:
        running = {
            (uid, name): pid
            for uid, member in self._members.items()
            for name, pid in member.life.supervisors.items()
        }
        await asyncio.to_thread(self._stats.measure, running)

    async def _forget(self) -> None:
        finished = [
            record.uid
            for record in self._objects.store.list(PODS.key)
            if record.fields.get("status.phase") in FINISHED
        ]
        idle = [uid for uid in finished if uid not in self._members]
        for directory in await asyncio.to_thread(retention.overdue, self._root, idle):
            log.info("the logs of a finished pod are removed: %s", directory.name)
            await asyncio.to_thread(removal.remove, directory)

    # machine.Machine

    def read_log(self, pod: Object, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """See `machine.Machine`: the newest run's log, or with `previous` that of the run before
        it.
        """
        known = attempts.history(self._root / uid_of(pod), container, None)
        begun = [
            attempt.directory
            for attempt in known
            if isinstance(attempt.state, runs.Running | runs.Exited)
        ]
        if not begun or (options.previous and len(begun) < 2):
            raise errors.bad_request(_no_log(pod, container, options))
        directory = begun[-2 if options.previous else -1]
        return logfiles.read(
            directory, options, lambda: not isinstance(runs.state(directory), runs.Exited | str)
        )

    def pod_usage(self) -> Mapping[str, Mapping[str, Usage]]:
        return self._stats.pods()

    def node_usage(self) -> Usage | None:
        return self._stats.node()


def _remove_others(directory: Path, uids: Collection[str]) -> None:
    """Remove the directories of claims that were deleted while no kubelet looked."""
    for place in directory.iterdir() if directory.is_dir() else ():
        if place.name not in uids:
            removal.remove(place)


def _no_log(pod: Object, container: str, options: LogOptions) -> str:
    """Why there is no log, in the words of a real kubelet where it would say so too."""
    if options.previous:
        return f'previous terminated container "{container}" in pod "{name_of(pod)}" not found'
    state: Object = next(
        (entry["state"] for entry in _statuses(pod) if entry["name"] == container), {}
    )
    if "terminated" in state or "running" in state:
        return (
            f'the log of container "{container}" in pod "{name_of(pod)}" was removed to make room'
        )
    reason = state.get("waiting", {}).get("reason") or "ContainerCreating"
    return f'container "{container}" in pod "{name_of(pod)}" is waiting to start: {reason}'


def _statuses(pod: Object) -> Iterator[Object]:
    status = pod.get("status") or {}
    for part in ("initContainerStatuses", "containerStatuses"):
        yield from status.get(part) or ()
