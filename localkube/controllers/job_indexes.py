"""The completion indexes of an Indexed Job, kept in line with its pods as these change.

So the next free index is found without a look at every pod that the Job has.
"""

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import islice

from localkube.controllers.job_pods import index_of
from localkube.store import Change, Record

Place = tuple[Counter[int], int]
"""Where a pod is counted, and its index."""


class PodIndexes:
    """Which indexes have a pod that may still succeed, by the committed state of the pods."""

    def __init__(self, pods: Iterable[Record]) -> None:
        self._active: Counter[int] = Counter()
        self._ending: Counter[int] = Counter()
        """How many unfinished pods that are being deleted each index has."""
        self._places: dict[str, Place] = {}
        """By the name of an unfinished pod."""
        self._next_index = 0
        """Below this index none is free but those in `_freed`."""
        self._freed: list[int] = []
        """A heap of the indexes that have lost a pod, each once; another may have come since."""
        self._queued: set[int] = set()
        """What is in `_freed`."""
        for pod in pods:
            self._set_place(pod.name, self._find_place(pod))

    def follow_change(self, change: Change) -> None:
        """Count a pod as it is now; the same change may come twice."""
        pod = change.record
        self._set_place(pod.name, None if change.type == "DELETED" else self._find_place(pod))

    def forget_pod(self, name: str) -> None:
        """Count a pod no longer that has another owner now."""
        self._set_place(name, None)

    def _find_place(self, pod: Record) -> Place | None:
        index = index_of(pod)
        if pod.tally is None or pod.tally.is_finished or index < 0:
            return None
        return (self._active if pod.tally.is_active else self._ending), index

    def _set_place(self, name: str, new: Place | None) -> None:
        old = self._places.pop(name, None)
        if new is not None:
            counter, index = self._places[name] = new
            counter[index] += 1
        if old is None:
            return
        counter, index = old
        counter[index] -= 1
        if counter[index]:
            return
        del counter[index]
        if index < self._next_index and index not in self._queued:
            self._queued.add(index)
            heapq.heappush(self._freed, index)

    def find_free(
        self, count: int, limit: int, completed: Collection[int], *, replaces_ending: bool
    ) -> Sequence[int]:
        """Return the lowest indexes below `limit`, at most `count`, that need a pod.

        An index whose pod is being deleted needs one only with `replaces_ending`.
        """

        def is_taken(index: int) -> bool:
            return (
                index in self._active
                or index in completed
                or (not replaces_ending and index in self._ending)
            )

        # Of indexes that an edited spec leaves out nothing is remembered: they may come back.
        self._next_index = min(self._next_index, limit)
        free: list[int] = []
        while self._freed and len(free) < count:
            index = heapq.heappop(self._freed)
            if index < self._next_index and not is_taken(index):
                free.append(index)
            else:
                self._queued.discard(index)
        # They stay until a pod of theirs is seen: what is made of them may be taken back.
        for index in free:
            heapq.heappush(self._freed, index)
        while self._next_index < limit and is_taken(self._next_index):
            self._next_index += 1
        others = (index for index in range(self._next_index, limit) if not is_taken(index))
        return [*free, *islice(others, count - len(free))]

    def search_again(self) -> None:
        """Begin anew at the first index."""
        self._next_index = 0
        self._freed.clear()
        self._queued.clear()
