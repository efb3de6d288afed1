"""Finds the line that says why a program ended, in the last lines of its log.

Heuristics; the lines are hostile text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from workloads.diagnosis.causes import FailureCause
from workloads.kube_objects import clean_text

LONGEST_LINE = 500
MOST_LINES = 2000
"""Of a longer log only the last lines are searched."""

TRACEBACK = "Traceback (most recent call last):"

_STAMP = re.compile(r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)? ?")
_RANK = re.compile(r"^\[[A-Za-z_]{0,24}:?\d{0,6}\]: ?")
_ERROR = re.compile(r"^(?!INFO|DEBUG|WARN)[A-Za-z_][\w.]{0,120}(: |$)")


@dataclass(frozen=True, slots=True)
class FailureSign:
    """A pattern for a line in lower case, and what would help.

    `is_echo` says that the line rather tells of another pod's failure.
    """

    cause: FailureCause
    pattern: re.Pattern[str]
    help: str
    is_echo: bool = False


def _build_sign(cause: FailureCause, pattern: str, help: str, *, echo: bool = False) -> FailureSign:
    return FailureSign(cause, re.compile(pattern), help, echo)


_PEERS = (
    "This pod lost its peers: the cause is likely in another pod's log, or in the network between "
    "the nodes."
)

SIGNS: Sequence[FailureSign] = (
    _build_sign(
        FailureCause.GPU_MEMORY,
        r"cuda (error: )?out of memory|outofmemoryerror",
        (
            "The GPU's memory is full: use a smaller batch or model, or ask for a larger portion "
            "of the GPU."
        ),
    ),
    _build_sign(
        FailureCause.SHARED_MEMORY,
        r"bus error|unable to (open|write to|allocate) .{0,40}shm"
        r"|insufficient shared memory|shm_open",
        (
            "Shared memory is full: turn on the larger shared memory, or use fewer data loader "
            "workers."
        ),
    ),
    _build_sign(
        FailureCause.DISK_FULL,
        r"no space left on device|disk quota exceeded",
        "A disk is full: write less, or to a larger volume.",
    ),
    _build_sign(
        FailureCause.MEMORY,
        r"memoryerror|cannot allocate memory|std::bad_alloc|defaultcpuallocator",
        "The memory is full: ask for more CPU memory, or load less of the data at once.",
    ),
    _build_sign(
        FailureCause.MISSING_MODULE,
        r"modulenotfounderror|importerror|no module named",
        (
            "The image lacks a module that the program needs: add it to the image, or choose "
            "another image."
        ),
    ),
    _build_sign(
        FailureCause.MISSING_FILE,
        r"no such file or directory|filenotfounderror|can't open file",
        (
            "A path does not exist in the pod: check the command, its arguments and where the "
            "volumes are mounted."
        ),
    ),
    _build_sign(
        FailureCause.PERMISSION,
        r"permission denied|permissionerror",
        "The program may not use this file: check the volume's access and the user ID.",
    ),
    _build_sign(
        FailureCause.ARGUMENTS,
        r"unrecognized arguments|error: argument |the following arguments are required",
        "Check the arguments of the command.",
    ),
    _build_sign(
        FailureCause.MISSING_COMMAND,
        r"command not found|executable file not found",
        "The image has no such program: check the command.",
    ),
    _build_sign(
        FailureCause.GPU_UNUSABLE,
        r"no cuda gpus are available|no nvidia driver|cuda driver version"
        r"|device-side assert|cuda error",
        (
            "The GPU could not be used as the program wanted: check the GPU devices asked for, "
            "and that the image fits the driver."
        ),
    ),
    _build_sign(
        FailureCause.LOST_PEERS,
        r"connection (reset|refused|closed|aborted)|broken pipe"
        r"|connectionreseterror|connectionrefusederror|socket timeout"
        r"|rank \d+ (was lost|closed|is gone)|peer .{0,60}closed|gloo/transport"
        r"|store .{0,40}(timeout|timed out)|rendezvoustimeout"
        r"|nccl.{0,80}(error|abort|timeout|timed out|unhandled|watchdog)"
        r"|watchdog.{0,80}timeout|distbackenderror|distnetworkerror",
        _PEERS,
        echo=True,
    ),
    _build_sign(
        FailureCause.PORT_TAKEN,
        r"address already in use|eaddrinuse",
        "Another program uses the port: let the training operator choose MASTER_PORT.",
    ),
    _build_sign(
        FailureCause.CRASH,
        r"segmentation fault|fatal python error|core dumped",
        "The program crashed in native code: check the versions of its libraries.",
    ),
    _build_sign(
        FailureCause.KILLED,
        r"^killed$|out of memory: kill",
        "Something killed the program; most often the memory was full: ask for more CPU memory.",
    ),
)

_ANY_SIGN = re.compile("|".join(sign.pattern.pattern for sign in SIGNS))
"""Tells of most lines in one match that they have no sign."""

_ERROR_WORD = re.compile(r"\b(fatal|panic|critical|error)\b|(Error|Exception)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Clue:
    """A line of a log that says why the program ended.

    `index` is the line's place in the given lines, `cause` None where the line is of no known sort.
    `is_sure` is False for a mere last line; `is_echo` points to another pod.
    """

    line: str
    index: int
    help: str = ""
    is_sure: bool = True
    is_echo: bool = False
    cause: FailureCause | None = None


def find_clue(lines: Sequence[str]) -> Clue | None:
    """Return the line that most likely started the failure; None without any text.

    The error of the first traceback, else the first line with a known sign, else the first line
    with a word such as "error", else the last line that is not blank.
    """
    start = max(0, len(lines) - MOST_LINES)
    cleaned = [(index, _strip_line(lines[index])) for index in range(start, len(lines))]
    match = _find_traceback_error(cleaned) or next(_iterate_signed_lines(cleaned), None)
    if match is None:
        match = next(((index, text) for index, text in cleaned if _ERROR_WORD.search(text)), None)
    if match is not None:
        index, text = match
        sign = _find_sign(text)
        if sign is None:
            return Clue(text, index)
        return Clue(text, index, sign.help, is_echo=sign.is_echo, cause=sign.cause)
    last = next(((index, text) for index, text in reversed(cleaned) if text.strip()), None)
    return None if last is None else Clue(last[1].strip(), last[0], is_sure=False)


def _find_sign(text: str) -> FailureSign | None:
    lower = text.lower()
    if not _ANY_SIGN.search(lower):
        return None
    return next((sign for sign in SIGNS if sign.pattern.search(lower)), None)


def _strip_line(line: str) -> str:
    """Return a line without time stamp, torchrun's rank prefix, colours and control bytes.

    Its indentation is kept.
    """
    indent = line[:LONGEST_LINE]
    text = _RANK.sub("", _STAMP.sub("", indent))
    text = text[1:] if text.startswith("\ufeff") else text
    lead = len(text) - len(text.lstrip(" \t"))
    return text[:lead] + clean_text(text, LONGEST_LINE)


def _find_traceback_error(lines: Sequence[tuple[int, str]]) -> tuple[int, str] | None:
    """Return the error that ends the first traceback: the first unindented line after it."""
    inside = False
    for index, text in lines:
        if TRACEBACK in text:
            inside = True
        elif inside and text and not text[0].isspace():
            if _ERROR.match(text):
                return index, text
            inside = False
    return None


def _iterate_signed_lines(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield lines with a known sign; those that tell of another pod come last."""
    echoes = []
    for index, text in lines:
        sign = _find_sign(text)
        if sign is not None and sign.is_echo:
            echoes.append((index, text))
        elif sign is not None:
            yield index, text
    yield from echoes
