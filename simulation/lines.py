"""Lines of equal gangs: of those that want the same, only the first has to be tried.

In one pass room only shrinks, so when the first of a line is refused all behind it are: this is
what `SchedulingPass` concludes as well, one gang after the other.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from scheduling.gangs import Candidate, GangBook
from scheduling.queue_turns import Entry, build_entry
from scheduling.shapes import ShapeCounts, ShapeTable, count_shapes
from scheduling.state import PodShape, Preemptibility

LineKey = tuple[
    str, int, Preemptibility, int, int, float, bool, frozenset[tuple[PodShape, int]], float | None
]
DemandKey = frozenset[tuple[PodShape, int]]
LineEntry = tuple[tuple[int, float, int, str], GangBook]
FindCandidate = Callable[[GangBook], Candidate | None]


class Demands:
    """What the sets of pods of a gang want, one of which has to find room.

    All that want the same share one object: it is compared by identity.
    """

    __slots__ = ("sets",)

    def __init__(self, sets: Sequence[ShapeCounts]) -> None:
        self.sets = sets


UNKNOWN_DEMANDS = Demands(())


class Line:
    """Gangs that want the same in the same queue, in the order of the queue."""

    __slots__ = ("demands", "entries", "entry", "key")

    def __init__(self, key: LineKey) -> None:
        self.key = key
        self.entries: list[LineEntry] = []
        self.demands = UNKNOWN_DEMANDS
        self.entry: Entry | None = None
        """The next pods of the head, as they were found last."""

    @property
    def queue(self) -> str:
        return self.key[0]


Head = tuple[Entry, Line]
"""The next pods of the first gang of a line."""


class QueueLines:
    """The lines of one queue."""

    __slots__ = ("demand_counts", "heads", "lines")

    def __init__(self) -> None:
        self.lines: dict[LineKey, Line] = {}
        self.heads: Sequence[Head] | None = None
        """The heads that can be tried, in order; None when they have to be found anew."""
        self.demand_counts: Mapping[Demands, int] | None = None
        """How many of the heads want the same."""

    def forget_heads(self) -> None:
        """Note that a line has changed."""
        self.heads = self.demand_counts = None


class Lines:
    """The gangs with pods that wait, in lines of equals, by queue."""

    def __init__(self) -> None:
        self._queues: dict[str, QueueLines] = {}
        self._gang_lines: dict[str, Line] = {}
        """The line of each gang, by the gang's key."""
        self._demands: dict[frozenset[DemandKey], Demands] = {}
        """One object for all lines whose heads want the same."""

    def add_gang(self, book: GangBook, key: LineKey | None = None) -> None:
        """Put a gang into its line, or into another one when it wants something else now.

        `key` is that of its line where it is known.
        """
        queue = self._queues.setdefault(book.queue, QueueLines())
        queue.forget_heads()
        key = key or build_line_key(book)
        line = queue.lines.get(key)
        if line is None:
            line = queue.lines[key] = Line(key)
        elif self._gang_lines.get(book.key) is line:
            return
        self._gang_lines[book.key] = line
        heapq.heappush(line.entries, (book.order, book))

    def remove_gang(self, book: GangBook) -> None:
        """Take a gang out; its entry is dropped when it comes to the head."""
        if self._gang_lines.pop(book.key, None) is not None:
            self._queues[book.queue].forget_heads()

    def list_queues(
        self, find: FindCandidate, shapes: ShapeTable
    ) -> Iterator[tuple[str, Sequence[Head]]]:
        """Yield the queues with the heads that can be tried, in their order."""
        for name, queue in self._queues.items():
            if queue.heads is None:
                queue.heads = sorted(
                    self._find_heads(queue, find, shapes), key=lambda head: head[0].order
                )
            if queue.heads:
                yield name, queue.heads

    def count_demands(self, name: str) -> Mapping[Demands, int]:
        """Return how many heads of a queue want the same."""
        queue = self._queues[name]
        if queue.demand_counts is None:
            queue.demand_counts = Counter(line.demands for _, line in queue.heads or ())
        return queue.demand_counts

    def list_demands(self) -> Iterable[Demands]:
        """Return everything that heads want or have wanted."""
        return self._demands.values()

    def find_head_demands(self, gang: GangBook) -> Demands | None:
        """Return what a gang wants, None where it is not the head of its line."""
        line = self._gang_lines.get(gang.key)
        if line is None or line.entry is None or line.entry.candidate.gang is not gang:
            return None
        return line.demands

    def _find_heads(
        self, queue: QueueLines, find: FindCandidate, shapes: ShapeTable
    ) -> Iterator[Head]:
        for line in list(queue.lines.values()):
            head = self.find_head(line)
            entry = head and self.find_entry(line, head, find, shapes)
            if entry:
                yield entry, line

    def find_entry(
        self, line: Line, head: GangBook, find: FindCandidate, shapes: ShapeTable
    ) -> Entry | None:
        """Return the next pods of the head, as they were found before if it is still the head."""
        entry = line.entry
        if entry is None or entry.candidate.gang is not head or head.sorted_waiting is None:
            entry = line.entry = None
            candidate = find(head)
            if candidate is not None:
                line.demands = self.find_demands(candidate)
                charges = shapes.sum_charges(candidate.pod_sets[0].counts)
                entry = line.entry = build_entry(candidate, charges)
        return entry

    def find_demands(self, candidate: Candidate) -> Demands:
        """Return what the sets of pods want; one object for all that want the same."""
        sets = {frozenset(pods.counts.items()): pods.counts for pods in candidate.pod_sets}
        key = frozenset(sets)
        demands = self._demands.get(key)
        if demands is None:
            demands = self._demands[key] = Demands(list(sets.values()))
        return demands

    def take_head(self, book: GangBook) -> tuple[Line, GangBook] | None:
        """Take a gang that has been placed out of its line; return the line and who is next."""
        line = self._gang_lines.pop(book.key, None)
        if line is None:
            return None
        self._queues[book.queue].forget_heads()
        head = self.find_head(line)
        return None if head is None else (line, head)

    def list_behind(self, head: GangBook, count: int) -> Sequence[GangBook]:
        """Return the next `count` gangs behind the first of its line."""
        line = self._gang_lines.get(head.key)
        if line is None or len(line.entries) == 1:
            return []
        books: list[GangBook] = []
        for _, book in heapq.nsmallest(count + 1, line.entries, key=lambda entry: entry[0]):
            if self._gang_lines.get(book.key) is line and book is not head and book not in books:
                books.append(book)
        return books

    def find_head(self, line: Line) -> GangBook | None:
        """Return the first gang of a line; forget the line when there is none."""
        entries, lines = line.entries, self._gang_lines
        while entries:
            book = entries[0][1]
            if lines.get(book.key) is line:
                return book
            heapq.heappop(entries)
        self._queues[line.queue].lines.pop(line.key, None)
        return None


def list_entries(heads: Iterable[Head]) -> Iterable[Entry]:
    """Return the heads without their lines."""
    return (entry for entry, _ in heads)


def build_line_key(book: GangBook) -> LineKey:
    """Return what is equal for gangs that get the same answer in one pass."""
    return (
        book.queue,
        book.priority,
        book.preemptibility,
        book.min_member,
        # A gang that has its minimum grows pod by pod, however many it has.
        min(book.active_count, book.min_member),
        book.preemption_delay,
        book.is_exempt,
        frozenset(count_shapes(book.waiting.values()).items()),
        book.created_at if book.preemption_delay > 0 else None,
    )
