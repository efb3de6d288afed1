"""The scheduler as a controller: follows changes, runs scheduling passes, writes their outcome."""

import operator
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVar

from localkube import clock, options
from localkube.errors import ApiError
from localkube.event_recorder import EventRecorder
from localkube.metadata import Object, set_condition
from localkube.objects import Objects, WriteRequest
from localkube.resources import PODS
from localkube.resources.resource import Resource
from localkube.scheduler.cluster_index import ClusterIndex, Key, Trigger
from localkube.scheduler.evicting import Evictor
from localkube.scheduler.group_reports import GroupReports, build_resources_status
from localkube.scheduler.groups import Group, Groups
from localkube.scheduler.pending_writes import PendingWrites
from localkube.scheduler.pod_reports import LARGE_GANG, PodReports, build_scheduled_condition
from localkube.scheduler.queues import build_queue_status, build_quota_details, parse_queue
from localkube.scheduler.task import (
    DEFAULT_SCHEDULER,
    KAI_SCHEDULER,
    POD_GROUP_ANNOTATION,
    SCHEDULER_NAMES,
    Task,
    sum_charges,
)
from scheduling.cluster_room import ClusterRoom, Place
from scheduling.deciding import run_pass, sum_capacity
from scheduling.decision import Nomination, Refusal
from scheduling.gangs import GangBook
from scheduling.queues import Booking, Queues
from scheduling.refusals import NO_ROOM
from scheduling.scheduling_pass import PassState, SchedulingPass
from scheduling.shapes import ShapeTable, find_device_memory
from scheduling.state import Preemptibility

SERVER_ERROR = 500
"""From this code on a refusal is not the object's fault: the whole pass is tried again later."""


SLICE_SECONDS = 0.010
"""Seconds after which a pass lets others go on."""

BOUND_AT_ONCE = 4
"""How many pods of a gang are bound in one step of a pass."""

UIDS_PER_STEP = 200
"""How many pods of a gang one report looks at until it finds one to write to."""

ROUND_SECONDS = 1.0
"""The least seconds between two rounds of reports on a large gang, each of which sums up its pods.
"""

LONGEST_PAUSE = 3600.0
"""Seconds after which the clock is looked at again, whatever a decision waits for."""

T = TypeVar("T")


PODS_PER_STEP = 100
"""Pods that one step of a pass counts on their nodes."""


@dataclass(frozen=True, slots=True)
class PlannedBinding:
    """The pods of a gang that found a place, and their places."""

    group: Group
    tasks: Sequence[tuple[Task, Place]]


@dataclass(slots=True)
class GangReport:
    """How far a gang's pods have been told why they wait."""

    group: Group
    is_requested: bool = False
    """Whether something has changed since this round began."""
    waiting_uids: Iterator[str] | None = None
    """The pods still to come in this round; None before it."""
    next_round: float = 0.0
    """When the next round over a large gang may begin, on the monotonic clock."""


