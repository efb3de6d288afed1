"""Searching one log block by block, downwards or upwards."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from workloads.logbook import stamps
from workloads.logbook.index import NO_TIME
from workloads.logbook.line_reading import ByteSource
from workloads.logbook.log_files import OpenLog
from workloads.logbook.windows import LogLine

_LARGEST_BLOCK = 256 << 10
_CLOCK_CHECK_LINES = 64


class LineQuery(Protocol):
    """What is searched for."""

    def matches(self, raw: bytes) -> bool: ...
    def find_candidate(self, block: bytes, start: int) -> int | None: ...


@dataclass(frozen=True, slots=True)
class SearchBounds:
    """What one answer may cost, and the bytes that are read of a log at once at least.

    `most_lines` is of those that are looked at one by one, where only a whole line tells;
    `most_seconds` is for expressions that take long.
    """

    most_bytes: int = 8 << 20
    most_lines: int = 4_000
    most_seconds: float = 0.5
    smallest_block: int = 4 << 10


@dataclass(slots=True)
class Budget:
    """What one answer has cost so far."""

    bounds: SearchBounds
    logs: int
    clock: Callable[[], float]
    bytes_searched: int = 0
    lines_checked: int = 0
    is_late: bool = False
    until: float = field(init=False)

    def __post_init__(self) -> None:
        self.until = self.clock() + self.bounds.most_seconds

    @property
    def is_spent(self) -> bool:
        return (
            self.bytes_searched >= self.bounds.most_bytes
            or self.lines_checked >= self.bounds.most_lines
            or self.is_late
        )

    @property
    def block_size(self) -> int:
        """The bytes that are read of a log at once: of all logs half of what may be searched."""
        share = self.bounds.most_bytes // (2 * max(1, self.logs))
        return max(self.bounds.smallest_block, min(_LARGEST_BLOCK, share))

    def count_line(self) -> None:
        """Count a line that is looked at. Now and then this asks for the time."""
        self.lines_checked += 1
        if self.lines_checked % _CLOCK_CHECK_LINES == 0:
            self.is_late = self.clock() > self.until


@dataclass(slots=True, eq=False)
class LogSearch(ABC):
    """The search of one log. All between where it began and `position` has no match but `hit`.

    Searches compare by the time at which they stand, the one that is to go on first.
    """

    log: OpenLog
    order: int
    position: int
    query: LineQuery
    budget: Budget
    hit: LogLine | None = None
    is_finished: bool = False
    key: int = NO_TIME
    """Not after the time of any line ahead, in the order of the search."""
    block: bytes = field(default=b"", repr=False)
    """Whole lines ahead that are read and not searched."""

    def __lt__(self, other: "LogSearch") -> bool:
        return (self.key, self.order) < (other.key, other.order)

    @abstractmethod
    def read_ahead(self) -> bool:
        """Read the next block unless there is one. Return whether there is."""

    @abstractmethod
    def search_block(self) -> None:
        """Search the block that was read, as far as the budget goes, and set `hit`."""

    def _advance_key(self, line: bytes, sign: int) -> None:
        # A line without a time, or with an earlier one, gets the time before it, as in windows.
        ns, _ = stamps.parse_stamp(line[:64])
        if ns is not None:
            self.key = max(self.key, sign * ns)


class DownwardSearch(LogSearch):
    """Searches from the first line on."""

    __slots__ = ()

    def read_ahead(self) -> bool:
        if not self.block:
            self.block = read_block_after(self.log.source, self.position, self.budget.block_size)
            self.is_finished = not self.block
            self._advance_key(self.block, 1)
        return not self.is_finished

    def search_block(self) -> None:
        if not self.read_ahead():
            return
        block, start = self.block, 0
        while not self.budget.is_spent:
            match_offset = self.query.find_candidate(block, start)
            if match_offset is None:
                start = len(block)
                break
            begin, end = block.rfind(b"\n", 0, match_offset) + 1, block.find(b"\n", match_offset)
            line = block[begin:end]
            self.budget.count_line()
            if self.query.matches(line):
                self._advance_key(line, 1)
                ns, _ = stamps.parse_stamp(line[:64])
                self.hit = LogLine(self.log.log.pk, self.position + begin, ns, line)
                self._leave_behind(begin)
                return
            start = end + 1
        self._leave_behind(start)

    def _leave_behind(self, count: int) -> None:
        if count:
            last = self.block.rfind(b"\n", 0, count - 1) + 1
            self._advance_key(self.block[last:count], 1)
        self.budget.bytes_searched += count
        self.position += count
        self.block = self.block[count:]


class UpwardSearch(LogSearch):
    """Searches from the last line on, back to `floor`."""

    __slots__ = ("floor",)

    def __init__(
        self,
        log: OpenLog,
        order: int,
        position: int,
        query: LineQuery,
        budget: Budget,
        floor: int = 0,
    ) -> None:
        # The last of equal times comes first.
        super().__init__(log, -order, position, query, budget)
        self.floor = floor

    def read_ahead(self) -> bool:
        if not self.block:
            self.block = read_block_before(
                self.log.source, self.position, self.floor, self.budget.block_size
            )
            self.is_finished = not self.block
            self._advance_key(self.block[self.block.rfind(b"\n", 0, -1) + 1 :], -1)
        return not self.is_finished

    def search_block(self) -> None:
        if not self.read_ahead():
            return
        block, end = self.block, len(self.block)
        match_offset = self.query.find_candidate(block, 0)
        # Nothing before this line matches.
        first = end if match_offset is None else block.rfind(b"\n", 0, match_offset) + 1
        while end > first and not self.budget.is_spent:
            begin = block.rfind(b"\n", 0, end - 1) + 1
            line = block[begin : end - 1]
            self.budget.count_line()
            if self.query.matches(line):
                self._leave_behind(end)
                self._advance_key(line, -1)
                ns, _ = stamps.parse_stamp(line[:64])
                offset = self.position - (end - begin)
                self.hit = LogLine(self.log.log.pk, offset, ns, line)
                return
            end = begin
        self._leave_behind(0 if end <= first else end)

    def _leave_behind(self, remaining: int) -> None:
        count = len(self.block) - remaining
        if count:
            first = self.block[remaining : remaining + 64]
            self._advance_key(first, -1)
        self.budget.bytes_searched += count
        self.position -= count
        self.block = self.block[:remaining]


def read_block_after(source: ByteSource, offset: int, size: int) -> bytes:
    """Return whole lines from the beginning of a line on, at least one; b"" where there is none.

    A last line that is still being written is left out.
    """
    while True:
        data = source.read(offset, size)
        if end := data.rfind(b"\n") + 1:
            return data[:end]
        if len(data) < size:
            return b""
        size *= 4


def read_block_before(source: ByteSource, offset: int, floor: int, size: int) -> bytes:
    """Return whole lines before the beginning of a line, not before `floor`; b"" where none is."""
    while offset > floor:
        begin = max(floor, offset - size)
        data = source.read(begin, offset - begin)
        if len(data) < offset - begin:
            return b""
        if begin == floor:
            return data
        if first := data.find(b"\n", 0, -1) + 1:
            return data[first:]
        size *= 4
    return b""
