"""The scheduler as a controller: follows changes, runs scheduling passes, writes their outcome."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from localkube import options
from localkube.errors import ApiError
from localkube.event_recorder import EventRecorder
from localkube.metadata import Object, set_condition
from localkube.objects import Objects, WriteRequest
from localkube.resources import PODS
from localkube.resources.resource import Resource
from localkube.scheduler.cluster_index import ClusterIndex, Key, Trigger
from localkube.scheduler.demand import Amounts
from localkube.scheduler.group_reports import GroupReports, build_resources_status
from localkube.scheduler.groups import Group, Groups
from localkube.scheduler.node_room import Assignment
from localkube.scheduler.pending_writes import PendingWrites
from localkube.scheduler.placement import SchedulingPass
from localkube.scheduler.pod_reports import PodReports, build_scheduled_condition
from localkube.scheduler.queues import Booking, Queues
from localkube.scheduler.refusal import NO_ROOM, Refusal
from localkube.scheduler.task import (
    DEFAULT_SCHEDULER,
    KAI_SCHEDULER,
    POD_GROUP_ANNOTATION,
    SCHEDULER_NAMES,
    Task,
)

SERVER_ERROR = 500
"""From this code on a refusal is not the object's fault: the whole pass is tried again later."""


class Scheduler:
    """Runs scheduling passes.

    `recorder_for` returns the recorder of a component; without it the scheduler makes its own.
    """

    name = "scheduler"

    def __init__(
        self,
        objects: Objects,
        recorder_for: Callable[[str], EventRecorder] | None = None,
        node: str = options.NODE_NAME,
    ) -> None:
        recorder_for = recorder_for or (
            lambda component: EventRecorder(
                objects, component, modern=component == DEFAULT_SCHEDULER
            )
        )
        self._objects = objects
        self._node = node
        self._index = ClusterIndex(node)
        self._groups = Groups(objects, self._index)
        self._queues = Queues()
        self._pending_writes = PendingWrites()
        self._verdicts: dict[Key, Refusal | None] = {}
        self._bound_uids: list[str] = []
        self._last_pass_version = 0
        self._pod_reports = PodReports(objects, recorder_for)
        self._group_reports = GroupReports(objects, recorder_for(KAI_SCHEDULER))

    def triggers(self) -> Mapping[Resource, Trigger]:
        return self._index.triggers()

    def reconcile(self, key: Key) -> float | None:
        """Run one pass over what changed, and over all that waits when there is more room than
        before.
        """
        if not self._is_last_pass_stored():
            self._mark_all_changed()
        try:
            self._run_pass()
            pauses = [
                pause
                for pause in (self._pod_reports.repeat_reports(), self._pending_writes.run_writes())
                if pause is not None
            ]
        except BaseException:
            self._mark_all_changed()
            raise
        self._last_pass_version = self._objects.store.rv
        return min(pauses, default=None)

    def _is_last_pass_stored(self) -> bool:
        """Return whether the last pass was stored.

        It is one transaction of the loop, which may fail after the pass is over (a full disk).
        """
        tasks = self._index.tasks
        return self._objects.store.rv >= self._last_pass_version and all(
            tasks[uid].node for uid in self._bound_uids if uid in tasks
        )

    def _mark_all_changed(self) -> None:
        """Treat everything as changed: changes were noted that no pass has acted on."""
        self._index.changed_pods |= dict.fromkeys([*self._index.tasks, *self._groups.pod_uids()])
        self._index.rules_changed = self._index.room_grew = True
        self._verdicts.clear()

    def _run_pass(self) -> None:
        index = self._index
        self._bound_uids.clear()
        changed = list(index.changed_pods)
        if index.rules_changed:
            self._queues.capacity = index.node.allocatable if index.node else {}
            self._queues.replace_queues(index.list_queues())
        concerned = self._groups.refresh()
        self._book_changes(changed, concerned)
        keys = self._groups.list_waiting() if index.room_grew else concerned
        verdicts = SchedulingPass(index, self._groups, self._queues, self._bind_tasks).place_groups(
            keys
        )
        self._queue_reports(concerned, verdicts)
        if concerned or index.rules_changed:
            for name in index.queues:
                self._pending_writes.add_write(("queue", name), partial(self._report_queue, name))
        index.rules_changed = index.room_grew = False

    def _book_changes(self, changed: Sequence[str], concerned: Mapping[Key, Group]) -> None:
        """Book every changed pod, and every pod of a changed gang, with its queue."""
        for uid in changed:
            task = self._index.tasks.get(uid)
            if self._groups.find_by_pod(uid) is None:
                self._queues.book_pod(uid, None)
            if task is None or task.node:
                self._pod_reports.forget_pod(uid)
            elif task.scheduler not in SCHEDULER_NAMES:
                self._pod_reports.report_unknown_scheduler(task)
        for group in concerned.values():
            for task in self._groups.list_tasks(group):
                self._book_task(group, task, placed=bool(task.node))

    def _book_task(self, group: Group, task: Task, *, placed: bool) -> None:
        self._queues.book_pod(
            task.uid,
            Booking(group.queue, self._compute_charge(task), placed, group.non_preemptible),
        )

    def _compute_charge(self, task: Task) -> Amounts:
        return task.demand.compute_charge(
            self._index.node.device_memory if self._index.node else None
        )

    def _bind_tasks(
        self, group: Group, tasks: Sequence[Task], assignment: Assignment
    ) -> Refusal | None:
        """Put pods on the node, all or none, and book them.

        Returns a refusal when the API does not accept one of them.
        """
        # Dry-run all of them first: a refusal of the last pod must not leave the others bound.
        try:
            for task in tasks:
                self._assign_node(group, task, assignment[task.uid], WriteRequest(dry_run=True))
        except ApiError as refusal:
            if refusal.code >= SERVER_ERROR:
                raise
            return Refusal(NO_ROOM, refusal.message, f"the pod cannot be bound: {refusal.message}")
        for task in tasks:
            pod = self._assign_node(group, task, assignment[task.uid], WriteRequest())
            pod = self._objects.modify(
                PODS, task.namespace, task.name, _set_scheduled_condition, subresource="status"
            )
            self._book_task(group, task, placed=True)
            self._pod_reports.report_scheduled(pod)
            self._bound_uids.append(task.uid)
        return None

    def _assign_node(
        self, group: Group, task: Task, devices: Sequence[int], request: WriteRequest
    ) -> Object:
        def place(pod: Object) -> None:
            pod["spec"]["nodeName"] = self._node
            annotations = pod["metadata"].setdefault("annotations", {})
            annotations[POD_GROUP_ANNOTATION] = group.name
            if devices:
                annotations[options.GPU_DEVICES_ANNOTATION] = ",".join(map(str, devices))
            else:
                annotations.pop(options.GPU_DEVICES_ANNOTATION, None)

        return self._objects.modify(PODS, task.namespace, task.name, place, request=request)

    def _queue_reports(
        self, concerned: Mapping[Key, Group], verdicts: Mapping[Key, Refusal | None]
    ) -> None:
        """Queue reports about gangs that changed or whose verdict did.

        A gang that was bound just now comes again, changed, as soon as that is stored.
        """
        for key, group in concerned.items():
            if key not in verdicts:
                self._verdicts.pop(key, None)
                self._pending_writes.add_write(("gang", *key), partial(self._report_group, group))
        for key, refusal in verdicts.items():
            waiting = self._groups.find(key)
            if waiting is None or not waiting.members.keys().isdisjoint(self._bound_uids):
                continue
            if key in concerned or self._verdicts.get(key) != refusal:
                self._verdicts[key] = refusal
                self._pending_writes.add_write(("gang", *key), partial(self._report_group, waiting))

    def _report_queue(self, name: str) -> None:
        queue = self._index.queues.get(name)
        if queue is not None:
            self._group_reports.report_queue(queue, self._queues.build_status(name))

    def _report_group(self, group: Group) -> None:
        refusal, members = self._verdicts.get(group.key), self._groups.list_tasks(group)
        for task in members:
            if refusal is not None and task.is_waiting:
                self._pod_reports.report_waiting(task, group, refusal)
        placed = [self._compute_charge(task) for task in members if task.node]
        status = build_resources_status(
            placed,
            [self._compute_charge(task) for task in members],
            non_preemptible=group.non_preemptible,
        )
        self._group_reports.report_group(group, status, refusal, has_placed_pods=bool(placed))


def _set_scheduled_condition(pod: Object) -> None:
    set_condition(
        pod.setdefault("status", {}).setdefault("conditions", []), build_scheduled_condition()
    )
