"""One scheduling pass: which gang goes next, and whether it finds a place.

The scheduler writes the outcome. A queue's turn is by fair share (`Queues.compute_turn`); in a
queue the higher priority goes first, then a gang that has already begun, then a whole gang before
pods that only add to one, then the older. A gang that finds no place is passed over, and smaller
work behind it may start: as with KAI, a large gang can wait for as long as smaller work keeps
coming. Its remedy is a higher priority, or a queue whose limit keeps the others small.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass

from localkube.scheduler.cluster_index import ClusterIndex, Key
from localkube.scheduler.demand import Amounts
from localkube.scheduler.groups import Group, Groups
from localkube.scheduler.node_room import (
    Assignment,
    Fit,
    NodeRoom,
    build_shortage_refusal,
    find_mismatch_refusal,
)
from localkube.scheduler.queues import Queues
from localkube.scheduler.refusal import NO_ROOM, NOT_READY, Refusal
from localkube.scheduler.task import Task, sum_charges
from localkube.scheduler.waiting_tasks import WaitingTasks

BindTasks = Callable[[Group, Sequence[Task], Assignment], Refusal | None]
"""Puts pods on the node, all or none, and books them with their queue.

Returns a refusal when it cannot.
"""

PlacementKey = tuple[str, bool, frozenset[tuple[bytes, int]]]
"""What is equal for pods that get the same answer: queue, preemptibility, and how many there are of
each shape.
"""

BEGUN_GANG, WHOLE_GANG, SURPLUS_PODS = range(3)

CandidateOrder = tuple[int, int, str, int]
"""The order within a queue: priority, stage, age, arrival."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A gang's next pods, as the sets to try.

    One set of those it needs all together, or, beyond what it needs, one set for each pod.
    """

    group: Group
    task_sets: Sequence[Sequence[Task]]


CandidateHeap = list[tuple[CandidateOrder, Candidate]]
"""A heap of the candidates of one queue.

