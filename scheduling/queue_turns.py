"""Whose turn it is: a heap of candidates for each queue, and the tree that chooses among them."""

import heapq
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from scheduling.amounts import max_amounts
from scheduling.gangs import Candidate
from scheduling.queues import Queues, Shares, Turn
from scheduling.state import Amounts, Queue

SumCharges = Callable[[Candidate], Amounts]


class Entry(NamedTuple):
    """A candidate in its queue."""

    order: tuple[int, int, float, int, str]
    candidate: Candidate
    charges: Amounts
    """What its queue would be charged for it, or for more, where refused ones ahead of it are left
    out: the turn of its queue comes by that."""
    created_at: float
    """How old it is, or who of these is youngest: of queues whose turn it is equally the older goes
    first."""


def build_entry(candidate: Candidate, charges: Amounts) -> Entry:
    """Return a candidate with what its queue would be charged for it."""
    return Entry(candidate.order, candidate, charges, candidate.gang.created_at)


class QueueTurns:
    """Chooses the next candidate: level by level the queue whose turn it is, then its first gang.

    A queue's key is computed again only when its first candidate or its usage has changed.
    """

    def __init__(self, queues: Queues, fair_shares: Shares, sum_charges: SumCharges) -> None:
        self._queues = queues
        self._fair_shares = fair_shares
        self._sum_charges = sum_charges
        self._heaps: dict[str, list[Entry]] = {}
        self._keys: dict[str, dict[str, tuple[Turn, float, str]]] = {}
        """By parent and child, for the queues below which somebody waits. Of queues whose turn it
        is equally the one whose next work is older goes first.
        """
        self._firsts: dict[str, str] = {}
        """The leaf whose turn it is below each queue."""

    def fill(self, candidates: Iterable[Candidate]) -> None:
        """Take over all candidates, whose queues can all be used."""
        entries: dict[str, list[Entry]] = {}
        for candidate in candidates:
            entries.setdefault(candidate.gang.queue, []).append(self._build_entry(candidate))
        self.fill_queues(entries.items())

    def fill_queues(self, queues: Iterable[tuple[str, Sequence[Entry]]]) -> None:
        """Take over all entries, by the queue, each of which can be used."""
        for name, entries in queues:
            heap = self._heaps[name] = list(entries)
            heapq.heapify(heap)
        self._refresh_all()

    def drop_refused(self, kept_keys: Collection[str]) -> None:
        """Drop those who are refused whatever comes.

        `kept_keys` are the keys of the gangs of all others, whose turns come as they would.
        """
        for heap in self._heaps.values():
            entries = {entry.candidate.gang.key: entry for entry in sorted(heap)}
            # In order, they are a heap.
            heap[:] = merge_refused((entry, key in kept_keys) for key, entry in entries.items())
        self._refresh_all()

    def push(self, candidate: Candidate) -> None:
        heap = self._heaps.setdefault(candidate.gang.queue, [])
        heapq.heappush(heap, self._build_entry(candidate))

    def pop(self) -> Candidate | None:
        """Return the next candidate; `refresh` of its queue must follow. None without any."""
        leaf = self._firsts.get("")
        if leaf is None:
            return None
        return heapq.heappop(self._heaps[leaf]).candidate

    def pop_behind(self, refused: Candidate) -> Candidate | None:
        """Return who is behind a refused candidate, where its turn comes at once.

        That is so where it wants no more than that one, and is no younger: of queues whose turn it
        is equally the older goes first. Else None, and `refresh` must follow.
        """
        heap = self._heaps[refused.gang.queue]
        if not heap or heap[0].created_at > refused.gang.created_at:
            return None
        most = self._sum_charges(refused)
        if _is_covered(heap[0].charges, most):
            return heapq.heappop(heap).candidate
        return None

    def refresh(self, leaf: str) -> None:
        """Compute the keys of a leaf queue and all above it again."""
        for queue in self._queues.get_chain(leaf):
            self._refresh_queue(queue)
        self._refresh_root()

    def _refresh_all(self) -> None:
        """Compute all keys, those of the leaves first."""
        depths: dict[str, tuple[int, Queue]] = {}
        for name in self._heaps:
            for depth, queue in enumerate(reversed(self._queues.get_chain(name))):
                depths[queue.name] = depth, queue
        for _, queue in sorted(depths.values(), key=lambda each: each[0], reverse=True):
            self._refresh_queue(queue)
        self._refresh_root()

    def _build_entry(self, candidate: Candidate) -> Entry:
        return build_entry(candidate, self._sum_charges(candidate))

    def _refresh_queue(self, queue: Queue) -> None:
        """Compute the key of a queue again, of whose children all have theirs."""
        name = queue.name
        siblings = self._keys.setdefault(queue.parent, {})
        first = self._find_first(name)
        if first is None:
            siblings.pop(name, None)
            self._firsts.pop(name, None)
            return
        _, _, charges, created_at = self._heaps[first][0]
        siblings[name] = self._find_turn(queue, charges), created_at, name
        self._firsts[name] = first

    def _find_turn(self, queue: Queue, charges: Amounts) -> Turn:
        """Return the turn of a queue, as it was computed last if nothing has changed since."""
        turns, fair_share = self._queues.turns, self._fair_shares.get(queue.name, {})
        grounds = self._queues.usage(queue.name).changes, charges, fair_share
        cache_entry = turns.get(queue.name)
        if cache_entry is None or cache_entry[0] != grounds:
            turn = self._queues.compute_turn(queue, charges, fair_share)
            cache_entry = turns[queue.name] = grounds, turn
        return cache_entry[1]

    def _refresh_root(self) -> None:
        first = self._find_first("")
        if first is None:
            self._firsts.pop("", None)
        else:
            self._firsts[""] = first

    def _find_first(self, name: str) -> str | None:
        """Return the leaf whose turn it is in or below a queue, None where nobody waits."""
        heap = self._heaps.get(name)
        if heap is not None:
            return name if heap else None
        keys = self._keys.get(name)
        return self._firsts[min(keys.values())[-1]] if keys else None


def merge_refused(entries: Iterable[tuple[Entry, bool]]) -> Iterator[Entry]:
    """Yield those of a queue that are kept, of all in their order, with what others want.

    Each comes with whether it is kept; the others are refused. A queue's turn comes by what its
    first candidate wants, and among equals by its age, so nobody's comes before those ahead have
    had theirs. Who is kept gets the turn of who wants most of these, and where one wants more of
    this and another more of that, of who would want both. The turn that those behind the last who
    is kept would give to the queues above is lost.
    """
    most: Amounts = {}
    youngest = -math.inf
    for entry, is_kept in entries:
        order, candidate, charges, created_at = entry
        if not most or not _is_covered(charges, most):
            most = max_amounts(most, charges) if most else charges
            youngest = created_at
        elif created_at > youngest and charges == most:
            youngest = created_at
        if is_kept:
            is_alone = charges is most and created_at == youngest
            yield entry if is_alone else Entry(order, candidate, most, youngest)
            most, youngest = {}, -math.inf


def _is_covered(charges: Amounts, most: Amounts) -> bool:
    """Return whether charges are no more than that."""
    for name, amount in charges.items():  # noqa: SIM110 - asked often
        if amount > most.get(name, 0):
            return False
    return True
