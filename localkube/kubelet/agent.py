"""The kubelet's agent: runs the pods of this node, reports the node, and serves logs and usage."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from localkube import errors
from localkube.errors import ApiError
from localkube.event_recorder import EventRecorder
from localkube.kubelet import attempts, gpus, logfiles, removal, retention, runs
from localkube.kubelet.node import RENEW_SECONDS, NodeReporter
from localkube.kubelet.pod_status import NODE_SHUTDOWN
from localkube.kubelet.pod_worker import PodWorker
from localkube.kubelet.run_specs import CLAIMS_DIRECTORY, NodeContext
from localkube.kubelet.stats import MEASURE_SECONDS, UsageStats
from localkube.machine import LogOptions, Usage
from localkube.metadata import (
    FINISHED_PHASES,
    Object,
    annotations_of,
    is_terminating,
    name_of,
    uid_of,
)
from localkube.objects import Objects
from localkube.options import HOLD_ANNOTATION, NODE_NAME, Options
from localkube.resources import PERSISTENTVOLUMECLAIMS, PODS
from localkube.store import Change, Record

SHUTDOWN_GRACE = 10.0
"""The most seconds that a pod gets to end when the node shuts down."""

SHUTDOWN_SLACK = 5.0
RETENTION_SECONDS = 60.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _PodTask:
    """A pod's worker and the asyncio task that runs it."""

    worker: PodWorker
    task: asyncio.Task[None]


