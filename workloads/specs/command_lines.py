"""Conversion of a command line between one text and a list of words.

Forms and the REST API have the line; a container gets the words.
"""

import shlex
from collections.abc import Iterable
from itertools import islice

from workloads.specs.problem_reports import MAX_LIST_ITEMS

MAX_LINE = 256 * 1024
"""Characters of a line: no more bytes than this may all words have together."""


class InvalidCommandLine(ValueError):
    """A line is too long, or its quotes do not match. The text is for the user."""


def split_command_line(line: str) -> tuple[str, ...]:
    """Split a line into words as a shell does; quotes keep words together.

    Of too many words there is one more than is allowed. Raises InvalidCommandLine.
    """
    # Splitting takes microseconds for each character.
    if len(line) > MAX_LINE:
        raise InvalidCommandLine(f"must have at most {MAX_LINE:,} characters")
    words = shlex.shlex(line, posix=True)
    words.whitespace_split = True
    words.commenters = ""
    try:
        return tuple(islice(words, MAX_LIST_ITEMS + 1))
    except ValueError as error:
        raise InvalidCommandLine(
            "must have matching quotes, and no backslash at its end"
        ) from error


def join_command_line(words: Iterable[str]) -> str:
    """Join words into a line that `split_command_line` splits into the same words."""
    return shlex.join(words)
