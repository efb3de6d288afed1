"""Lines of logs in a cell: up to a bound, as a notebook with too much output cannot be opened."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

MOST_CHARACTERS = 2 << 20
"""Characters of lines that a cell shows as they come."""
LAST_LINES = 100
"""Lines after these, the last ones, that it shows at its end."""
LONGEST_LAST_LINE = 2000


class ShownLines:
    """Shows lines until there are too many; keeps the last ones for the end."""

    def __init__(
        self,
        show_line: Callable[[str], None],
        place: str,
        *,
        most_characters: int = MOST_CHARACTERS,
    ) -> None:
        self._show_line = show_line
        self._place = place
        self._left = most_characters
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._count = 0

    def add(self, line: str) -> None:
        """Show a line, or keep it for the end."""
        self._left -= len(line) + 1
        if self._left >= 0:
            self._show_line(line)
            return
        if not self._count:
            self._show_line(
                f"The logs are longer than a notebook can hold; the last {LAST_LINES} lines "
                f"follow at the end, and {self._place} has all."
            )
        # From here on all lines are kept back, also short ones: none overtakes another.
        self._left = -1
        self._count += 1
        self._last.append(line[:LONGEST_LAST_LINE])

    def finish(self) -> None:
        """Show the last lines of those that were kept back."""
        if self._count > len(self._last):
            self._show_line(f"{self._count - len(self._last):,} lines are left out here.")
        for line in self._last:
            self._show_line(line)
        self._last.clear()
