"""Lines in which a library of collectives names the ranks that others wait for. Pure.

PyTorch's monitored barrier (ProcessGroupGloo.cpp), its report of ranks out of step
(TraceUtils.h, TORCH_NCCL_DESYNC_DEBUG), and the text of NCCL's RAS (`ncclras`, client_support.cc).
"""

import functools
from dataclasses import dataclass, field
from typing import Any

import re2

MOST_BYTES = 2000
"""Bytes of a line that are looked at."""
MOST_RANKS = 64
"""Ranks of one line."""
MOST_GROUPS = 64
"""Groups of communicators of one report of RAS."""
LONGEST_LINE = 400
"""Characters of a line that are kept."""
_HINTS = (
    b"monitoredBarrier",
    b"didn't join",
    b"lagging",
    b"operation",
    b"missing rank",
    b"INCOMPLETE",
    b"MISMATCH",
)
_RANKS = r"\[?(?P<ranks>\d{1,7}(?:, ?\d{1,7})*)\]?"
_NAMED = (
    rf"(?i)ranks? {_RANKS} failed to pass monitoredBarrier",
    rf"{_RANKS} finished collective #\d+, but didn't join collective #\d+",
    rf"ranks {_RANKS} are the lagging ranks",
)
_RAS_ROW = (
    r"^\s*(?P<group>\d{1,7})\s+\d+\s+\d+\s+[\d-]+\s+(?P<size>\d{1,7})\s+\d+\s+\S+\s+"
    r"\S*(?:INCOMPLETE|MISMATCH)"
)
_RAS_HEADER = (
    r"^\s*#(?P<group>\d{1,7})-(?P<number>\d{1,7}) \(.{0,40}\) .{0,40}(?:INCOMPLETE|MISMATCH)"
)
_RAS_MISSING = rf"^\s*The missing ranks?: {_RANKS}"
_RAS_MOST = r"^\s*\d{1,7} ranks have launched up to operation (?P<operation>\d{1,18})\s*$"
_RAS_ONE = (
    r"^\s*Rank (?P<rank>\d{1,7}) has (?:launched up to operation (?P<operation>\d{1,18})"
    r"|not launched any operations)"
)


@dataclass(slots=True)
class RasReport:
    """What the text of NCCL's RAS said so far.

    `sizes` are the ranks of the communicators of each group, by its number in words. The rest is of
    the communicator whose lines come now: `most` is the operation that most of its ranks have
    launched, -1 where that is not said yet, `ranks` are those that have not.
    """

    sizes: dict[str, int] = field(default_factory=dict)
    communicator: str = ""
    size: int = -1
    most: int = -1
    ranks: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Lagging:
    """Which ranks the log of one rank named last, as numbers of the communicator.

    `size` is how many ranks that has, 0 where it is of all of them, -1 where that is not known.
    `since` and `at` are when the same was said first and last, in seconds since 1970; `line` is
    what was printed. `is_of_ras` says that RAS named them: it does so of a training that goes on,
    too, each time of another operation; `topic` is of which one.
    """

    ranks: list[int] = field(default_factory=list)
    size: int = 0
    line: str = ""
    since: float = 0.0
    at: float = 0.0
    is_of_ras: bool = False
    topic: str = ""
    ras: RasReport = field(default_factory=RasReport)

    def __post_init__(self) -> None:
        """Take over what was stored as JSON."""
        if isinstance(self.ras, dict):
            self.ras = RasReport(**self.ras)

    def read_line(self, line: bytes, at: float) -> None:
        """Take over what a line of the log says of ranks that did not come."""
        text = line[:MOST_BYTES].decode("utf-8", "replace").strip("\r\n")
        is_cut = len(line) > MOST_BYTES
        for expression in _NAMED:
            if match := _compile(expression).search(text):
                ranks = _parse_ranks(match["ranks"], is_cut=is_cut)
                self._name_ranks(ranks, 0, text, at, topic=str(ranks))
                return
        self._read_ras(text, at, is_cut=is_cut)

    def _read_ras(self, text: str, at: float, *, is_cut: bool) -> None:
        ras = self.ras
        if match := _compile(_RAS_ROW).search(text):
            if len(ras.sizes) < MOST_GROUPS:
                ras.sizes[match["group"]] = int(match["size"])
        elif match := _compile(_RAS_HEADER).search(text):
            size = ras.sizes.get(match["group"], -1)
            communicator = f"{match['group']}-{match['number']}"
            self.ras = RasReport(ras.sizes, communicator, size)
        elif match := _compile(_RAS_MISSING).search(text):
            self._name_by_ras(_parse_ranks(match["ranks"], is_cut=is_cut), text, at)
        elif match := _compile(_RAS_MOST).search(text):
            # The count that most ranks have comes first.
            ras.most = int(match["operation"]) if ras.most < 0 else ras.most
        elif (match := _compile(_RAS_ONE).search(text)) and len(ras.ranks) < MOST_RANKS:
            self._compare_operation(int(match["rank"]), int(match["operation"] or 0), text, at)

    def _compare_operation(self, rank: int, operation: int, text: str, at: float) -> None:
        if operation < self.ras.most:
            self.ras.ranks.append(rank)
            self._name_by_ras(self.ras.ranks, text, at)

    def _name_by_ras(self, ranks: list[int], text: str, at: float) -> None:
        if self.ranks and not self.is_of_ras:
            # What the program itself was told says more.
            return
        topic = f"{self.ras.communicator} {self.ras.most}"
        self._name_ranks(list(ranks), self.ras.size, text, at, topic=topic, is_of_ras=True)

    def _name_ranks(
        self,
        ranks: list[int],
        size: int,
        text: str,
        at: float,
        *,
        topic: str,
        is_of_ras: bool = False,
    ) -> None:
        is_same = (topic, is_of_ras) == (self.topic, self.is_of_ras) and bool(self.ranks)
        self.since = self.since if is_same else at
        self.ranks, self.size, self.at = ranks, size, at
        self.line = "".join(each for each in text if each.isprintable()).strip()[:LONGEST_LINE]
        self.topic, self.is_of_ras = topic, is_of_ras


def may_name_lagging(line: bytes) -> bool:
    """Tell whether `Lagging.read_line` may find anything in a line, at next to no cost."""
    begin = line[:MOST_BYTES]
    return any(hint in begin for hint in _HINTS)


def _parse_ranks(text: str, *, is_cut: bool) -> list[int]:
    """Return the numbers of a list; without the last one of several where the line was cut."""
    numbers = text.split(",")
    complete_numbers = numbers[:-1] if is_cut and len(numbers) > 1 else numbers
    return [int(each) for each in complete_numbers[:MOST_RANKS]]


@functools.cache
def _compile(expression: str) -> Any:
    return re2.compile(expression)
