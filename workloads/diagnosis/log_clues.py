"""Finds the line that says why a program ended, in the last lines of its log.

Heuristics; the lines are hostile text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from workloads.diagnosis.causes import FailureCause
from workloads.diagnosis.failure_signs import describe_sign, find_sign
from workloads.kube_objects import clean_text

LONGEST_LINE = 500
MOST_LINES = 2000
"""Of a longer log only the last lines are searched."""

TRACEBACK = "Traceback (most recent call last):"

_STAMP = re.compile(r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)? ?")
_RANK = re.compile(r"^\[[A-Za-z_]{0,24}:?\d{0,6}\]: ?")
_ERROR = re.compile(r"^(?!INFO|DEBUG|WARN)[A-Za-z_][\w.]{0,120}(: |$)")
_LAUNCHER_ERROR = "ChildFailedError"
"""What torchrun ends with when one of its processes failed: the lines around it say how."""


_ERROR_WORD = re.compile(r"\b(fatal|panic|critical|error)\b|(Error|Exception)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Clue:
    """A line of a log that says why the program ended.

    `index` is the line's place in the given lines, `cause` None where the line is of no known sort;
    `words` then are "", else what the line means.
    `is_sure` is False for a mere last line; `is_echo` points to another pod.
    """

    line: str
    index: int
    help: str = ""
    is_sure: bool = True
    is_echo: bool = False
    cause: FailureCause | None = None
    words: str = ""


def find_clue(lines: Sequence[str]) -> Clue | None:
    """Return the line that most likely started the failure; None without any text.

    The error of the first traceback, else the first line with a known sign, else the first line
    with a word such as "error", else the last line that is not blank.
    """
    start = max(0, len(lines) - MOST_LINES)
    cleaned = [(index, _strip_line(lines[index])) for index in range(start, len(lines))]
    error = _find_traceback_error(cleaned)
    # A launcher's error only says that one of its processes failed: a sign may say how.
    is_launcher = error is not None and _LAUNCHER_ERROR in error[1]
    signed = next(_iterate_signed_lines(cleaned), None) if error is None or is_launcher else None
    match = signed or error
    if match is None:
        match = next(((index, text) for index, text in cleaned if _ERROR_WORD.search(text)), None)
    if match is not None:
        index, text = match
        sign = find_sign(text)
        if sign is None:
            return Clue(text, index)
        return Clue(
            text,
            index,
            sign.help,
            is_echo=sign.is_echo,
            cause=sign.cause,
            words=describe_sign(sign, text),
        )
    last = next(((index, text) for index, text in reversed(cleaned) if text.strip()), None)
    return None if last is None else Clue(last[1].strip(), last[0], is_sure=False)


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
    """Return the error that ends the first traceback: the first unindented line after it.

    That of a launcher only where there is no other one.
    """
    inside, launcher_error = False, None
    for index, text in lines:
        if TRACEBACK in text:
            inside = True
        elif inside and text and not text[0].isspace():
            if _ERROR.match(text) and _LAUNCHER_ERROR not in text:
                return index, text
            if _LAUNCHER_ERROR in text:
                launcher_error = launcher_error or (index, text)
            inside = False
    return launcher_error


def _iterate_signed_lines(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield lines with a known sign.

    Those that tell of another pod come after the others, and those of an aftermath last.
    """
    echoes, aftermaths = [], []
    for index, text in lines:
        sign = find_sign(text)
        if sign is None:
            continue
        if sign.is_echo:
            echoes.append((index, text))
        elif sign.is_aftermath:
            aftermaths.append((index, text))
        else:
            yield index, text
    yield from echoes
    yield from aftermaths
