"""Searching logs for words or an expression, in linear time, with bounds."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import re2

from workloads.logbook import windows
from workloads.logbook.display import strip_for_search
from workloads.logbook.log_files import OpenLog
from workloads.logbook.windows import Cursor, LogLine

LONGEST_QUERY = 200
MOST_SECONDS = 1.5
MOST_BYTES = 64 << 20
_MAX_REGEX_MEMORY = 8 << 20
_CLOCK_CHECK_LINES = 256
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
        except re2.error as error:
            detail = error.args[0] if error.args else ""
            reason = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
            raise BadExpression(f"This expression cannot be used: {reason[:200]}.") from None

    def matches(self, raw: bytes) -> bool:
        """Return whether a stored line matches, without its time and its colours."""
        return self._pattern.search(strip_for_search(raw)) is not None

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
    most_bytes: int = MOST_BYTES,
) -> SearchResult:
    """Find the next match from a cursor on, or before it.

    Stops after MOST_SECONDS or `most_bytes`: go on from the result's cursor.
    """
    lines: Iterator[LogLine] = (
        windows.read_up(logs, cursor, floor) if up else windows.read_down(logs, cursor)
    )
    position = {each.log.pk: cursor.get(each.log.pk, 0) for each in logs}
    until, searched = clock() + MOST_SECONDS, 0
    for number, line in enumerate(lines, 1):
        position[line.log] = line.offset if up else line.end
        searched += len(line.raw) + 1
        if query.matches(line.raw):
            return SearchResult(line, position, searched, False)
        if searched >= most_bytes or (number % _CLOCK_CHECK_LINES == 0 and clock() > until):
            return SearchResult(None, position, searched, False)
    return SearchResult(None, position, searched, True)