class Kubelet:
    """The agent of the one node; implements `machine.Machine`."""

    def __init__(self, objects: Objects, recorder: EventRecorder, options: Options) -> None:
        self._objects = objects
        self._recorder = recorder
        self._options = options
        self._pods_directory = options.data / "pods"
        self._claims_directory = options.data / CLAIMS_DIRECTORY
        self._stats = UsageStats()
        self._pod_tasks: dict[str, _PodTask] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self._rebooted = False
        self._context: NodeContext | None = None

    async def start(self) -> None:
        """Register the node, end processes of unknown pods, and continue every pod of this node."""
        devices = await asyncio.to_thread(gpus.detect_gpus, self._options.gpus)
        self._node = NodeReporter(self._objects, self._options, devices)
        self._rebooted = self._node.register()
        virtual = any(gpu.virtual for gpu in devices)
        self._context = NodeContext(
            self._objects,
            self._recorder,
            self._options,
            self._node.allocatable,
            virtual,
            lambda: self._node.pressure,
        )
        self._pods_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        pod_uids = {record.uid for record in self._objects.store.list(PODS.key)}
        await asyncio.to_thread(runs.sweep, self._pods_directory, pod_uids)
        claim_uids = {record.uid for record in self._objects.store.list(PERSISTENTVOLUMECLAIMS.key)}
        await asyncio.to_thread(_remove_stale_claims, self._claims_directory, claim_uids)
        self._unsubscribe_claims = self._objects.subscribe(
            PERSISTENTVOLUMECLAIMS, self._claim_changed
        )
        self._unsubscribe = self._objects.subscribe(PODS, self._pod_changed)
        # After the subscription and without an await in between: no change of a pod is missed.
        for record in self._objects.store.list(PODS.key):
            self._start_worker(record)
        # Pods that are bound from now on were not here before the reboot.
        self._rebooted = False
        self._run_periodically("heartbeat", RENEW_SECONDS, self._renew_node)
        self._run_periodically("usage", MEASURE_SECONDS, self._measure_usage)
        self._run_periodically("retention", RETENTION_SECONDS, self._remove_overdue_logs)

    async def stop(self, keep_pods: bool) -> None:
        """End every pod as at a node shutdown, within `SHUTDOWN_GRACE`.

        With `keep_pods` the pods are left to the next start. Does nothing when not started or
        already stopped.
        """
        if self._context is None:
            return
        self._is_stopping = True
        self._node.report_shutdown()
        if not keep_pods:
            for member in self._pod_tasks.values():
                member.worker.request_end(NODE_SHUTDOWN, SHUTDOWN_GRACE)
            tasks = [member.task for member in self._pod_tasks.values()]
            if tasks:
                await asyncio.wait(tasks, timeout=SHUTDOWN_GRACE + SHUTDOWN_SLACK)
        self._unsubscribe()
        self._unsubscribe_claims()
        remaining = [*self._tasks, *(member.task for member in self._pod_tasks.values())]
        for task in remaining:
            task.cancel()
        await asyncio.gather(*remaining, return_exceptions=True)
        self._context = None

    # Pod changes

    def _pod_changed(self, change: Change) -> None:
        record = change.record
        member = self._pod_tasks.get(record.uid)
        if member is not None:
            member.worker.wake()
        elif change.type == "DELETED":
            self._remove_pod_directory(record.uid)
        else:
            self._start_worker(record)

    def _start_worker(self, record: Record) -> None:
        """Start a worker for the pod if it is bound to this node and not over."""
        if self._is_stopping or record.fields.get("spec.nodeName") != NODE_NAME:
            return
        pod = record.decode()
        phase = (pod.get("status") or {}).get("phase")
        needs_deletion = is_terminating(pod) and bool(
            pod["metadata"].get("deletionGracePeriodSeconds")
        )
        if (
            phase in FINISHED_PHASES or annotations_of(pod).get(HOLD_ANNOTATION) == "true"
        ) and not needs_deletion:
            return
        assert self._context is not None
        worker = PodWorker(
            self._context, record.namespace, record.name, record.uid, rebooted=self._rebooted
        )
        task = asyncio.create_task(worker.run(), name=f"pod {record.namespace}/{record.name}")
        self._pod_tasks[record.uid] = _PodTask(worker, task)
        task.add_done_callback(lambda _: self._pod_tasks.pop(record.uid, None))

    def _claim_changed(self, change: Change) -> None:
        if change.type == "DELETED":
            self._remove_directory(self._claims_directory / change.record.uid)

    def _remove_pod_directory(self, uid: str) -> None:
        """Remove what a finished pod left on disk."""
        self._remove_directory(self._pods_directory / uid)

    def _remove_directory(self, directory: Path) -> None:
        """Remove a directory, off the event loop."""
        if directory.exists():
            self._track_task(asyncio.create_task(asyncio.to_thread(removal.remove_tree, directory)))

    def _track_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Periodic tasks

    def _run_periodically(
        self, name: str, seconds: float, step: Callable[[], Awaitable[None]]
    ) -> None:
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

        self._track_task(asyncio.create_task(loop(), name=name))

    async def _renew_node(self) -> None:
        self._node.renew()

    async def _measure_usage(self) -> None:
        running = {
            (uid, name): pid
            for uid, member in self._pod_tasks.items()
            for name, pid in member.worker.supervisor_pids.items()
        }
        await asyncio.to_thread(self._stats.measure, running)

    async def _remove_overdue_logs(self) -> None:
        finished = [
            record.uid
            for record in self._objects.store.list(PODS.key)
            if record.fields.get("status.phase") in FINISHED_PHASES
        ]
        idle = [uid for uid in finished if uid not in self._pod_tasks]
        for directory in await asyncio.to_thread(
            retention.list_overdue, self._pods_directory, idle
        ):
            log.info("the logs of a finished pod are removed: %s", directory.name)
            await asyncio.to_thread(removal.remove_tree, directory)

    # machine.Machine

    def read_log(self, pod: Object, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """Return the newest run's log, or with `previous` that of the run before; see
        `machine.Machine`.
        """
        history = attempts.load_attempts(self._pods_directory / uid_of(pod), container, None)
        started = [
            attempt.directory
            for attempt in history
            if isinstance(attempt.state, runs.Running | runs.Exited)
        ]
        if not started or (options.previous and len(started) < 2):
            raise errors.bad_request_error(_describe_missing_log(pod, container, options))
        directory = started[-2 if options.previous else -1]
        return logfiles.read_log(
            directory,
            options,
            lambda: not isinstance(runs.read_run_state(directory), runs.Exited | str),
        )

    def pod_usage(self) -> Mapping[str, Mapping[str, Usage]]:
        return self._stats.pod_usage()

    def node_usage(self) -> Usage | None:
        return self._stats.node_usage()


def _remove_stale_claims(directory: Path, uids: Collection[str]) -> None:
    """Remove the directories of claims that were deleted while no kubelet ran."""
    for place in directory.iterdir() if directory.is_dir() else ():
        if place.name not in uids:
            removal.remove_tree(place)


def _describe_missing_log(pod: Object, container: str, options: LogOptions) -> str:
    """Return why there is no log, in the words of a real kubelet where it has any."""
    if options.previous:
        return f'previous terminated container "{container}" in pod "{name_of(pod)}" not found'
    state: Object = next(
        (entry["state"] for entry in _list_container_statuses(pod) if entry["name"] == container),
        {},
    )
    if "terminated" in state or "running" in state:
        return (
            f'the log of container "{container}" in pod "{name_of(pod)}" was removed to make room'
        )
    reason = state.get("waiting", {}).get("reason") or "ContainerCreating"
    return f'container "{container}" in pod "{name_of(pod)}" is waiting to start: {reason}'


def _list_container_statuses(pod: Object) -> Iterator[Object]:
    status = pod.get("status") or {}
    for part in ("initContainerStatuses", "containerStatuses"):
        yield from status.get(part) or ()
