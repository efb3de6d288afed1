"""Finds the line that says why a program ended, in the last lines of its log.

Heuristics; the lines are hostile text.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workloads.diagnosis.causes import FailureCause
from workloads.diagnosis.failed_processes import parse_rank_of_writer
from workloads.diagnosis.failure_signs import describe_sign, find_sign, is_below_error
from workloads.diagnosis.sign_forms import FailureSign, Weight
from workloads.diagnosis.tracebacks import HEADER, LogLine, is_launcher_error, iterate_errors
from workloads.kube_objects import clean_text
from workloads.training_progress import LineParser

LONGEST_LINE = 500
MOST_LINES = 2000
"""Of a longer log only the last lines are searched."""
ADVANCES = 3
"""Places of a training, each beyond the one before, after which it has gone on."""

MOST_LINES_OF_MESSAGE = 8
"""Lines below an error whose own line ends with a colon that may be its message."""
MOST_LINES_OF_BLOCK = 40
"""Lines of what Open MPI says between two rules."""
MOST_PARSED = 200
"""Lines at the end of a log in which the training's places are looked for: each takes time."""

_STAMP = re.compile(
    r"^\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?:? ?"
)
_COLOURS = re.compile(r"\x1b\[[0-9;?]{0,32}[A-Za-z]")
"""Colours and erasures of a terminal: Ray's prefix has them, and bars end with them."""
_WRITER = re.compile(
    r"^(?:\[(?!(?i:info|debug|warn|error|critical|fatal))[A-Za-z_]{0,24}:?\d{0,6}\]: ?"
    r"|\[\d{1,6},\d{1,6}\]<std(?:err|out)>: ?"
    r"|\([A-Za-z_]\w{0,60} pid=\d{1,10}[^)]{0,60}\) ?)"
)
"""The prefix of a process: torchrun's, mpirun's and Ray's."""
_ERROR_WORD = re.compile(
    r"\b(fatal|panic|critical|error)\b|(Error|Exception)\b|\bF\d{4} \d\d:", re.IGNORECASE
)
"""A word for an error, or how Google's loggers begin the line with which they end a program."""


_RULE = re.compile(r"-{60,100}$")
_POINTS_ELSEWHERE = re.compile(
    r"\b(?:errors?|logs?|messages?|output) above\b|\bsee above\b|\babove for (?:more )?details"
    r"|\bsee (?:the )?(?:log|output)|could not start grpc server",
    re.IGNORECASE,
)
"""An error that says that another line says why, or whose library writes why by itself."""


@dataclass(frozen=True, slots=True)
class Clue:
    """A line of a log that says why the program ended.

    `index` is the line's place in the given lines, `cause` None where the line is of no known sort;
    `words` then are "", else what the line means.
    `is_sure` is False for a mere last line. `rank` is that of the process that wrote it, where its
    prefix says so.
    """

    line: str
    index: int
    help: str = ""
    is_sure: bool = True
    weight: Weight = Weight.OWN
    cause: FailureCause | None = None
    words: str = ""
    rank: int | None = None

    @property
    def is_echo(self) -> bool:
        """Whether the line points to another pod."""
        return self.weight is Weight.ECHO


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A line that may say why the program ended: a traceback's error, or one with a sign."""

    line: LogLine
    sign: FailureSign | None
    weight: Weight
    is_of_traceback: bool


def find_clue(lines: Sequence[str], *, by_signal: bool = False) -> Clue | None:
    """Return the line that most likely started the failure; None without any text.

    Of the errors of tracebacks and the lines with a known sign, the first of those that say most;
    else the first line with a word such as "error", else the last line that is not blank.
    What the training outlived counts less: programs handle errors, and warn of what they lack. It
    is no reason for an end `by_signal`.
    """
    start = max(0, len(lines) - MOST_LINES)
    cleaned = [_read_line(index, lines[index]) for index in range(start, len(lines))]
    errors = {line.index: _build_error(line, cleaned) for line in iterate_errors(cleaned)}
    own = (index for index, each in errors.items() if each.weight is Weight.OWN)
    outlived = _count_outlived(cleaned, next(own, start))
    recent = [line for line in cleaned if line.index >= outlived]
    candidates = _list_candidates(recent, errors)
    if not by_signal and not any(each.weight <= Weight.ECHO for each in candidates):
        # What a program has still to print may follow its traceback.
        candidates += [each for index, each in errors.items() if index < outlived]
    if candidates:
        return _build_clue(
            min(
                candidates,
                key=lambda each: (
                    each.weight,
                    each.line.index < outlived,
                    not each.is_of_traceback,
                    each.line.index,
                ),
            )
        )
    clue = _find_loose_clue(recent)
    if by_signal or (clue is not None and clue.is_sure):
        return clue
    # So it may an error that has no traceback.
    return _find_signed_error(cleaned) or clue


def _find_signed_error(lines: Sequence[LogLine]) -> Clue | None:
    """Return the first line that its writer took for an error, and that names the failure."""
    for line in lines:
        if _ERROR_WORD.search(line.text) and not is_below_error(line.text):
            candidate = _build_candidate(line, is_of_traceback=False)
            if candidate.sign is not None and candidate.weight is Weight.OWN:
                return _build_clue(candidate)
    return None


