"""Whose turn it is: a heap of candidates for each queue, and the tree that chooses among them."""

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from scheduling.gangs import Candidate
from scheduling.queues import Queues, Shares, Turn
from scheduling.state import Amounts, Number, Queue

SumCharges = Callable[[Candidate], Amounts]


class Entry(NamedTuple):
    """A candidate in its queue."""

    order: tuple[int, int, float, int, str]
    candidate: Candidate
    charges: Amounts
    """What its queue would be charged for it."""


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
        """Drop those who are refused whatever comes, and decide nobody's turn.

        `kept_keys` are the keys of the gangs of all others.
        """
        for leaf, heap in self._heaps.items():
            if not heap:
                continue
            first = heap[0]
            entries = {entry.candidate.gang.key: entry for entry in sorted(heap)}
            heap[:] = list_deciding(entries.values(), kept_keys)
            heapq.heapify(heap)
            if not heap or heap[0] is not first:
                self.refresh(leaf)

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
        if not heap or heap[0].candidate.gang.created_at > refused.gang.created_at:
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
        return Entry(candidate.order, candidate, self._sum_charges(candidate))

    def _refresh_queue(self, queue: Queue) -> None:
        """Compute the key of a queue again, of whose children all have theirs."""
        name = queue.name
        siblings = self._keys.setdefault(queue.parent, {})
        first = self._find_first(name)
        if first is None:
            siblings.pop(name, None)
            self._firsts.pop(name, None)
            return
        _, candidate, charges = self._heaps[first][0]
        siblings[name] = self._find_turn(queue, charges), candidate.gang.created_at, name
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


def list_deciding(entries: Iterable[Entry], kept_keys: Collection[str]) -> Iterator[Entry]:
    """Yield those of a queue who decide whose turn it is, of all in their order.

    These are those whose gangs are kept, and of others who want more than anybody before them: a
    queue's turn comes by what its first candidate wants, and among equals by its age. Whoever wants
    less than one who was refused is refused right after it. Of those the youngest before each who
    is kept stays, and the youngest who wants as much; now and then an age that would have decided
    is lost all the same, where queues are equal in all else.
    """
    most: dict[str, Number] = {}
    youngest: Entry | None = None
    youngest_of_most: Entry | None = None
    for entry in entries:
        charges = entry.charges
        if entry.candidate.gang.key in kept_keys:
            if youngest_of_most is not None:
                yield youngest_of_most
            if youngest is not None and youngest is not youngest_of_most:
                yield youngest
            most, youngest, youngest_of_most = {}, None, None
        elif _is_covered(charges, most):
            if _is_younger(entry, youngest):
                youngest = entry
            if charges == most and _is_younger(entry, youngest_of_most):
                youngest_of_most = entry
            continue
        else:
            most |= {name: amount for name, amount in charges.items() if amount > most.get(name, 0)}
        yield entry


def _is_covered(charges: Amounts, most: Amounts) -> bool:
    """Return whether charges are no more than that."""
    for name, amount in charges.items():  # noqa: SIM110 - asked often
        if amount > most.get(name, 0):
            return False
    return True


def _is_younger(entry: Entry, other: Entry | None) -> bool:
    return other is None or entry.candidate.gang.created_at > other.candidate.gang.created_at
