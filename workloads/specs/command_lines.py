"""Conversion of a command line between one text and a list of words.

Forms and the REST API have the line; a container gets the words.
"""

import shlex
from collections.abc import Iterable


class InvalidCommandLine(ValueError):
    """A line cannot be split because its quotes do not match. The text is for the user."""


def split_command_line(line: str) -> tuple[str, ...]:
    """Split a line into words as a shell does; quotes keep words together.

    Raises InvalidCommandLine.
    """
    try:
        return tuple(shlex.split(line))
    except ValueError as error:
        raise InvalidCommandLine(
            "must have matching quotes, and no backslash at its end"
        ) from error


def join_command_line(words: Iterable[str]) -> str:
    """Join words into a line that `split_command_line` splits into the same words."""
    return shlex.join(words)
