"""The scheduler as a controller: follows changes, runs scheduling passes, writes their outcome."""

import operator
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from localkube import clock
from localkube.event_recorder import EventRecorder
from localkube.metadata import Object
from localkube.objects import Objects
from localkube.resources.resource import Resource
from localkube.scheduler.binding import Binder
from localkube.scheduler.cluster_index import ClusterIndex, Key, Trigger
from localkube.scheduler.evicting import Evictor
from localkube.scheduler.gang_times import add_end_time
from localkube.scheduler.group_reports import GroupReports, build_resources_status
from localkube.scheduler.groups import Group, Groups
from localkube.scheduler.pending_writes import PendingWrites
from localkube.scheduler.pod_reports import LARGE_GANG, PodReports
from localkube.scheduler.queues import build_queue_status, build_quota_details, parse_queue
from localkube.scheduler.task import (
    DEFAULT_SCHEDULER,
    KAI_SCHEDULER,
    SCHEDULER_NAMES,
    Task,
    sum_charges,
)
from scheduling.cluster_room import ClusterRoom, Place
from scheduling.deciding import run_pass, sum_capacity
from scheduling.decision import Refusal
from scheduling.gangs import GangBook
from scheduling.queues import Booking, Queues
from scheduling.scheduling_pass import PassState, SchedulingPass
from scheduling.shapes import ShapeTable, find_device_memory
from scheduling.state import Preemptibility

SLICE_SECONDS = 0.010
"""Seconds after which a pass lets others go on."""

UIDS_PER_STEP = 200
"""How many pods of a gang one report looks at until it finds one to write to."""

ROUND_SECONDS = 1.0
"""The least seconds between two rounds of reports on a large gang, each of which sums up its pods.
"""

LONGEST_PAUSE = 3600.0
"""Seconds after which the clock is looked at again, whatever a decision waits for."""

PODS_PER_STEP = 100
"""Pods that one step of a pass counts on their nodes."""


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
        self._device_memory: int | None = None
        """The memory of a device by which shares in MiB are charged."""
        self._decide_again_at: float | None = None
        """When time alone may change what was decided, in seconds."""
        self._last_pass_version = 0
        self._pod_reports = PodReports(objects, recorder_for)
        self._group_reports = GroupReports(objects, recorder_for(KAI_SCHEDULER))
        self._binder = Binder(objects, self._index, self._pod_reports)
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
        self._binder.begin_reconciliation()
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
        return (
            self._objects.store.rv >= self._last_pass_version and self._binder.are_bindings_stored()
        )

    def _mark_all_changed(self) -> None:
        """Treat everything as changed: changes were noted that no pass has acted on."""
        self._current_pass = None
        self._binder.discard_plans()
        self._index.changed_pods |= dict.fromkeys([*self._index.tasks, *self._groups.pod_uids()])
        self._index.rules_changed = self._index.room_grew = True
        self._verdicts.clear()

    def _run_pass(self) -> Generator[None, None, None]:
        """Run a pass, in steps of some milliseconds at most."""
        index = self._index
        self._binder.begin_pass()
        changed = list(index.changed_pods)
        rules_changed, room_grew = index.rules_changed, index.room_grew
        index.rules_changed = index.room_grew = False
        if rules_changed:
            nodes = index.build_node_values()
            self._device_memory = find_device_memory(nodes)
            self._queues.capacity = sum_capacity(nodes)
            self._queues.replace_queues(map(parse_queue, index.list_queues()))
        concerned = yield from self._groups.refresh(all_groups=rules_changed)
        yield from self._book_changes(changed, concerned)
        groups = self._list_considered(concerned, room_grew=room_grew)
        shapes = ShapeTable(self._device_memory)
        # Not before: a pod that came since this pass began may take a port that none took then.
        room = ClusterRoom(index.build_node_values(), shapes)
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
        self._note_next_decision(outcome.decide_again_at, has_considered_all=room_grew)
        verdicts = {
            by_key[key].key: add_end_time(refusal) for key, refusal in outcome.refusals.items()
        }
        yield from self._bind_planned(verdicts)
        is_place_free = yield from self._binder.write_nominations(
            by_key.values(), outcome.nominations
        )
        # All others who wait have to be asked, unless they were.
        is_place_free = is_place_free and not room_grew
        index.room_grew = index.room_grew or is_place_free or not outcome.is_final
        yield from self._evictor.evict_pods(outcome.evictions)
        self._queue_reports(concerned, verdicts)
        if concerned or rules_changed:
            for name in index.queues:
                self._pending_writes.add_write(("queue", name), partial(self._report_queue, name))

    def _list_considered(
        self, concerned: Mapping[Key, Group], *, room_grew: bool
    ) -> Sequence[Group]:
        """Return the gangs that a pass decides on: all that wait, or those that have changed.

        Those for whom places are kept are always among them: others would get these places.
        """
        if room_grew:
            return self._groups.list_waiting()
        promised = {group.key: group for group in self._groups.list_promised()}
        return list({**promised, **concerned}.values())

    def _note_next_decision(self, at: float | None, *, has_considered_all: bool) -> None:
        """Note when time alone may change what was decided.

        What a pass does not consider goes on waiting for the time that an earlier one noted.
        """
        before = self._decide_again_at
        if has_considered_all or before is None:
            self._decide_again_at = at
        elif at is not None:
            self._decide_again_at = min(at, before)

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
            booked_as = (
                book.queue,
                book.preemptibility,
                book.min_member,
                book.priority,
                self._device_memory,
            )
            is_semi = book.preemptibility is Preemptibility.SEMI_PREEMPTIBLE
            if book.placed and group.booked_as not in (None, booked_as):
                # Others may take now what they could not before.
                self._index.room_grew = True
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
        """Bind pods, all or none, and book them; return a refusal when they are not accepted."""
        group = self._groups.find_by_pod(places[0].pod.uid)
        if group is None:
            return None
        refusal = self._binder.bind_pods(group, places)
        if refusal is None:
            self._book_places(group, places, is_core=is_core)
        return refusal

    def _bind_planned(self, verdicts: dict[Key, Refusal | None]) -> Generator[None, None, None]:
        """Bind the large gangs that found a place; their room was kept during the pass."""
        for refused in (yield from self._binder.bind_planned()):
            # The place is free again, and others were refused for it.
            group = refused.group
            verdicts[group.key] = group.binding_refusal = refused.refusal
            group.note_fixed_refusal()
            self._index.room_grew = True
            group.book.sorted_waiting = None
            yield from self._book_group(group)

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
            if waiting is None or not waiting.members.keys().isdisjoint(self._binder.placed_uids):
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
            uids = islice(group.book.waiting, 1) if group.is_owner_lost else group.book.waiting
            report.waiting_uids = iter(list(uids))
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
