"""The kubelet of one node: runs the node's pods and reports the node, until it is stopped."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass

from localkube.errors import ApiError
from localkube.event_recorder import EventRecorder
from localkube.kubelet import runs
from localkube.kubelet.machine_division import NodeShare
from localkube.kubelet.node import NodeReporter
from localkube.kubelet.pod_admission import PodAdmission, was_reported
from localkube.kubelet.pod_status import NODE_SHUTDOWN
from localkube.kubelet.pod_worker import PodWorker
from localkube.kubelet.run_specs import NodeContext
from localkube.metadata import FINISHED_PHASES, annotations_of, is_terminating
from localkube.objects import Objects
from localkube.options import HOLD_ANNOTATION, Options
from localkube.resources import PODS
from localkube.store import Record

SHUTDOWN_GRACE = 10.0
"""The most seconds that a pod gets to end when the node shuts down."""

SHUTDOWN_SLACK = 5.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _PodTask:
    """A pod's worker and the asyncio task that runs it."""

    worker: PodWorker
    task: asyncio.Task[None]


class Kubelet:
    """The agent of one node. The host that it runs on tells it which pods changed.

    `sync_lock` is that of all kubelets of the machine.
    """

    def __init__(
        self, objects: Objects, options: Options, share: NodeShare, sync_lock: asyncio.Lock
    ) -> None:
        self.name = share.name
        self._objects = objects
        self._pod_tasks: dict[str, _PodTask] = {}
        self._heartbeat: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._rebooted = False
        self._node = NodeReporter(objects, options, share)
        self._context = NodeContext(
            objects,
            EventRecorder(objects, "kubelet", host=share.name),
            options,
            share,
            PodAdmission(objects, share),
            lambda: self._node.pressure,
            sync_lock,
        )

    @property
    def is_running(self) -> bool:
        return self._heartbeat is not None

    def start(self, *, rebooted: bool = False) -> None:
        """Register the node and continue every pod of it.

        `rebooted` says that its power was cut since it last ran.
        """
        self._is_stopping = False
        self._rebooted = self._node.register() or rebooted
        for record in self._list_pods():
            self._start_worker(record)
        # Pods that are bound from now on were not here before the reboot.
        self._rebooted = False
        self._heartbeat = asyncio.create_task(
            run_periodically(f"heartbeat of {self.name}", self._node.renew_seconds, self._renew)
        )

    async def stop(self, *, keep_pods: bool) -> None:
        """End every pod as at a node shutdown, within `SHUTDOWN_GRACE`.

        With `keep_pods` the pods are left to the next start. Does nothing when it does not run.
        """
        if not self.is_running:
            return
        self._is_stopping = True
        self._node.report_shutdown()
        if not keep_pods:
            for member in self._pod_tasks.values():
                member.worker.request_end(NODE_SHUTDOWN, SHUTDOWN_GRACE)
            tasks = [member.task for member in self._pod_tasks.values()]
            if tasks:
                await asyncio.wait(tasks, timeout=SHUTDOWN_GRACE + SHUTDOWN_SLACK)
        await self._cancel_tasks()

    async def cut_power(self) -> None:
        """Stop at once and kill every process of the node's pods; nothing of it is reported."""
        self._is_stopping = True
        await self._cancel_tasks()
        uids = [record.uid for record in self._list_pods()]
        await asyncio.to_thread(runs.cut_power, self._context.pods_directory, uids)

    async def _cancel_tasks(self) -> None:
        tasks = [member.task for member in self._pod_tasks.values()]
        if self._heartbeat is not None:
            tasks.append(self._heartbeat)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._heartbeat = None

    async def _renew(self) -> None:
        self._node.renew()

    # Pods

    def follow_pod(self, record: Record) -> None:
        """Act on a pod of this node that was created or changed."""
        if not self.wake_worker(record.uid):
            self._start_worker(record)

    def wake_worker(self, uid: str) -> bool:
        """Let the pod's worker look at it again; return whether it has one."""
        member = self._pod_tasks.get(uid)
        if member is not None:
            member.worker.wake()
        return member is not None

    def list_supervisors(self) -> Mapping[tuple[str, str], int]:
        """Return the supervisors (pids) of running containers by pod uid and container name."""
        return {
            (uid, name): pid
            for uid, member in self._pod_tasks.items()
            for name, pid in member.worker.supervisor_pids.items()
        }

    @property
    def pod_uids(self) -> Collection[str]:
        """The uids of the pods that it works on."""
        return self._pod_tasks.keys()

    def _list_pods(self) -> list[Record]:
        return [
            record
            for record in self._objects.store.list(PODS.key)
            if record.fields.get("spec.nodeName") == self.name
        ]

    def _start_worker(self, record: Record) -> None:
        """Start a worker for a pod of this node if it is not over."""
        if self._is_stopping:
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
        if was_reported(pod):
            # At the start of the server these count before any new pod is checked.
            self._context.admission.admit_pod(pod)
        worker = PodWorker(
            self._context, record.namespace, record.name, record.uid, rebooted=self._rebooted
        )
        task = asyncio.create_task(worker.run(), name=f"pod {record.namespace}/{record.name}")
        self._pod_tasks[record.uid] = _PodTask(worker, task)
        task.add_done_callback(lambda _: self._pod_tasks.pop(record.uid, None))


async def run_periodically(name: str, seconds: float, step: Callable[[], Awaitable[None]]) -> None:
    """Run a step for ever, `seconds` apart; a failure is logged and the next one follows."""
    while True:
        try:
            await step()
        except Exception as error:
            log.error("the %s failed: %s", name, error, exc_info=not isinstance(error, ApiError))
        await asyncio.sleep(seconds)
