"""Whose turn it is: a heap of candidates for each queue, and the tree that chooses among them."""

import heapq
from collections.abc import Callable, Iterable

from scheduling.gangs import Candidate
from scheduling.queues import Queues, Shares, Turn
from scheduling.state import Amounts

SumCharges = Callable[[Candidate], Amounts]


class QueueTurns:
    """Chooses the next candidate: level by level the queue whose turn it is, then its first gang.

    A queue's key is computed again only when its first candidate or its usage has changed.
    """

    def __init__(self, queues: Queues, fair_shares: Shares, sum_charges: SumCharges) -> None:
        self._queues = queues
        self._fair_shares = fair_shares
        self._sum_charges = sum_charges
        self._heaps: dict[str, list[tuple[object, Candidate]]] = {}
        self._keys: dict[str, dict[str, tuple[Turn, float, str]]] = {}
        """By parent and child, for the queues below which somebody waits. Of queues whose turn it
        is equally the one whose next work is older goes first.
        """
        self._firsts: dict[str, str] = {}
        """The leaf whose turn it is below each queue."""

    def fill(self, candidates: Iterable[Candidate]) -> None:
        """Take over all candidates, whose queues can all be used."""
        for candidate in candidates:
            heap = self._heaps.setdefault(candidate.gang.queue, [])
            heap.append((candidate.order, candidate))
        for name, heap in self._heaps.items():
            heapq.heapify(heap)
            self.refresh(name)

    def push(self, candidate: Candidate) -> None:
        heap = self._heaps.setdefault(candidate.gang.queue, [])
        heapq.heappush(heap, (candidate.order, candidate))

    def pop(self) -> Candidate | None:
        """Return the next candidate; `refresh` of its queue must follow. None without any."""
        leaf = self._firsts.get("")
        if leaf is None:
            return None
        _, candidate = heapq.heappop(self._heaps[leaf])
        return candidate

    def pop_behind(self, refused: Candidate) -> Candidate | None:
        """Return who is behind a refused candidate, where its turn comes at once.

        That is so where it wants no more than that one. Else None, and `refresh` must follow.
        """
        heap = self._heaps[refused.gang.queue]
        if not heap:
            return None
        most, wanted = self._sum_charges(refused), self._sum_charges(heap[0][1])
        if all(amount <= most.get(name, 0) for name, amount in wanted.items()):
            return heapq.heappop(heap)[1]
        return None

    def refresh(self, leaf: str) -> None:
        """Compute the keys of a leaf queue and all above it again."""
        heap = self._heaps.get(leaf)
        first: str | None = leaf if heap else None
        known: str | None = None
        wanted: Amounts = {}
        for queue in self._queues.get_chain(leaf):
            siblings = self._keys.setdefault(queue.parent, {})
            if first is None:
                siblings.pop(queue.name, None)
                self._firsts.pop(queue.name, None)
            else:
                candidate = self._heaps[first][0][1]
                if first != known:
                    known, wanted = first, self._sum_charges(candidate)
                share = self._fair_shares.get(queue.name, {})
                turn = self._queues.compute_turn(queue, wanted, share)
                siblings[queue.name] = turn, candidate.gang.created_at, queue.name
                self._firsts[queue.name] = first
            chosen = min(siblings, key=siblings.__getitem__, default=None)
            first = None if chosen is None else self._firsts[chosen]
        if first is None:
            self._firsts.pop("", None)
        else:
            self._firsts[""] = first
