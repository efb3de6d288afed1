"""A command or its arguments as one line of text, as a form and the REST API have them, and as the
words a container gets.
"""

import shlex
from collections.abc import Iterable


class InvalidCommandLine(ValueError):
    """A line whose quotes do not match; the text is for the person."""


def split_command_line(line: str) -> tuple[str, ...]:
    """The words of a line, split at spaces as a shell does: quotes keep words together. Raises
    BadWords.
    """
    try:
        return tuple(shlex.split(line))
    except ValueError as error:
        raise InvalidCommandLine(
            "must have matching quotes, and no backslash at its end"
        ) from error


def join_command_line(words: Iterable[str]) -> str:
    """The line that `split_words` makes these words of."""
    return shlex.join(words)
