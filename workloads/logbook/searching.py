"""Searching logs with a person's words or expression: in linear time, and never longer or further
than said.
"""

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
    """The text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The first line that matches, or None; where the search stands; how many bytes it read; and
    whether it came to the end.
    """

    line: LogLine | None
    cursor: Cursor
    bytes_searched: int
    is_finished: bool


class Query:
    """What is looked for: words as they are, or a regular expression (RE2's syntax). Raises
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
            said = error.args[0] if error.args else ""
            why = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
            raise BadExpression(f"This expression cannot be used: {why[:200]}.") from None

    def matches(self, raw: bytes) -> bool:
        """Whether a stored line has it, leaving its time and its colours out."""
        return self._pattern.search(strip_for_search(raw)) is not None

    def find_marks(self, text: str) -> list[tuple[int, int]]:
        """Where it is in a text that is shown, in characters."""
        found: list[tuple[int, int]] = []
        for each in self._pattern.finditer(text):
            if len(found) >= MOST_MARKS:
                break
            if each.end() > each.start():
                found.append((each.start(), each.end()))
        return found


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
    """The next match from a cursor on, or before it. Gives up after MOST_SECONDS or so many bytes:
    go on from its cursor.
    """
    run: Iterator[LogLine] = (
        windows.read_up(logs, cursor, floor) if up else windows.read_down(logs, cursor)
    )
    here = {each.log.pk: cursor.get(each.log.pk, 0) for each in logs}
    until, searched = clock() + MOST_SECONDS, 0
    for number, line in enumerate(run, 1):
        here[line.log] = line.offset if up else line.end
        searched += len(line.raw) + 1
        if query.matches(line.raw):
            return SearchResult(line, here, searched, False)
        if searched >= most_bytes or (number % _CLOCK_CHECK_LINES == 0 and clock() > until):
            return SearchResult(None, here, searched, False)
    return SearchResult(None, here, searched, True)
