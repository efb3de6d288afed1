"""The machine that the nodes share: their kubelets, and the pods' directories, logs and usage."""

import asyncio
import contextlib
import logging
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from pathlib import Path

from localkube import errors
from localkube.errors import ApiError
from localkube.kubelet import attempts, gpus, logfiles, removal, retention, runs
from localkube.kubelet.agent import Kubelet, run_periodically
from localkube.kubelet.gpu_usage import (
    GpuMeter,
    Reading,
    combine_readings,
    find_holder,
    list_real_devices,
)
from localkube.kubelet.gpus import Gpu
from localkube.kubelet.machine_division import count_wanted_gpus, divide_machine
from localkube.kubelet.node import is_our_node
from localkube.kubelet.run_specs import CLAIMS_DIRECTORY
from localkube.kubelet.stats import MEASURE_SECONDS, ContainerKey, UsageStats
from localkube.machine import GpuUsage, LogOptions, Usage
from localkube.metadata import FINISHED_PHASES, Object, annotations_of, name_of, uid_of
from localkube.objects import Objects
from localkube.options import STOPPED_ANNOTATION, Options
from localkube.resources import LEASE_NAMESPACE, LEASES, NODES, PERSISTENTVOLUMECLAIMS, PODS
from localkube.store import Change

RETENTION_SECONDS = 60.0
SWITCH_RETRY_SECONDS = 5.0

log = logging.getLogger(__name__)


