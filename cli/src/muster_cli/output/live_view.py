"""Output that is looked at while it changes: drawn in place, or line by line to a file."""

from collections.abc import Sequence

from muster_cli.output.terminal import Terminal


class LiveView:
    """Draws lines over those that it drew before. It changes no mode of the terminal."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._drawn = 0
        self._known: set[str] = set()

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines in place of the last ones; to a file go only those that are new."""
        if not self._terminal.is_terminal:
            for line in lines:
                if line not in self._known:
                    self._terminal.write_line(line)
            self._known = set(lines)
            self._terminal.flush()
            return
        # A line that scrolled away could not be drawn over.
        room = max(2, self._terminal.height - 2)
        visible_lines = list(lines[:room])
        if len(lines) > room:
            visible_lines[-1] = f"… and {len(lines) - room + 1} more"
        if self._drawn:
            self._terminal.stream.write(f"\x1b[{self._drawn}F\x1b[J")
        for line in visible_lines:
            self._terminal.write_line(line)
        self._drawn = len(visible_lines)
        self._terminal.flush()
