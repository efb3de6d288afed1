"""The terminal: its size, colours, and text that cannot take it over."""

import os
import re
import shutil
import sys
import unicodedata
from typing import TextIO

COLOURS = {
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "grey": "90",
    "bold": "1",
}
RANK_COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "red")
PHASE_COLOURS = {
    "Preparing data": "cyan",
    "Running": "green",
    "Completed": "green",
    "Succeeded": "green",
    "Ready": "green",
    "Connected": "green",
    "Pending": "yellow",
    "Creating": "cyan",
    "Initializing": "cyan",
    "Resuming": "cyan",
    "Degraded": "yellow",
    "Failed": "red",
    "NotReady": "red",
    "Disconnected": "red",
    "Stopping": "grey",
    "Stopped": "grey",
    "Deleting": "grey",
}
_ESCAPED = re.compile(r"[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# What colours text stays in a log; whatever else begins with ESC could move, retitle or answer.
_SEQUENCES = re.compile(
    r"(?P<colour>\x1b\[[0-9;]{0,40}m)|"
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[PX^_\]][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?"
)


class Terminal:
    """One output stream, and how it may be written to."""

    def __init__(self, stream: TextIO, *, wants_colour: bool = True) -> None:
        self.stream = stream
        self.is_terminal = stream.isatty()
        self.has_colour = (
            wants_colour
            and self.is_terminal
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM") != "dumb"
        )

    @property
    def width(self) -> int | None:
        """Return the columns that a line has; None where lines go to a file or a program."""
        if not self.is_terminal and not os.environ.get("COLUMNS"):
            return None
        return max(20, shutil.get_terminal_size().columns)

    @property
    def height(self) -> int:
        return shutil.get_terminal_size().lines

    def paint(self, text: str, colour: str) -> str:
        """Return the text in a colour, where the stream has colours."""
        return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if self.has_colour and colour else text

    def write_line(self, text: str = "") -> None:
        """Write a text; at a terminal without what could take it over, but with its colours."""
        if self.is_terminal:
            text = "\n".join(clean_log_line(each) for each in text.split("\n"))
        self.stream.write(f"{text}\n")

    def flush(self) -> None:
        self.stream.flush()


def open_terminal(*, wants_colour: bool = True, is_error: bool = False) -> Terminal:
    """Return standard output, or standard error, as a terminal."""
    return Terminal(sys.stderr if is_error else sys.stdout, wants_colour=wants_colour)


def clean_text(text: str) -> str:
    """Return a text in one line, without what a terminal would obey: it may come from a pod."""
    if text.isprintable():
        return text
    return _CONTROLS.sub("", text.replace("\n", " ").replace("\t", " "))


def escape_json(text: str) -> str:
    """Return JSON with the characters escaped that a terminal would obey or reorder."""
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def clean_log_line(text: str) -> str:
    """Return a line of a log with its colours, and nothing else that a terminal would obey."""
    if text.isprintable():
        return text
    parts, end = [], 0
    for match in _SEQUENCES.finditer(text):
        parts.append(_CONTROLS.sub("", text[end : match.start()]))
        # A private sequence, as ESC [ > 4 ; 2 m, ends in m too and sets how keys are sent.
        parts.append(match["colour"] or "")
        end = match.end()
    parts.append(_CONTROLS.sub("", text[end:]))
    cleaned = "".join(parts)
    return cleaned if not end or cleaned.endswith("\x1b[0m") else f"{cleaned}\x1b[0m"


def measure_text(text: str) -> int:
    """Return the columns that a text takes."""
    if text.isascii():
        return len(text)
    return sum(_measure_character(each) for each in text)


def _measure_character(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut_text(text: str, width: int) -> str:
    """Return a text that takes at most so many columns, with "…" where something is cut off."""
    if measure_text(text) <= width:
        return text
    characters, taken = [], 0
    for character in text:
        taken += _measure_character(character)
        if taken > width - 1:
            break
        characters.append(character)
    return "".join(characters) + "…"
