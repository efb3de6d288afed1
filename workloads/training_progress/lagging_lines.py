"""Lines in which a library of collectives names the ranks that others wait for. Pure.

PyTorch's monitored barrier (ProcessGroupGloo.cpp), its report of ranks out of step
(TraceUtils.h, TORCH_NCCL_DESYNC_DEBUG), and the text of NCCL's RAS (`ncclras`, client_support.cc).
"""

import functools
from dataclasses import dataclass, field
from typing import Any

import re2

MOST_BYTES = 400
"""Bytes of a line that are looked at."""
MOST_RANKS = 64
"""Ranks of one line."""
_HINTS = (
    b"monitoredBarrier",
    b"didn't join",
    b"lagging",
    b"operation",
    b"missing rank",
    b"INCOMPLETE",
)
_RANKS = r"\[?(?P<ranks>\d{1,7}(?:, ?\d{1,7})*)\]?"
_NAMED = (
    rf"(?i)ranks? {_RANKS} failed to pass monitoredBarrier",
    rf"{_RANKS} finished collective #\d+, but didn't join collective #\d+",
    rf"ranks {_RANKS} are the lagging ranks",
)
_RAS_SIZE = r"^\s*\d+\s+\d+\s+\d+\s+[\d-]+\s+(?P<size>\d{1,7})\s+\d+\s+\S+\s+\S*INCOMPLETE"
_RAS_MISSING = rf"^\s*The missing ranks?: {_RANKS}"
_RAS_MOST = r"^\s*(?P<size>\d{1,7}) ranks have launched up to operation (?P<operation>\d{1,18})\s*$"
_RAS_ONE = (
    r"^\s*Rank (?P<rank>\d{1,7}) has (?:launched up to operation (?P<operation>\d{1,18})"
    r"|not launched any operations)"
)


@dataclass(slots=True)
class Lagging:
    """Which ranks the log of one rank named last, as numbers of the communicator.

    `size` is how many ranks that has, 0 where it is of all of them. `since` and `at` are when the
    same ranks were named first and last, in seconds since 1970; `line` is what was printed.
    `must_repeat` says that a training which goes on prints such a line now and then, of other
    operations each time. `ras_*` is what the lines before it said.
    """

    ranks: list[int] = field(default_factory=list)
    size: int = 0
    line: str = ""
    since: float = 0.0
    at: float = 0.0
    must_repeat: bool = False
    ras_size: int = 0
    ras_operation: int = -1

    def read_line(self, line: bytes, at: float) -> None:
        """Take over what a line of the log says of ranks that did not come."""
        text = line[:MOST_BYTES].decode("utf-8", "replace").strip("\r\n")
        for expression in _NAMED:
            if match := _compile(expression).search(text):
                self._name_ranks(match["ranks"], 0, text, at)
                return
        self._read_ras(text, at)

    def _read_ras(self, text: str, at: float) -> None:
        if match := _compile(_RAS_SIZE).search(text):
            self.ras_size = int(match["size"])
        elif match := _compile(_RAS_MISSING).search(text):
            self._name_ranks(match["ranks"], self.ras_size, text, at)
        elif match := _compile(_RAS_MOST).search(text):
            self.ras_size, self.ras_operation = int(match["size"]) + 1, int(match["operation"])
        elif match := _compile(_RAS_ONE).search(text):
            operation = int(match["operation"] or 0)
            if operation < self.ras_operation:
                self._name_ranks(match["rank"], self.ras_size, text, at, must_repeat=True)

    def _name_ranks(
        self, ranks: str, size: int, text: str, at: float, *, must_repeat: bool = False
    ) -> None:
        named = [int(each) for each in ranks.split(",")[:MOST_RANKS]]
        line = "".join(each for each in text if each.isprintable()).strip()
        is_same = named == self.ranks and (line == self.line or not must_repeat)
        self.since = self.since if is_same else at
        self.ranks, self.size, self.line, self.at = named, size, line, at
        self.must_repeat = must_repeat


def may_name_lagging(line: bytes) -> bool:
    """Tell whether `Lagging.read_line` may find anything in a line, at next to no cost."""
    begin = line[:MOST_BYTES]
    return any(hint in begin for hint in _HINTS)


@functools.cache
def _compile(expression: str) -> Any:
    return re2.compile(expression)
