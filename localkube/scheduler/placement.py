"""One scheduling pass: which gang goes next, and whether it gets its place. What comes of it is
written elsewhere.

A queue's turn is by fair share (`Queues.turn`); in a queue the higher priority goes first, then a
gang that has already begun, then a whole gang before pods that only add to one, then the older. A
gang that finds no place is passed over, and smaller work behind it may start: as with KAI, a large
gang can wait for as long as smaller work keeps coming. Its remedy is a higher priority, or a queue
whose limit keeps the others small.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from localkube.scheduler.demand import Amounts, total
from localkube.scheduler.groups import Group, Groups
from localkube.scheduler.index import Index, Key
from localkube.scheduler.queues import Queues
from localkube.scheduler.refusal import NO_ROOM, NOT_READY, Refusal
from localkube.scheduler.room import Assignment, Fit, Room, refuses, repelled
from localkube.scheduler.task import Task

Bind = Callable[[Group, Sequence[Task], Assignment], Refusal | None]
"""Puts pods on the node, all or none, and books them with their queue; says why when it cannot."""

Alike = tuple[str, bool, tuple[bytes, ...]]
"""What is equal for pods that meet the same fate: queue, firmness, and their shapes."""

BEGUN, WHOLE, SURPLUS = range(3)

Order = tuple[int, int, str, int]
"""Whose turn it is within a queue: priority, stage, age, arrival."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A gang's next pods, as the sets to try: those it needs all together, or, beyond what it
    needs, each by itself.
    """

    group: Group
    tries: Sequence[Sequence[Task]]


Line = list[tuple[Order, Candidate]]
"""A heap of the candidates of one queue. No two gangs have the same order, so candidates are never
compared.
"""


class Pass:
    """A pass over some gangs. Room and usage only shrink during it, so what was refused once need
    not be asked again.
    """

    def __init__(self, index: Index, groups: Groups, queues: Queues, bind: Bind) -> None:
        self._index = index
        self._groups = groups
        self._queues = queues
        self._bind = bind
        self._room = self._free()
        self._refused: dict[Alike, Refusal] = {}
        self._bound: set[str] = set()
        self._verdicts: dict[Key, Refusal | None] = {}

    def run(self, keys: Iterable[Key]) -> Mapping[Key, Refusal | None]:
        """Place what can be placed; gives for each gang why some of its pods still wait, None where
        none does.
        """
        waiting: dict[str, Line] = {}
        for key in keys:
            group = self._groups.get(key)
            if group is not None and (entry := self._candidate(group)):
                waiting.setdefault(group.queue, []).append(entry)
        for name, line in list(waiting.items()):
            if refusal := self._queues.refuses(name, {}, firm=False):
                self._verdicts |= {candidate.group.key: refusal for _, candidate in line}
                del waiting[name]
            heapq.heapify(line)
        while next_line := self._next_line(waiting):
            _, candidate = heapq.heappop(next_line)
            if self._place(candidate) and (more := self._candidate(candidate.group)):
                heapq.heappush(next_line, more)
        return self._verdicts

    def _free(self) -> Room | None:
        index = self._index
        if index.node is None:
            return None
        room = Room(index.node)
        for uid in index.placed:
            task = index.tasks[uid]
            room.occupy(task, task.devices)
        return room

    def _candidate(self, group: Group) -> tuple[Order, Candidate] | None:
        """The next pods of a gang; None, with the verdict noted, when none of them can be tried."""
        members = self._groups.members(group)
        waiting = sorted(
            (task for task in members if task.waits and task.uid not in self._bound),
            key=lambda task: task.rank,
        )
        self._verdicts[group.key] = None
        if not waiting:
            return None
        faulty = next((task for task in members if task.fault and not task.node), None)
        if group.fault or faulty:
            text = f"pod {faulty.name}: {faulty.fault}" if faulty else group.fault
            self._verdicts[group.key] = Refusal(NO_ROOM, text, text)
            return None
        begun = sum(1 for task in members if task.node or task.uid in self._bound)
        missing = group.min_member - begun
        if missing > len(waiting):
            # Counted only here: it reads the gang's finished pods too.
            missing -= self._groups.succeeded(group)
        if missing > len(waiting):
            self._verdicts[group.key] = _not_ready(group, members)
            return None
        stage = SURPLUS if missing <= 0 else BEGUN if begun else WHOLE
        tries = [[task] for task in waiting] if stage == SURPLUS else [waiting[:missing]]
        return (-group.priority, stage, group.created, group.arrival), Candidate(group, tries)

    def _next_line(self, waiting: dict[str, Line]) -> Line | None:
        """The candidates of the queue whose turn it is. Those whose like was refused are answered
        on the way, without a turn.
        """
        turns = []
        for name, line in list(waiting.items()):
            while line and self._is_refused(line[0][1]):
                heapq.heappop(line)
            if not line:
                del waiting[name]
            elif len(waiting) == 1:
                return line
            else:
                turns.append((self._queues.turn(name, self._charge(line[0][1].tries[0])), name))
        return waiting[min(turns)[1]] if turns else None

    def _is_refused(self, candidate: Candidate) -> bool:
        refusals = [self._refused.get(_alike(candidate.group, tasks)) for tasks in candidate.tries]
        if None in refusals:
            return False
        self._verdicts[candidate.group.key] = refusals[0]
        return True

    def _place(self, candidate: Candidate) -> bool:
        """Bind the first set that finds a place; False, with the first refusal as the verdict, when
        none does.
        """
        refusals = []
        for tasks in candidate.tries:
            refusal = self._try(candidate.group, tasks)
            if refusal is None:
                return True
            refusals.append(refusal)
        self._verdicts[candidate.group.key] = refusals[0]
        return False

    def _try(self, group: Group, tasks: Sequence[Task]) -> Refusal | None:
        fit = self._fit(group, tasks)
        if isinstance(fit, Refusal):
            self._refused[_alike(group, tasks)] = fit
            return fit
        refusal = self._bind(group, tasks, fit.assignment)
        if refusal is None:
            self._room = fit.room
            self._bound.update(fit.assignment)
        return refusal

    def _fit(self, group: Group, tasks: Sequence[Task]) -> Fit | Refusal:
        """Whether queue, node and room allow it, asked in this order."""
        refusal = self._queues.refuses(group.queue, self._charge(tasks), firm=group.firm)
        if refusal is not None or self._room is None:
            return refusal or refuses(None, tasks, None)
        refusal = repelled(self._room.node, tasks)
        if refusal is not None:
            return refusal
        fit = self._room.fit(tasks)
        return fit if len(fit.assignment) == len(tasks) else refuses(self._room, tasks, fit)

    def _charge(self, tasks: Sequence[Task]) -> Amounts:
        device_memory = self._room.node.device_memory if self._room else None
        return total(task.demand.charge(device_memory) for task in tasks)


def _alike(group: Group, tasks: Sequence[Task]) -> Alike:
    return group.queue, group.firm, tuple(task.shape for task in tasks)


def _not_ready(group: Group, members: Sequence[Task]) -> Refusal:
    """KAI's sentence for a gang whose pods are not all there yet."""
    gated = sum(1 for task in members if task.gated)
    counts = (
        f"Waiting for {group.min_member} pods, currently {len(members)} exist, {gated} are gated"
    )
    return Refusal(NOT_READY, NOT_READY, f"Job is not ready for scheduling. {counts}")