def _find_loose_clue(lines: Sequence[LogLine]) -> Clue | None:
    """Return the first line with a word such as "error", else the last one that is not blank.

    Lines below a warning's level come first.
    """
    words = [line for line in lines if _ERROR_WORD.search(line.text)]
    first = next((line for line in words if not is_below_error(line.text)), None)
    if words:
        line = first or words[0]
        return Clue(line.text, line.index, rank=parse_rank_of_writer(line.writer))
    last = next((line for line in reversed(lines) if line.text.strip()), None)
    if last is None:
        return None
    line = _find_block(lines) or last
    return Clue(line.text.strip(), line.index, is_sure=False)


def _find_block(lines: Sequence[LogLine]) -> LogLine | None:
    """Return the first line of what Open MPI says last; None where the log does not end with it.

    It says what happened between two rules, first in a sentence, then in paragraphs of advice.
    """
    texts = [line for line in lines[-MOST_LINES_OF_BLOCK:] if line.text.strip()]
    rules = [index for index, line in enumerate(texts) if _RULE.match(line.text.strip())]
    if len(rules) < 2 or rules[-1] < len(texts) - 1 or rules[-2] == rules[-1] - 1:
        return None
    return texts[rules[-2] + 1]


def _read_line(index: int, line: str) -> LogLine:
    """Return a line without time stamp, a process's prefix, colours and control bytes.

    Its indentation is kept; of bars that were written over one another the last piece is read.
    """
    piece = _COLOURS.sub("", line).rstrip().rpartition("\r")[2][:LONGEST_LINE]
    stamped = _STAMP.sub("", piece)
    writer = _WRITER.match(stamped)
    text = stamped[writer.end() :] if writer else stamped
    text = text[1:] if text.startswith("\ufeff") else text
    lead = len(text) - len(text.lstrip(" \t"))
    cleaned = text[:lead] + clean_text(text, LONGEST_LINE)
    return LogLine(index, writer[0] if writer else "", cleaned)


def _list_candidates(
    lines: Sequence[LogLine], errors: Mapping[int, _Candidate]
) -> list[_Candidate]:
    """Return the lines that may say why, with the errors of tracebacks by their indexes.

    An error of a traceback that is the program's own makes a search for signs needless.
    """
    of_tracebacks = [errors[line.index] for line in lines if line.index in errors]
    if any(each.weight is Weight.OWN for each in of_tracebacks):
        return of_tracebacks
    others = []
    for line in lines:
        if line.index in errors:
            continue
        candidate = _build_candidate(line, is_of_traceback=False)
        if candidate.sign is not None:
            others.append(candidate)
            if candidate.weight is Weight.OWN:
                # None of the later lines comes before it.
                break
    return of_tracebacks + others


def _build_error(error: LogLine, lines: Sequence[LogLine]) -> _Candidate:
    """Return the candidate of a traceback's error, whose message may begin in the next line.

    Of an error that ends with a colon the first of the next lines with a sign counts, too.
    """
    candidate = _build_candidate(error, is_of_traceback=True)
    is_whole = not error.text.rstrip().endswith(":")
    if candidate.sign is not None or is_whole or is_launcher_error(error.text):
        return candidate
    begin = error.index - lines[0].index + 1
    for line in lines[begin : begin + MOST_LINES_OF_MESSAGE]:
        if HEADER in line.text:
            break
        if line.writer == error.writer:
            message = _build_candidate(line, is_of_traceback=True)
            if message.sign is not None and message.weight <= Weight.ECHO:
                return message
    return candidate


def _build_candidate(line: LogLine, *, is_of_traceback: bool) -> _Candidate:
    sign = find_sign(line.text)
    weight = sign.weight if sign else Weight.OWN
    if (sign or is_of_traceback) and is_launcher_error(line.text):
        weight = max(weight, Weight.VAGUE if sign else Weight.LAUNCHER)
    elif is_of_traceback and sign is None and _POINTS_ELSEWHERE.search(line.text):
        weight = Weight.VAGUE
    return _Candidate(line, sign, weight, is_of_traceback)


def _count_outlived(lines: Sequence[LogLine], begin: int) -> int:
    """Return how many lines the training outlived: it went on in the next one, or after it.

    Only the last lines, from `begin` on, are searched for its places.
    """
    parser = LineParser()
    places: dict[str, list[tuple[float, int]]] = {}
    for line in reversed(lines[-MOST_PARSED:]):
        if line.index < begin:
            break
        for parsed in parser.parse_line(line.text.encode("utf-8", "replace")):
            reading = parsed.reading
            if reading.step is None and reading.epoch is None:
                continue
            place = (reading.epoch or 0.0, reading.step or 0)
            later = places.setdefault(reading.pattern, [])
            if not later or place < later[-1]:
                later.append(place)
            if len(later) == ADVANCES:
                return line.index
    return 0


def _build_clue(candidate: _Candidate) -> Clue:
    sign, line = candidate.sign, candidate.line
    rank = parse_rank_of_writer(line.writer)
    if sign is None:
        return Clue(line.text, line.index, weight=candidate.weight, rank=rank)
    return Clue(
        line.text,
        line.index,
        sign.help,
        weight=candidate.weight,
        cause=sign.cause,
        words=describe_sign(sign, line.text),
        rank=rank,
    )
