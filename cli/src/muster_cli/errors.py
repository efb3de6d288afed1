"""What ends a command early, with words for a person and the status that it exits with."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of all commands."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_SIGNED_IN = 3
    FORBIDDEN = 4
    NOT_FOUND = 5
    CONFLICT = 6
    TIMED_OUT = 124
    INTERRUPTED = 130


EXIT_CODE_MEANINGS = {
    ExitCode.OK: "It is done, or what was waited for has come.",
    ExitCode.FAILED: "It failed: the server refused it, could not be reached, or a workload that "
    "was waited for failed.",
    ExitCode.USAGE: "The command itself is not right; nothing was sent.",
    ExitCode.NOT_SIGNED_IN: "Nobody is signed in, the session has ended, or the credentials are "
    "wrong.",
    ExitCode.FORBIDDEN: "You may see it, and may not do this.",
    ExitCode.NOT_FOUND: "It is not there, or not yours to see.",
    ExitCode.CONFLICT: "A name is taken, or the state does not allow it.",
    ExitCode.TIMED_OUT: "What was waited for did not come in time.",
    ExitCode.INTERRUPTED: "Ctrl-C.",
}


class CliError(Exception):
    """A command cannot go on: what happened and why, and in `hint` what to do."""

    exit_code = ExitCode.FAILED

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageProblem(CliError):
    """What was typed cannot be understood."""

    exit_code = ExitCode.USAGE


class NotSignedIn(CliError):
    """There is no token, or none that is good."""

    exit_code = ExitCode.NOT_SIGNED_IN


class NotFound(CliError):
    """There is nothing of that name, or nothing that the caller may see."""

    exit_code = ExitCode.NOT_FOUND


class Interrupted(KeyboardInterrupt):
    """Ctrl-C where something is to be said of what was going on."""


class TimedOut(CliError):
    """What was waited for did not come in time."""

    exit_code = ExitCode.TIMED_OUT


class Unreachable(CliError):
    """The server did not answer; `was_sent` tells whether the request may have reached it."""

    def __init__(self, message: str, hint: str = "", *, was_sent: bool = False) -> None:
        super().__init__(message, hint)
        self.was_sent = was_sent


UNKNOWN_OUTCOME = "Whether it was done is not known: look before you do it again."
TEMPORARY_STATUSES = (502, 503, 504)
"""What a proxy answers while the server behind it restarts."""


class Refused(CliError):
    """The server answered with an error: its status, and its words for each field."""

    def __init__(
        self, status: int, message: str, details: tuple[tuple[str, str], ...] = (), hint: str = ""
    ) -> None:
        super().__init__(message, hint)
        self.status = status
        self.details = details
        self.exit_code = _EXIT_CODES.get(status, ExitCode.FAILED)

    @property
    def is_temporary(self) -> bool:
        """Tell whether the same request may be answered a little later."""
        return self.status in TEMPORARY_STATUSES


class ForeignRefusal(Refused):
    """An error without Muster's words: a proxy may have answered in its place.

    That one knows no workload says nothing of whether there is one.
    """

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(status, message, (), hint)
        if status != 401:
            self.exit_code = ExitCode.FAILED


_EXIT_CODES = {
    401: ExitCode.NOT_SIGNED_IN,
    403: ExitCode.FORBIDDEN,
    404: ExitCode.NOT_FOUND,
    409: ExitCode.CONFLICT,
}


def describe_error(error: CliError) -> str:
    """Return an error in lines: what happened, each field with what is wrong, what to do.

    What a terminal would obey is left out: the words may be the server's.
    """
    message = error.message
    details = error.details if isinstance(error, Refused) else ()
    if len(details) > 1 and all(text in message for _, text in details):
        # The message has them one after the other: lines are easier to read.
        message = f"{len(details)} values are not right:"
    # A problem of one field alone is the message already.
    lines = [f"Error: {message}"] + [
        f"  {field}: {text}" if field else f"  {text}"
        for field, text in details
        if text not in message
    ]
    if error.hint:
        lines.append(error.hint)
    return "\n".join(map(drop_invisible, lines))


def drop_invisible(text: str) -> str:
    """Return a text without characters that cannot be seen; other spaces become plain ones."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in "\n\t" else " " if each.isspace() else ""
        for each in text
    )
