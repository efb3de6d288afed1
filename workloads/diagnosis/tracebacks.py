"""Finds the errors that end Python's tracebacks in a log of one process or several. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

HEADER = "Traceback (most recent call last)"

_ERROR = re.compile(
    r"^(?!INFO|DEBUG|WARN)(?:[A-Za-z_]\w*\.[\w.]{1,120}|[A-Z_]\w{0,120})"
    r"(?:\([\w. ]{1,80}\))?(?:: |$)"
)
_NAMED_ERROR = re.compile(
    r"^(?:[A-Za-z_]\w*\.){0,20}[A-Z]\w{0,120}(?:Error|Exception|Interrupt)"
    r"(?:\([\w. ]{1,80}\))?(?:: |$)"
)
"""An error that stands below a launcher's without a header: any word may stand there."""
_LAUNCHER_ERROR = re.compile(
    r"ChildFailedError|CheckpointException ranks:|CalledProcessError"
    r"|Process(?:Raised|Exited)Exception|RayTaskError\("
    r"|(?:ActorDied|RayActor)Error|: Caught \w{1,80} in |workers? .{0,60}exit(?:ed)? unexpectedly"
    r"|^(?:KeyboardInterrupt|SystemExit)\b| raised:$"
)
"""Errors that only say that a process failed, or that somebody ended this one."""
_BOX = "│╭╰┃┏┗"
"""What Rich draws around its tracebacks."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log as it is searched, with its place among the given lines.

    `writer` is the prefix by which a launcher tells its processes apart; "" where there is none.
    """

    index: int
    writer: str
    text: str


def is_launcher_error(text: str) -> bool:
    """Return whether an error only says that a process failed, or was interrupted."""
    return _LAUNCHER_ERROR.search(text) is not None


def iterate_errors(lines: Sequence[LogLine]) -> Iterator[LogLine]:
    """Yield the errors that end tracebacks: the first unindented line after each.

    The lines of several processes may alternate: each writer's are followed by themselves. What
    stands before the header of a traceback, or its indentation, may stand before its other lines,
    too.
    """
    leads: dict[str, str] = {}
    after_launcher: set[str] = set()
    for line in lines:
        lead, header, _ = line.text.partition(HEADER)
        if header:
            leads[line.writer] = lead
            after_launcher.discard(line.writer)
            continue
        if line.writer not in leads:
            continue
        lead = leads[line.writer]
        indent = lead[: len(lead) - len(lead.lstrip())]
        text = line.text.removeprefix(lead if line.text.startswith(lead) else indent)
        if not text or text[0].isspace() or text[0] in _BOX:
            continue
        # The traceback of the process that failed may follow a launcher's error without a header.
        is_of_launcher = is_launcher_error(text)
        if is_of_launcher:
            after_launcher.add(line.writer)
        else:
            del leads[line.writer]
        pattern = _NAMED_ERROR if line.writer in after_launcher else _ERROR
        if is_of_launcher or pattern.match(text):
            yield LogLine(line.index, line.writer, text)