class Host:
    """The machine with all its nodes; implements `machine.Machine`.

    A node's kubelet runs unless its object carries STOPPED_ANNOTATION.
    """

    def __init__(self, objects: Objects, options: Options) -> None:
        self._objects = objects
        self._options = options
        self._pods_directory = options.data / "pods"
        self._claims_directory = options.data / CLAIMS_DIRECTORY
        self._stats = UsageStats()
        self._gpu_meter = GpuMeter()
        self._real_devices: Mapping[str, Sequence[Gpu]] = {}
        """The devices of each node that has real ones."""
        self._node_gpus: Mapping[str, GpuUsage | None] = {}
        self.kubelets: Mapping[str, Kubelet] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._switching: asyncio.Task[None] | None = None
        self._nodes_changed = asyncio.Event()
        self._unsubscribe: list[Callable[[], None]] = []

    async def start(self) -> None:
        """Register the nodes, end processes of unknown pods, and continue every node's pods.

        Raises CannotDivide when the machine has fewer GPUs than its nodes shall have.
        """
        devices = await asyncio.to_thread(gpus.detect_gpus, count_wanted_gpus(self._options))
        shares = divide_machine(self._options, devices)
        self._real_devices = {
            share.name: share.devices for share in shares if list_real_devices(share.devices)
        }
        sync_lock = asyncio.Lock()
        self.kubelets = {
            share.name: Kubelet(self._objects, self._options, share, sync_lock) for share in shares
        }
        await self._clear_directories()
        self._remove_former_nodes()
        self._unsubscribe = [
            self._objects.subscribe(PERSISTENTVOLUMECLAIMS, self._claim_changed),
            self._objects.subscribe(NODES, self._node_changed),
            self._objects.subscribe(PODS, self._pod_changed),
        ]
        # After the subscription and without an await in between: no change of a pod is missed.
        for kubelet in self._list_powered():
            kubelet.start()
        self._switching = asyncio.create_task(self._follow_nodes(), name="node switches")
        for name, seconds, step in (
            ("measuring of usage", MEASURE_SECONDS, self._measure_usage),
            ("removal of old logs", RETENTION_SECONDS, self._remove_overdue_logs),
        ):
            self._track_task(asyncio.create_task(run_periodically(name, seconds, step), name=name))

    async def stop(self, keep_pods: bool) -> None:
        """End every pod as at a shutdown of its node, or with `keep_pods` leave it.

        Does nothing when not started or already stopped.
        """
        if self._switching is None:
            return
        self._switching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._switching
        self._switching = None
        await asyncio.gather(
            *(kubelet.stop(keep_pods=keep_pods) for kubelet in self.kubelets.values())
        )
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        remaining = list(self._tasks)
        for task in remaining:
            task.cancel()
        await asyncio.gather(*remaining, return_exceptions=True)

    async def _clear_directories(self) -> None:
        """End and remove what nobody knows any more; end what runs on nodes without a kubelet."""
        self._pods_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        records = self._objects.store.list(PODS.key)
        await asyncio.to_thread(
            runs.sweep, self._pods_directory, {record.uid for record in records}
        )
        powered = {kubelet.name for kubelet in self._list_powered()}
        torn = [record.uid for record in records if _get_node_name(record.fields) not in powered]
        await asyncio.to_thread(runs.cut_power, self._pods_directory, torn)
        claim_uids = {record.uid for record in self._objects.store.list(PERSISTENTVOLUMECLAIMS.key)}
        await asyncio.to_thread(_remove_stale_claims, self._claims_directory, claim_uids)

    # Nodes

    def _list_powered(self) -> list[Kubelet]:
        """Return the kubelets that nobody has stopped."""
        return [kubelet for name, kubelet in self.kubelets.items() if not self._is_stopped(name)]

    def _is_stopped(self, name: str) -> bool:
        node = self._objects.find(NODES, "", name)
        return node is not None and annotations_of(node).get(STOPPED_ANNOTATION) == "true"

    def _remove_former_nodes(self) -> None:
        """Remove the nodes that this machine had under other options.

        Their pods are left to pod garbage collection, as on a real cluster.
        """
        for node in self._objects.list(NODES):
            name = name_of(node)
            if name in self.kubelets or not is_our_node(node):
                continue
            log.info("node %s is removed: the options name others", name)
            self._objects.delete(NODES, "", name)
            if self._objects.find(LEASES, LEASE_NAMESPACE, name) is not None:
                self._objects.delete(LEASES, LEASE_NAMESPACE, name)

    def _node_changed(self, change: Change) -> None:
        if change.record.name in self.kubelets:
            self._nodes_changed.set()

    async def _follow_nodes(self) -> None:
        """Stop and start kubelets as the annotations of their nodes say."""
        while True:
            await self._nodes_changed.wait()
            self._nodes_changed.clear()
            for kubelet in self.kubelets.values():
                try:
                    await self._switch(kubelet)
                except (ApiError, OSError) as error:
                    log.error("%s could not be switched: %s", kubelet.name, error)
                    await asyncio.sleep(SWITCH_RETRY_SECONDS)
                    self._nodes_changed.set()

    async def _switch(self, kubelet: Kubelet) -> None:
        if kubelet.is_running and self._is_stopped(kubelet.name):
            log.info("the kubelet of %s is stopped: its pods' processes die", kubelet.name)
            await kubelet.cut_power()
        # A node that was deleted while it stood still stays away until somebody creates it.
        elif (
            not kubelet.is_running
            and not self._is_stopped(kubelet.name)
            and self._objects.find(NODES, "", kubelet.name) is not None
        ):
            log.info("the kubelet of %s starts again", kubelet.name)
            kubelet.start(rebooted=True)

    # Pods and claims

    def _pod_changed(self, change: Change) -> None:
        record = change.record
        kubelet = self.kubelets.get(_get_node_name(record.fields))
        if change.type != "DELETED":
            if kubelet is not None:
                kubelet.follow_pod(record)
        elif kubelet is None or not kubelet.wake_worker(record.uid):
            self._remove_directory(self._pods_directory / record.uid)

    def _claim_changed(self, change: Change) -> None:
        if change.type == "DELETED":
            self._remove_directory(self._claims_directory / change.record.uid)

    def _remove_directory(self, directory: Path) -> None:
        """Remove a directory, off the event loop."""
        if directory.exists():
            self._track_task(asyncio.create_task(asyncio.to_thread(removal.remove_tree, directory)))

    def _track_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Periodic tasks

    async def _measure_usage(self) -> None:
        running = {
            container: pid
            for kubelet in self.kubelets.values()
            for container, pid in kubelet.list_supervisors().items()
        }
        readings: Mapping[int, Reading] = {}
        if self._real_devices:
            readings = await asyncio.to_thread(self._gpu_meter.measure)
        self._node_gpus = {
            name: combine_readings(readings, list_real_devices(devices))
            for name, devices in self._real_devices.items()
        }
        pod_gpus = self._combine_pod_readings(readings, running) if readings else {}
        await asyncio.to_thread(self._stats.measure, running, pod_gpus)

    def _combine_pod_readings(
        self, readings: Mapping[int, Reading], running: Collection[ContainerKey]
    ) -> Mapping[ContainerKey, GpuUsage]:
        """Return what the devices of each pod do, by its first running container that has any."""
        names_by_uid: dict[str, set[str]] = {}
        for uid, name in running:
            names_by_uid.setdefault(uid, set()).add(name)
        usage: dict[ContainerKey, GpuUsage] = {}
        for record in self._objects.store.list(PODS.key):
            names = names_by_uid.get(record.uid)
            devices = self._real_devices.get(_get_node_name(record.fields))
            if not names or not devices:
                continue
            holder = find_holder(record.decode(), names, devices)
            if holder is None:
                continue
            container, indexes = holder
            pod_usage = combine_readings(readings, indexes)
            if pod_usage is not None:
                usage[record.uid, container] = pod_usage
        return usage

    async def _remove_overdue_logs(self) -> None:
        busy = {uid for kubelet in self.kubelets.values() for uid in kubelet.pod_uids}
        idle = [
            record.uid
            for record in self._objects.store.list(PODS.key)
            if record.fields.get("status.phase") in FINISHED_PHASES and record.uid not in busy
        ]
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
        kubelet = self.kubelets.get(pod["spec"].get("nodeName") or "")
        if kubelet is not None and not kubelet.is_running:
            raise errors.internal_error(
                f"the kubelet of node {kubelet.name} does not answer: the log can be read when it "
                "runs again"
            )
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

    def node_usage(self) -> Mapping[str, Usage]:
        """Return what each node uses: one node all that the machine does, several their pods'."""
        machine_usage = self._stats.node_usage()
        running = [kubelet for kubelet in self.kubelets.values() if kubelet.is_running]
        if machine_usage is None:
            return {}
        if len(self.kubelets) == 1:
            usage = {kubelet.name: machine_usage for kubelet in running}
        else:
            pods = self.pod_usage()
            usage = {
                kubelet.name: _sum_usage(
                    (used for uid in kubelet.pod_uids for used in pods.get(uid, {}).values()),
                    machine_usage,
                )
                for kubelet in running
            }
        return {name: replace(used, gpus=self._node_gpus.get(name)) for name, used in usage.items()}


def _get_node_name(fields: Mapping[str, str]) -> str:
    return fields.get("spec.nodeName", "")


def _sum_usage(parts: Iterable[Usage], machine_usage: Usage) -> Usage:
    """Return the sum of what was measured together with the whole machine."""
    used = list(parts)
    return Usage(
        sum(part.nanocores for part in used),
        sum(part.memory for part in used),
        machine_usage.measured_at,
        machine_usage.window,
    )


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
        (
            entry.get("state") or {}
            for entry in _list_container_statuses(pod)
            if entry.get("name") == container
        ),
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