class Scheduler:
    """Runs scheduling passes.

    `recorder_for` returns the recorder of a component; without it the scheduler makes its own.
    """

    name = "scheduler"

    def __init__(
        self,
        objects: Objects,
        recorder_for: Callable[[str], EventRecorder] | None = None,
    ) -> None:
        recorder_for = recorder_for or (
            lambda component: EventRecorder(
                objects, component, modern=component == DEFAULT_SCHEDULER
            )
        )
        self._objects = objects
        self._index = ClusterIndex()
        self._groups = Groups(objects, self._index)
        self._queues = Queues()
        self._pending_writes = PendingWrites()
        self._verdicts: dict[Key, Refusal | None] = {}
        self._quota_details: dict[Key, Object | None] = {}
        """The numbers of the queue that refused a gang, as they were then."""
        self._gang_reports: dict[Key, GangReport] = {}
        self._current_pass: Iterator[None] | None = None
        self._planned_bindings: list[PlannedBinding] = []
        self._placed_uids: set[str] = set()
        """Uids of the pods that the current pass has placed."""
        self._bound_uids: list[str] = []
        """Uids of the pods that the last reconciliation put on a node."""
        self._device_memory: int | None = None
        """The memory of a device by which shares in MiB are charged."""
        self._decide_again_at: float | None = None
        """When time alone may change what was decided, in seconds."""
        self._last_pass_version = 0
        self._pod_reports = PodReports(objects, recorder_for)
        self._group_reports = GroupReports(objects, recorder_for(KAI_SCHEDULER))
        self._evictor = Evictor(objects, self._index, self._groups, self._group_reports)

    def triggers(self) -> Mapping[Resource, Trigger]:
        return self._index.triggers()

    def reconcile(self, key: Key) -> float | None:
        """Do a slice of a pass over what changed, and over all that waits when there is more room
        than before.

        Changes that come during a pass wait for the next one.
        """
        if not self._is_last_pass_stored():
            self._mark_all_changed()
        self._bound_uids.clear()
        self._note_passed_time()
        try:
            pauses: list[float | None] = [self._run_slice()]
            if self._current_pass is None:
                pauses += [
                    self._wait_for_time(),
                    self._pod_reports.repeat_reports(),
                    self._pending_writes.run_writes(SLICE_SECONDS),
                ]
        except BaseException:
            self._mark_all_changed()
            raise
        self._last_pass_version = self._objects.store.rv
        return min((pause for pause in pauses if pause is not None), default=None)

    def _run_slice(self) -> float | None:
        """Go on with the current pass, or begin one; return 0 when it is not over."""
        if self._current_pass is None:
            if not self._index.has_changes:
                return None
            self._current_pass = self._run_pass()
        end = time.monotonic() + SLICE_SECONDS
        for _ in self._current_pass:
            if time.monotonic() >= end:
                return 0
        self._current_pass = None
        return 0 if self._index.has_changes else None

    def _note_passed_time(self) -> None:
        """Decide on all that waits again when the time has come that a decision waited for."""
        again_at = self._decide_again_at
        if again_at is not None and again_at <= clock.current_time().timestamp():
            self._decide_again_at = None
            self._index.room_grew = True

    def _wait_for_time(self) -> float | None:
        """Return the seconds until time alone may change what was decided, if it may."""
        if self._decide_again_at is None:
            return None
        pause = self._decide_again_at - clock.current_time().timestamp()
        return min(max(pause, 0.0), LONGEST_PAUSE)

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
        self._current_pass = None
        self._planned_bindings.clear()
        self._index.changed_pods |= dict.fromkeys([*self._index.tasks, *self._groups.pod_uids()])
        self._index.rules_changed = self._index.room_grew = True
        self._verdicts.clear()

    def _run_pass(self) -> Generator[None, None, None]:
        """Run a pass, in steps of some milliseconds at most."""
        index = self._index
        self._placed_uids.clear()
        changed = list(index.changed_pods)
        rules_changed, room_grew = index.rules_changed, index.room_grew
        index.rules_changed = index.room_grew = False
        nodes = [node.build_value() for node in index.nodes.values()]
        if rules_changed:
            self._device_memory = find_device_memory(nodes)
            self._queues.capacity = sum_capacity(nodes)
            self._queues.replace_queues(map(parse_queue, index.list_queues()))
        concerned = yield from self._groups.refresh(all_groups=rules_changed)
        yield from self._book_changes(changed, concerned)
        groups = self._groups.list_waiting() if room_grew else concerned.values()
        shapes = ShapeTable(self._device_memory)
        room = ClusterRoom(nodes, shapes)
        yield from self._count_placed(room)
        scheduling = SchedulingPass(
            PassState(
                clock.current_time().timestamp(),
                room,
                self._queues.fork(),
                shapes,
                self._bind_pods,
            )
        )
        by_key = {group.book.key: group for group in groups if group.members}
        running = [group.book for group in self._groups.list_placed()]
        yield from run_pass(scheduling, [group.book for group in by_key.values()], running)
        outcome = scheduling.finish()
        self._decide_again_at = outcome.decide_again_at
        verdicts = {by_key[key].key: refusal for key, refusal in outcome.refusals.items()}
        yield from self._bind_planned(verdicts)
        yield from self._write_nominations(by_key.values(), outcome.nominations)
        yield from self._evictor.evict_pods(outcome.evictions)
        self._queue_reports(concerned, verdicts)
        if concerned or rules_changed:
            for name in index.queues:
                self._pending_writes.add_write(("queue", name), partial(self._report_queue, name))

    def _write_nominations(
        self, groups: Iterable[Group], nominations: Sequence[Nomination]
    ) -> Generator[None, None, None]:
        """Write on pods where their places are kept, and where no longer."""
        tasks = self._index.tasks
        wanted = {nomination.pod: nomination.node for nomination in nominations}
        given_up = [
            uid
            for group in groups
            for uid in group.book.promised_nodes
            if uid not in wanted and uid not in self._placed_uids
        ]
        for uid, node in [*wanted.items(), *((uid, "") for uid in given_up)]:
            task = tasks.get(uid)
            if task is not None and task.pod.nominated_node != node:
                self._pod_reports.report_nomination(task, node)
            yield

    def _count_placed(self, room: ClusterRoom) -> Generator[None, None, None]:
        """Count the pods that have a node, in steps."""
        tasks = self._index.tasks
        for number, uid in enumerate(list(self._index.placed_uids)):
            if number % PODS_PER_STEP == 0:
                yield
            if uid in tasks:
                room.add_pod(tasks[uid].pod)

    def _book_changes(
        self, changed: Sequence[str], concerned: Mapping[Key, Group]
    ) -> Generator[None, None, None]:
        """Book every changed pod with its queue, and every pod of a gang that changed its own."""
        for uid in changed:
            task, group = self._index.tasks.get(uid), self._groups.find_by_pod(uid)
            if group is None:
                self._queues.book_pod(uid, None)
            elif task is not None:
                self._book_task(group, task)
            if task is None or task.node:
                self._pod_reports.forget_pod(uid)
            elif task.scheduler not in SCHEDULER_NAMES:
                self._pod_reports.report_unknown_scheduler(task)
            yield
        for group in concerned.values():
            book = group.book
            booked_as = (book.queue, book.preemptibility, book.min_member, self._device_memory)
            is_semi = book.preemptibility is Preemptibility.SEMI_PREEMPTIBLE
            if group.booked_as != booked_as or is_semi:
                group.booked_as = booked_as
                yield from self._book_group(group)

    def _book_group(self, group: Group) -> Generator[None, None, None]:
        core_uids = group.book.list_core_uids()
        for task in self._groups.list_tasks(group):
            self._book_task(group, task, is_core=task.uid in core_uids)
            yield

    def _book_task(self, group: Group, task: Task, *, is_core: bool = False) -> None:
        self._queues.book_pod(
            task.uid,
            Booking(
                group.book.queue,
                task.compute_charge(self._device_memory),
                placed=bool(task.node),
                non_preemptible=group.non_preemptible or is_core,
                leaving=bool(task.node) and task.terminating,
            ),
        )

    def _book_places(self, group: Group, places: Sequence[Place], *, is_core: bool) -> None:
        """Book pods as placed that are about to be bound."""
        for place in places:
            task = self._index.tasks.get(place.pod.uid)
            if task is not None:
                amounts = task.compute_charge(self._device_memory)
                self._queues.book_pod(task.uid, Booking(group.book.queue, amounts, True, is_core))

    def _bind_pods(self, gang: GangBook, places: Sequence[Place], is_core: bool) -> Refusal | None:
        """Put pods on their nodes, all or none, and book them.

        Returns a refusal when the API does not accept one of them. Many pods are only booked here:
        they are bound in steps, at the end of the pass.
        """
        tasks = self._index.tasks
        group = self._groups.find_by_pod(places[0].pod.uid)
        if group is None:
            return None
        binding = PlannedBinding(
            group, [(tasks[place.pod.uid], place) for place in places if place.pod.uid in tasks]
        )
        if len(places) > BOUND_AT_ONCE:
            self._planned_bindings.append(binding)
        else:
            refusal = exhaust(self._bind_in_steps(binding))
            if refusal is not None:
                return refusal
        self._book_places(group, places, is_core=is_core)
        self._placed_uids.update(place.pod.uid for place in places)
        return None

    def _bind_planned(self, verdicts: dict[Key, Refusal | None]) -> Generator[None, None, None]:
        """Bind the large gangs that found a place; their room was kept during the pass."""
        while self._planned_bindings:
            binding = self._planned_bindings[0]
            refusal = yield from self._bind_in_steps(binding)
            self._planned_bindings.pop(0)
            if refusal is not None:
                # The place is free again, and others were refused for it.
                verdicts[binding.group.key] = binding.group.binding_refusal = refusal
                binding.group.note_fixed_refusal()
                self._placed_uids.difference_update(task.uid for task, _ in binding.tasks)
                self._index.room_grew = True
                binding.group.book.sorted_waiting = None
                yield from self._book_group(binding.group)

    def _bind_in_steps(self, binding: PlannedBinding) -> Generator[None, None, Refusal | None]:
        # Dry-run all of them first: a refusal of the last pod must not leave the others bound.
        group = binding.group
        for task, place in binding.tasks:
            try:
                self._assign_node(group, task, place, WriteRequest(dry_run=True))
            except ApiError as refusal:
                if refusal.code >= SERVER_ERROR:
                    raise
                text = f"the pod cannot be bound: {refusal.message}"
                return Refusal(NO_ROOM, refusal.message, text)
            yield
        for task, place in binding.tasks:
            # It may have been deleted since: that is as if it were deleted right after.
            if self._is_there(task):
                self._bind_task(group, task, place)
            yield
        return None

    def _is_there(self, task: Task) -> bool:
        record = self._objects.store.find(PODS.key, task.namespace, task.name)
        return record is not None and record.uid == task.uid

    def _bind_task(self, group: Group, task: Task, place: Place) -> None:
        self._assign_node(group, task, place, WriteRequest())
        pod = self._objects.modify(
            PODS, task.namespace, task.name, _set_scheduled_condition, subresource="status"
        )
        self._pod_reports.report_scheduled(pod)
        self._bound_uids.append(task.uid)

    def _assign_node(self, group: Group, task: Task, place: Place, request: WriteRequest) -> Object:
        def assign(pod: Object) -> None:
            pod["spec"]["nodeName"] = place.node
            annotations = pod["metadata"].setdefault("annotations", {})
            annotations[POD_GROUP_ANNOTATION] = group.name
            if place.devices:
                annotations[options.GPU_DEVICES_ANNOTATION] = ",".join(map(str, place.devices))
            else:
                annotations.pop(options.GPU_DEVICES_ANNOTATION, None)

        return self._objects.modify(PODS, task.namespace, task.name, assign, request=request)

    def _queue_reports(
        self, concerned: Mapping[Key, Group], verdicts: Mapping[Key, Refusal | None]
    ) -> None:
        """Queue reports about gangs that changed or whose verdict did.

        A gang that was bound just now comes again, changed, as soon as that is stored.
        """
        for key, group in concerned.items():
            if key not in verdicts:
                self._verdicts.pop(key, None)
                self._quota_details.pop(key, None)
                self._queue_gang_report(group)
        for key, refusal in verdicts.items():
            waiting = self._groups.find(key)
            if waiting is None or not waiting.members.keys().isdisjoint(self._placed_uids):
                continue
            if key in concerned or self._verdicts.get(key) != refusal:
                if self._verdicts.get(key) != refusal:
                    self._quota_details[key] = (
                        None
                        if refusal is None
                        else build_quota_details(
                            self._queues, refusal, non_preemptible=waiting.non_preemptible
                        )
                    )
                self._verdicts[key] = refusal
                self._queue_gang_report(waiting)

    def _queue_gang_report(self, group: Group) -> None:
        report = self._gang_reports.get(group.key)
        if report is None or report.group is not group:
            report = self._gang_reports[group.key] = GangReport(group)
        report.is_requested = True
        if group.is_owner_lost:
            # The round that has begun tells no more pods: they are about to go.
            report.waiting_uids = None
        self._pending_writes.add_write(("gang", *group.key), partial(self._report_gang, report))

    def _report_queue(self, name: str) -> bool:
        queue = self._index.queues.get(name)
        if queue is not None:
            self._group_reports.report_queue(queue, build_queue_status(self._queues, name))
        return False

    def _report_gang(self, report: GangReport) -> bool:
        """Report on a gang as a whole, or on the next of its pods that does not say it yet.

        Returns whether there is more to report.
        """
        group = report.group
        if report.waiting_uids is None:
            now = time.monotonic()
            is_slow = len(group.members) > LARGE_GANG or group.is_owner_lost
            if is_slow and now < report.next_round:
                return True
            report.next_round = now + ROUND_SECONDS
            report.is_requested = False
            self._report_group(group)
            # One pod speaks for all that the garbage collector is about to remove.
            told = islice(group.book.waiting, 1) if group.is_owner_lost else group.book.waiting
            report.waiting_uids = iter(list(told))
            return True
        for uid in islice(report.waiting_uids, UIDS_PER_STEP):
            refusal = self._verdicts.get(group.key)
            if refusal is None:
                report.waiting_uids = iter(())
            elif self._report_pod(uid, group, refusal):
                return True
        if operator.length_hint(report.waiting_uids):
            return True
        report.waiting_uids = None
        # Kept while its pods go one by one: each of them would else begin a round.
        if not report.is_requested and not (group.is_owner_lost and group.members):
            self._gang_reports.pop(group.key, None)
        return report.is_requested

    def _report_pod(self, uid: str, group: Group, refusal: Refusal) -> bool:
        """Report why a pod waits, if it does; return whether something was written."""
        task = self._index.tasks.get(uid)
        if task is None or not task.is_waiting:
            return False
        return self._pod_reports.report_waiting(task, group, refusal)

    def _report_group(self, group: Group) -> None:
        members = self._groups.list_tasks(group)
        placed = [task for task in members if task.node]
        core_uids = group.book.list_core_uids()
        guaranteed = [task for task in placed if group.non_preemptible or task.uid in core_uids]
        status = build_resources_status(
            sum_charges(placed, self._device_memory),
            sum_charges(guaranteed, self._device_memory),
            sum_charges(members, self._device_memory),
        )
        self._group_reports.report_group(
            group,
            status,
            self._verdicts.get(group.key),
            self._quota_details.get(group.key),
            has_placed_pods=bool(placed),
        )


def exhaust(steps: Generator[None, None, T]) -> T:
    """Take all steps at once; return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def _set_scheduled_condition(pod: Object) -> None:
    status = pod.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    set_condition(status.setdefault("conditions", []), build_scheduled_condition())
