"""The pods of a gang that wait for a place, in the order in which they get one."""

import heapq
from collections import deque
from collections.abc import Container, Iterable, Sequence
from itertools import islice

from localkube.scheduler.task import Task


class WaitingTasks:
    """The pods of a gang that wait, sorted once; those that were bound are taken out."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._by_shape: dict[bytes, deque[Task]] = {}
        for task in sorted(tasks, key=lambda task: task.rank):
            self._by_shape.setdefault(task.shape, deque()).append(task)

    def __len__(self) -> int:
        return sum(map(len, self._by_shape.values()))

    def take_out(self, uids: Container[str]) -> None:
        """Take out pods that are the first of their shapes."""
        for shape, tasks in list(self._by_shape.items()):
            while tasks and tasks[0].uid in uids:
                tasks.popleft()
            if not tasks:
                del self._by_shape[shape]

    def list_first(self, count: int) -> Sequence[Task]:
        """Return the first pods by rank."""
        if len(self._by_shape) == 1:
            return list(islice(next(iter(self._by_shape.values())), count))
        in_order = heapq.merge(*self._by_shape.values(), key=lambda task: task.rank)
        return list(islice(in_order, count))

    def list_heads(self) -> Sequence[Task]:
        """Return the first pod of each shape, by rank: the others of a shape get its answer."""
        heads = (tasks[0] for tasks in self._by_shape.values())
        return sorted(heads, key=lambda task: task.rank)
