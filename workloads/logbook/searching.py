"""Searching logs for words or an expression, in linear time, with bounds.

What is searched is a block of lines, not a line: of most blocks one call of RE2 says that nothing
in it matches. One answer searches so many bytes and no more, and the next goes on from its cursor.
"""

import heapq
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import re2

from workloads.logbook.block_search import (
    Budget,
    DownwardSearch,
    LogSearch,
    SearchBounds,
    UpwardSearch,
)
from workloads.logbook.display import strip_for_search
from workloads.logbook.log_files import OpenLog
from workloads.logbook.windows import Cursor, LogLine

LONGEST_QUERY = 200
BOUNDS = SearchBounds()
_MAX_REGEX_MEMORY = 8 << 20
MOST_MARKS = 50


class BadExpression(ValueError):
    """The expression cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The first line that matches, or None, and how far the search went.

    `cursor` is where it stands; `is_finished` says that it came to the end.
    """

    line: LogLine | None
    cursor: Cursor
    bytes_searched: int
    is_finished: bool


class Query:
    """What is searched for: literal words, or a regular expression (RE2's syntax). Raises
    BadExpression.
    """

    def __init__(self, text: str, *, regex: bool = False, case: bool = False) -> None:
        if not text or len(text) > LONGEST_QUERY:
            raise BadExpression(f"Give between 1 and {LONGEST_QUERY} characters to look for.")
        options = re2.Options()
        options.max_mem = _MAX_REGEX_MEMORY
        options.log_errors = False
        options.case_sensitive = case
        try:
            self._pattern: Any = re2.compile(text if regex else re2.escape(text), options)
            # An expression may be about the ends of a line, which only the line itself has.
            self._candidates: Any = (
                None if regex else re2.compile(f"{re2.escape(text)}|\\x1b", options)
            )
        except re2.error as error:
            detail = error.args[0] if error.args else ""
            reason = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
            raise BadExpression(f"This expression cannot be used: {reason[:200]}.") from None

    def matches(self, raw: bytes) -> bool:
        """Return whether a stored line matches, without its time and its colours."""
        return self._pattern.search(strip_for_search(raw)) is not None

    def find_candidate(self, block: bytes, start: int) -> int | None:
        """Return where, from `start` on, a line may match; None where no line of the block does.

        A line with an escape sequence may, for that may stand amid the words.
        """
        if self._candidates is None:
            return start if start < len(block) else None
        match = self._candidates.search(block, start)
        return None if match is None else int(match.start())

    def find_marks(self, text: str) -> list[tuple[int, int]]:
        """Return where a shown text matches, in characters."""
        marks: list[tuple[int, int]] = []
        for match in self._pattern.finditer(text):
            if len(marks) >= MOST_MARKS:
                break
            if match.end() > match.start():
                marks.append((match.start(), match.end()))
        return marks


def find_match(
    logs: Sequence[OpenLog],
    query: Query,
    cursor: Cursor,
    *,
    up: bool = False,
    floor: Cursor | None = None,
    clock: Callable[[], float] = time.monotonic,
    bounds: SearchBounds = BOUNDS,
) -> SearchResult:
    """Find the next match by time from a cursor on, or before it.

    Stops at the bounds: go on from the result's cursor. Of each log what lies between the two
    cursors has no other match, whatever order its lines come in.
    """
    budget = Budget(bounds, len(logs), clock)
    searches: list[LogSearch] = [
        UpwardSearch(
            each,
            order,
            cursor.get(each.log.pk, 0),
            query,
            budget,
            (floor or {}).get(each.log.pk, 0),
        )
        if up
        else DownwardSearch(each, order, cursor.get(each.log.pk, 0), query, budget)
        for order, each in enumerate(logs)
    ]
    hit = _search_in_order(searches, budget)
    positions = {each.log.log.pk: each.position for each in searches}
    if hit is None:
        is_finished = all(each.is_finished for each in searches)
        return SearchResult(None, positions, budget.bytes_searched, is_finished)
    positions[hit.log] = hit.offset if up else hit.end
    return SearchResult(hit, positions, budget.bytes_searched, False)


def _search_in_order(searches: Sequence[LogSearch], budget: Budget) -> LogLine | None:
    """Return the first match by time; None where there is none, or the budget is spent before.

    The log that stands at the earliest time goes on, until the earliest time is that of a match.
    """
    ahead = [each for each in searches if each.read_ahead()]
    heapq.heapify(ahead)
    while ahead:
        if ahead[0].hit is not None:
            return ahead[0].hit
        if budget.is_spent:
            return None
        ahead[0].search_block()
        if ahead[0].is_finished:
            heapq.heappop(ahead)
        else:
            heapq.heapreplace(ahead, ahead[0])
    return None
