"""Lines of equal gangs: of those that want the same, only the first has to be tried.

In one pass room only shrinks, so when the first of a line is refused all behind it are: this is
what `SchedulingPass` concludes as well, one gang after the other.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence

from scheduling.gangs import Candidate, GangBook
from scheduling.shapes import ShapeCounts, ShapeTable, count_shapes
from scheduling.state import Amounts, PodShape, Preemptibility

LineKey = tuple[
    str, int, Preemptibility, int, int, float, bool, frozenset[tuple[PodShape, int]], float | None
]
DemandKey = frozenset[tuple[PodShape, int]]
Demands = Mapping[DemandKey, ShapeCounts]
Entry = tuple[tuple[int, float, int, str], GangBook]
FindCandidate = Callable[[GangBook], Candidate | None]


class Line:
    """Gangs that want the same in the same queue, in the order of the queue."""

    __slots__ = ("_candidate", "demands", "entries", "key", "wanted")

    def __init__(self, key: LineKey) -> None:
        self.key = key
        self.entries: list[Entry] = []
        self.demands: Demands = {}
        """What the sets of pods want, one of which has to find room; {} until it is known."""
        self.wanted: Amounts = {}
        """What its queue would be charged for the first set of pods."""
        self._candidate: Candidate | None = None

    def find_candidate(
        self, head: GangBook, find: FindCandidate, shapes: ShapeTable
    ) -> Candidate | None:
        """Return the next pods of the head, as they were found before if it is still the head."""
        candidate = self._candidate
        if candidate is None or candidate.gang is not head or head.sorted_waiting is None:
            candidate = self._candidate = find(head)
            if candidate is not None:
                self.demands = list_demands(candidate)
                self.wanted = shapes.sum_charges(candidate.pod_sets[0].counts)
        return candidate


class Lines:
    """The gangs with pods that wait, in lines of equals."""

    def __init__(self) -> None:
        self._lines: dict[LineKey, Line] = {}
        self._keys: dict[str, LineKey] = {}
        """The line of each gang, by the gang's key."""

    def add_gang(self, book: GangBook) -> None:
        """Put a gang into its line, or into another one when it wants something else now."""
        key = build_line_key(book)
        if self._keys.get(book.key) == key:
            return
        self._keys[book.key] = key
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = Line(key)
        heapq.heappush(line.entries, (book.order, book))

    def remove_gang(self, book: GangBook) -> None:
        """Take a gang out; its entry is dropped when it comes to the head."""
        self._keys.pop(book.key, None)

    def list_lines(self) -> Sequence[Line]:
        return list(self._lines.values())

    def take_head(self, book: GangBook) -> tuple[Line, GangBook] | None:
        """Take a gang that has been placed out of its line; return the line and who is next."""
        key = self._keys.pop(book.key, None)
        line = None if key is None else self._lines.get(key)
        if line is None:
            return None
        head = self.find_head(line)
        return None if head is None else (line, head)

    def list_behind(self, head: GangBook, count: int) -> Sequence[GangBook]:
        """Return the next `count` gangs behind the first of its line."""
        key = self._keys.get(head.key)
        line = None if key is None else self._lines.get(key)
        if line is None or len(line.entries) == 1:
            return []
        books: list[GangBook] = []
        for _, book in heapq.nsmallest(count + 1, line.entries, key=lambda entry: entry[0]):
            if self._keys.get(book.key) == key and book is not head and book not in books:
                books.append(book)
        return books

    def find_head(self, line: Line) -> GangBook | None:
        """Return the first gang of a line; forget the line when there is none."""
        entries, keys = line.entries, self._keys
        while entries:
            book = entries[0][1]
            if keys.get(book.key) == line.key:
                return book
            heapq.heappop(entries)
        self._lines.pop(line.key, None)
        return None


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


def list_demands(candidate: Candidate) -> Demands:
    return {frozenset(pods.counts.items()): pods.counts for pods in candidate.pod_sets}