No two gangs have the same order, so candidates are never compared.
"""


class SchedulingPass:
    """A pass over some gangs.

    Room and usage only shrink during it, so what was refused once need not be tried again.
    """

    def __init__(
        self, index: ClusterIndex, groups: Groups, queues: Queues, bind_tasks: BindTasks
    ) -> None:
        self._index = index
        self._groups = groups
        self._queues = queues
        self._bind_tasks = bind_tasks
        self._room = self._measure_room()
        self._known_refusals: dict[PlacementKey, Refusal] = {}
        self._bound_uids: set[str] = set()
        self._bound_counts: Counter[Key] = Counter()
        self._verdicts: dict[Key, Refusal | None] = {}

    def place_groups(self, keys: Iterable[Key]) -> Generator[None, None, dict[Key, Refusal | None]]:
        """Place what can be placed, in steps; return for each gang why pods still wait, or None."""
        waiting: dict[str, CandidateHeap] = {}
        for key in keys:
            yield
            group = self._groups.find(key)
            if group is not None and (entry := self._next_candidate(group)):
                waiting.setdefault(group.queue, []).append(entry)
        for name, heap in list(waiting.items()):
            if refusal := self._queues.find_refusal(name, {}, non_preemptible=False):
                self._verdicts |= {candidate.group.key: refusal for _, candidate in heap}
                del waiting[name]
            heapq.heapify(heap)
        while heap_in_turn := self._choose_queue(waiting):
            yield
            _, candidate = heapq.heappop(heap_in_turn)
            if self._place_candidate(candidate) and (
                entry_after := self._next_candidate(candidate.group)
            ):
                heapq.heappush(heap_in_turn, entry_after)
        return self._verdicts

    def _measure_room(self) -> NodeRoom | None:
        index = self._index
        if index.node is None:
            return None
        room = NodeRoom(index.node)
        for uid in index.placed_uids:
            task = index.tasks[uid]
            room.occupy(task, task.devices)
        return room

    def _next_candidate(self, group: Group) -> tuple[CandidateOrder, Candidate] | None:
        """Return the next pods of a gang; None, with the verdict noted, when none can be tried."""
        bound_count = self._bound_counts[group.key]
        waiting_count = len(group.waiting) - bound_count
        self._verdicts[group.key] = None
        if waiting_count <= 0:
            return None
        faulty_task = self._find_faulty_task(group)
        if group.fault or faulty_task:
            text = f"pod {faulty_task.name}: {faulty_task.fault}" if faulty_task else group.fault
            self._verdicts[group.key] = Refusal(NO_ROOM, text, text)
            return None
        if group.binding_refusal is not None:
            # Bound again, it would be refused again, and free the same room again, for ever.
            self._verdicts[group.key] = group.binding_refusal
            return None
        placed_count = group.placed_count + bound_count
        missing = group.min_member - placed_count
        if missing > waiting_count:
            missing -= self._groups.count_succeeded(group)
        if missing > waiting_count:
            self._verdicts[group.key] = _build_not_ready_refusal(group)
            return None
        if missing <= 0:
            stage = SURPLUS_PODS
        elif placed_count:
            stage = BEGUN_GANG
        else:
            stage = WHOLE_GANG
        waiting = self._get_waiting_tasks(group)
        if not waiting:
            return None
        task_sets = (
            [[task] for task in waiting.list_heads()]
            if stage == SURPLUS_PODS
            else [waiting.list_first(missing)]
        )
        return (-group.priority, stage, group.created, group.arrival), Candidate(group, task_sets)

    def _find_faulty_task(self, group: Group) -> Task | None:
        return next((group.members[uid] for uid in group.faulty), None)

    def _get_waiting_tasks(self, group: Group) -> WaitingTasks:
        if group.sorted_waiting is None:
            group.sorted_waiting = WaitingTasks(self._groups.list_waiting_tasks(group))
        group.sorted_waiting.take_out(self._bound_uids)
        return group.sorted_waiting

    def _choose_queue(self, waiting: dict[str, CandidateHeap]) -> CandidateHeap | None:
        """Return the candidates of the queue whose turn it is.

        Candidates equal to refused ones are answered on the way, without a turn.
        """
        turns = []
        for name, heap in list(waiting.items()):
            while heap and self._is_known_refusal(heap[0][1]):
                heapq.heappop(heap)
            if not heap:
                del waiting[name]
            elif len(waiting) == 1:
                return heap
            else:
                turns.append(
                    (
                        self._queues.compute_turn(name, self._sum_charges(heap[0][1].task_sets[0])),
                        name,
                    )
                )
        return waiting[min(turns)[1]] if turns else None

    def _is_known_refusal(self, candidate: Candidate) -> bool:
        refusals = [
            self._known_refusals.get(_placement_key(candidate.group, tasks))
            for tasks in candidate.task_sets
        ]
        if None in refusals:
            return False
        self._verdicts[candidate.group.key] = refusals[0]
        return True

    def _place_candidate(self, candidate: Candidate) -> bool:
        """Bind the first set that finds a place; return whether one did.

        If none did, the first refusal is the verdict.
        """
        refusals = []
        for tasks in candidate.task_sets:
            refusal = self._try_tasks(candidate.group, tasks)
            if refusal is None:
                return True
            refusals.append(refusal)
        self._verdicts[candidate.group.key] = refusals[0]
        return False

    def _try_tasks(self, group: Group, tasks: Sequence[Task]) -> Refusal | None:
        fit = self._find_fit(group, tasks)
        if isinstance(fit, Refusal):
            self._known_refusals[_placement_key(group, tasks)] = fit
            return fit
        refusal = self._bind_tasks(group, tasks, fit.assignment)
        if refusal is None:
            self._room = fit.room
            self._bound_uids.update(fit.assignment)
            self._bound_counts[group.key] += len(fit.assignment)
        return refusal

    def _find_fit(self, group: Group, tasks: Sequence[Task]) -> Fit | Refusal:
        """Check queue, node and room in this order; return the fit or the first refusal."""
        refusal = self._queues.find_refusal(
            group.queue, self._sum_charges(tasks), non_preemptible=group.non_preemptible
        )
        if refusal is not None or self._room is None:
            return refusal or build_shortage_refusal(None, tasks, None)
        refusal = find_mismatch_refusal(self._room.node, tasks)
        if refusal is not None:
            return refusal
        fit = self._room.fit_tasks(tasks)
        return (
            fit
            if len(fit.assignment) == len(tasks)
            else build_shortage_refusal(self._room, tasks, fit)
        )

    def _sum_charges(self, tasks: Sequence[Task]) -> Amounts:
        device_memory = self._room.node.device_memory if self._room else None
        return sum_charges(tasks, device_memory)


def _placement_key(group: Group, tasks: Sequence[Task]) -> PlacementKey:
    shapes = frozenset(Counter(task.shape for task in tasks).items())
    return group.queue, group.non_preemptible, shapes


def _build_not_ready_refusal(group: Group) -> Refusal:
    """Build KAI's message for a gang whose pods do not all exist yet."""
    counts = (
        f"Waiting for {group.min_member} pods, currently {len(group.members)} exist, "
        f"{group.gated_count} are gated"
    )
    return Refusal(NOT_READY, NOT_READY, f"Job is not ready for scheduling. {counts}")
