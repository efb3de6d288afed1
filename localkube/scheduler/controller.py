"""The scheduler as a controller: follows what changed, runs a pass over what waits, and has the
outcome written.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from localkube import options
from localkube.errors import ApiError
from localkube.metadata import Object, set_condition
from localkube.objects import Objects, Request
from localkube.recorder import Recorder
from localkube.resources import PODS
from localkube.resources.resource import Resource
from localkube.scheduler.demand import Amounts
from localkube.scheduler.group_reports import GroupReports, counts
from localkube.scheduler.groups import Group, Groups
from localkube.scheduler.index import Index, Key, Trigger
from localkube.scheduler.notes import Notes
from localkube.scheduler.placement import Pass
from localkube.scheduler.pod_reports import PodReports, scheduled_condition
from localkube.scheduler.queues import Booking, Queues
from localkube.scheduler.refusal import NO_ROOM, Refusal
from localkube.scheduler.room import Assignment
from localkube.scheduler.task import DEFAULT, KAI, NAMES, POD_GROUP, Task

INTERNAL = 500
"""From this code on a refusal is not the object's fault: the whole pass is tried again later."""


class Scheduler:
    """Runs scheduling passes. `recorder_for` gives the recorder of a component; without it the
    scheduler makes its own.
    """

    name = "scheduler"

    def __init__(
        self,
        objects: Objects,
        recorder_for: Callable[[str], Recorder] | None = None,
        node: str = options.NODE,
    ) -> None:
        recorder_for = recorder_for or (
            lambda component: Recorder(objects, component, modern=component == DEFAULT)
        )
        self._objects = objects
        self._node = node
        self._index = Index(node)
        self._groups = Groups(objects, self._index)
        self._queues = Queues()
        self._notes = Notes()
        self._verdicts: dict[Key, Refusal | None] = {}
        self._bound: list[str] = []
        self._reached = 0
        self._pods = PodReports(objects, recorder_for)
        self._reports = GroupReports(objects, recorder_for(KAI))

    def triggers(self) -> Mapping[Resource, Trigger]:
        return self._index.triggers()

    def reconcile(self, key: Key) -> float | None:
        """One pass. It looks at what changed, and at all that waits only when there is more room
        than before.
        """
        if not self._is_kept():
            self._look_again()
        try:
            self._pass()
            pauses = [
                pause for pause in (self._pods.repeat(), self._notes.flush()) if pause is not None
            ]
        except BaseException:
            self._look_again()
            raise
        self._reached = self._objects.store.rv
        return min(pauses, default=None)

    def _is_kept(self) -> bool:
        """The last pass was stored. It is one transaction of the loop, which may fail after the
        pass is over (a full disk).
        """
        tasks = self._index.tasks
        return self._objects.store.rv >= self._reached and all(
            tasks[uid].node for uid in self._bound if uid in tasks
        )

    def _look_again(self) -> None:
        """Treat everything as changed: what was taken note of was not acted on."""
        self._index.changed_pods |= dict.fromkeys([*self._index.tasks, *self._groups.uids()])
        self._index.rules_changed = self._index.room_grew = True
        self._verdicts.clear()

    def _pass(self) -> None:
        index = self._index
        self._bound.clear()
        changed = list(index.changed_pods)
        if index.rules_changed:
            self._queues.capacity = index.node.allocatable if index.node else {}
            self._queues.replace(index.queue_objects())
        concerned = self._groups.refresh()
        self._follow(changed, concerned)
        keys = self._groups.waiting() if index.room_grew else concerned
        verdicts = Pass(index, self._groups, self._queues, self._bind).run(keys)
        self._note(concerned, verdicts)
        if concerned or index.rules_changed:
            for name in index.queues:
                self._notes.put(("queue", name), partial(self._report_queue, name))
        index.rules_changed = index.room_grew = False

    def _follow(self, changed: Sequence[str], concerned: Mapping[Key, Group]) -> None:
        """Book every changed pod, and every pod of a changed gang, with its queue."""
        for uid in changed:
            task = self._index.tasks.get(uid)
            if self._groups.of(uid) is None:
                self._queues.book(uid, None)
            if task is None or task.node:
                self._pods.forget(uid)
            elif task.scheduler not in NAMES:
                self._pods.unknown_scheduler(task)
        for group in concerned.values():
            for task in self._groups.members(group):
                self._book(group, task, placed=bool(task.node))

    def _book(self, group: Group, task: Task, *, placed: bool) -> None:
        self._queues.book(task.uid, Booking(group.queue, self._charge(task), placed, group.firm))

    def _charge(self, task: Task) -> Amounts:
        return task.demand.charge(self._index.node.device_memory if self._index.node else None)

    def _bind(self, group: Group, tasks: Sequence[Task], assignment: Assignment) -> Refusal | None:
        """Put pods on the node, all or none, and book them; a refusal when one of them does not
        take it.
        """
        try:
            for task in tasks:
                self._assign(group, task, assignment[task.uid], Request(dry_run=True))
        except ApiError as refusal:
            if refusal.code >= INTERNAL:
                raise
            return Refusal(NO_ROOM, refusal.message, f"the pod cannot be bound: {refusal.message}")
        for task in tasks:
            pod = self._assign(group, task, assignment[task.uid], Request())
            pod = self._objects.modify(
                PODS, task.namespace, task.name, _tell_scheduled, subresource="status"
            )
            self._book(group, task, placed=True)
            self._pods.scheduled(pod)
            self._bound.append(task.uid)
        return None

    def _assign(self, group: Group, task: Task, devices: Sequence[int], request: Request) -> Object:
        def place(pod: Object) -> None:
            pod["spec"]["nodeName"] = self._node
            annotations = pod["metadata"].setdefault("annotations", {})
            annotations[POD_GROUP] = group.name
            if devices:
                annotations[options.GPU_DEVICES] = ",".join(map(str, devices))
            else:
                annotations.pop(options.GPU_DEVICES, None)

        return self._objects.modify(PODS, task.namespace, task.name, place, request=request)

    def _note(self, concerned: Mapping[Key, Group], verdicts: Mapping[Key, Refusal | None]) -> None:
        """Have told what is new: about gangs that changed or whose verdict did.

        A gang that was bound just now comes again, changed, as soon as that is stored.
        """
        for key, group in concerned.items():
            if key not in verdicts:
                self._verdicts.pop(key, None)
                self._notes.put(("gang", *key), partial(self._report, group))
        for key, refusal in verdicts.items():
            waiting = self._groups.get(key)
            if waiting is None or not waiting.members.keys().isdisjoint(self._bound):
                continue
            if key in concerned or self._verdicts.get(key) != refusal:
                self._verdicts[key] = refusal
                self._notes.put(("gang", *key), partial(self._report, waiting))

    def _report_queue(self, name: str) -> None:
        queue = self._index.queues.get(name)
        if queue is not None:
            self._reports.queue(queue, self._queues.status(name))

    def _report(self, group: Group) -> None:
        refusal, members = self._verdicts.get(group.key), self._groups.members(group)
        for task in members:
            if refusal is not None and task.waits:
                self._pods.waits(task, group, refusal)
        placed = [self._charge(task) for task in members if task.node]
        status = counts(placed, [self._charge(task) for task in members], firm=group.firm)
        self._reports.group(group, status, refusal, begun=bool(placed))


def _tell_scheduled(pod: Object) -> None:
    set_condition(pod.setdefault("status", {}).setdefault("conditions", []), scheduled_condition())
