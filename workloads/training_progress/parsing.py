"""Lines of logs to readings, in linear time and with bounds: everything in a log is hostile."""

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import re2

from workloads.training_progress.patterns import (
    ALIASES,
    HINT,
    JSON,
    METRICS,
    OWN,
    PATTERNS,
    TQDM,
    TRAINING_BAR,
    Pattern,
)
from workloads.training_progress.readings import Metric, Reading, build_reading, parse_number

VARIABLE = "MUSTER_PROGRESS_PATTERN"
"""The environment variable of a workload that has its own pattern."""
LONGEST_PATTERN = 1000
MOST_INSTRUCTIONS = 500
"""Instructions of a person's own pattern, as RE2 compiles it.

A line takes RE2 its length times as many: some 10 ms of 2,000 bytes at most.
"""
LONGEST_PIECE = 2000
"""Bytes of a line, or of a bar between two carriage returns, that are looked at."""
MOST_PIECES = 4
"""Bars of one line that are looked at, the last ones: each is written over by the next."""
LONGEST_EVIDENCE = 300
_MAX_REGEX_MEMORY = 8 << 20
_MAX_OWN_MEMORY = 1 << 20
"""Of a person's own pattern: there are as many as workloads."""
_METRIC_NAMES = frozenset(Metric)
_ESCAPES = r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]|[\x00-\x08\x0b-\x1f\x7f]"
"""Colours, cursor movements, backspaces: what a terminal would not show."""


class BadPattern(ValueError):
    """A person's own pattern cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class LineReading:
    """A reading with the text that it was read from."""

    reading: Reading
    evidence: str


@functools.cache
def _compile(expression: str, max_memory: int = _MAX_REGEX_MEMORY) -> Any:
    options = re2.Options()
    options.max_mem = max_memory
    options.log_errors = False
    return re2.compile(expression, options)


@dataclass(frozen=True, slots=True)
class _CompiledPattern:
    pattern: Pattern
    expressions: Sequence[Any]
    unless: Any
    other_work: Any


@functools.cache
def _compile_patterns() -> Sequence[_CompiledPattern]:
    return [
        _CompiledPattern(
            each,
            [_compile(expression) for expression in each.expressions],
            _compile(each.unless) if each.unless else None,
            _compile(each.other_work) if each.other_work else None,
        )
        for each in PATTERNS
    ]


@functools.lru_cache(32)
def compile_own_pattern(text: str) -> Any:
    """Compile a person's own pattern. Raises BadPattern, whose text begins with "must"."""
    names = ", ".join(Metric)
    if len(text) > LONGEST_PATTERN:
        raise BadPattern(f"must have at most {LONGEST_PATTERN:,} characters")
    try:
        compiled = _compile.__wrapped__(text, _MAX_OWN_MEMORY)
    except re2.error as error:
        detail = error.args[0] if error.args else ""
        reason = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
        raise BadPattern(f"must be an expression of RE2: {reason[:200]}") from None
    if compiled.programsize > MOST_INSTRUCTIONS:
        raise BadPattern(
            f"must be simpler: RE2 makes {compiled.programsize:,} instructions of it, and "
            f"{MOST_INSTRUCTIONS} are the most. Large counts, as in (a|b){{900}}, make many"
        )
    if not _METRIC_NAMES & set(compiled.groupindex):
        raise BadPattern(
            f"must have a named group that is read, as in step (?P<step>\\d+); there are {names}"
        )
    return compiled


def check_own_pattern(text: str) -> str:
    """Return what is wrong with a person's own pattern, "" where it can be used."""
    try:
        compile_own_pattern(text)
    except BadPattern as error:
        return str(error)
    return ""


class LineParser:
    """Parses lines of one workload: by its own pattern alone where it has one.

    Raises BadPattern.
    """

    def __init__(self, own_pattern: str = "") -> None:
        self._own = compile_own_pattern(own_pattern) if own_pattern else None

    def parse_line(self, line: bytes) -> list[LineReading]:
        """Parse a line without its time: a reading for each of its last bars."""
        *written_over, last = _split_pieces(line) or [b""]
        begun = [
            each
            for piece in written_over
            for each in self._parse_piece(piece)
            if not _is_bar_at_zero(each.reading)
        ]
        return begun + self._parse_piece(last)

    def _parse_piece(self, piece: bytes) -> list[LineReading]:
        text = _compile(_ESCAPES).sub("", piece.decode("utf-8", "replace")).rstrip()
        evidence = text.strip()[:LONGEST_EVIDENCE]
        return [LineReading(each, evidence) for each in self._parse_text(text)] if text else []

    def _parse_text(self, text: str) -> Sequence[Reading]:
        if self._own is not None:
            match = self._own.search(text)
            reading = None if match is None else build_reading(OWN, _list_groups(match))
            return () if reading is None else (reading,)
        if _compile(HINT).search(text) is None:
            return ()
        if text.lstrip().startswith("{"):
            reading = _parse_json(text.strip())
            if reading is not None:
                return (reading,)
        return list(_parse_by_table(text))


def _is_bar_at_zero(reading: Reading) -> bool:
    """Return whether nobody knows yet what a bar is of: only its rate may tell, and it has none."""
    return reading.pattern == TQDM and reading.step == 0 and reading.loss is None


def _split_pieces(line: bytes) -> Sequence[bytes]:
    """Return the last bars of a line, each bounded; a line without carriage returns is one."""
    # A bar of a megabyte must not be split into a hundred thousand parts.
    tail = line[-(MOST_PIECES + 1) * LONGEST_PIECE :] if b"\r" in line else line
    parts = [each for each in tail.split(b"\r") if each.strip()]
    return [each[:LONGEST_PIECE] for each in parts[-MOST_PIECES:]]


def _list_groups(match: Any) -> dict[str, str]:
    return {
        name: text
        for name, text in match.groupdict().items()
        if text is not None and name in _METRIC_NAMES
    }


def _parse_by_table(text: str) -> Iterator[Reading]:
    """Yield the reading of the first pattern that matches, and of a bar beside it."""
    for compiled in _compile_patterns():
        match = _find_match(compiled, text)
        if match is None:
            continue
        reading = _build_table_reading(compiled.pattern, text, _list_groups(match))
        if reading is not None:
            yield reading
        if not compiled.pattern.is_beside_bar:
            return


def _find_match(compiled: _CompiledPattern, text: str) -> Any:
    """Return the first match of a pattern's expressions; None where none counts."""
    matches = (each.search(text) for each in compiled.expressions)
    match = next((each for each in matches if each is not None), None)
    if match is None or _is_found(compiled.unless, text):
        return None
    is_other_work = _is_found(compiled.other_work, text)
    return None if is_other_work and not _is_found(_compile(TRAINING_BAR), text) else match


def _is_found(expression: Any, text: str) -> bool:
    return expression is not None and expression.search(text) is not None


def _build_table_reading(pattern: Pattern, text: str, texts: dict[str, str]) -> Reading | None:
    for expression in METRICS:
        match = _compile(expression).search(text)
        if match is not None:
            texts = _list_groups(match) | texts
    if pattern.name == "megatron":
        _add_megatron_rate(text, texts)
    return build_reading(
        pattern.name, texts, is_of_epoch=pattern.is_of_epoch, first_epoch=pattern.first_epoch
    )


def _add_megatron_rate(text: str, texts: dict[str, str]) -> None:
    """Add the samples a second, which Megatron tells as a batch and the time that it took."""
    batch = _compile(r"global batch size:\s*(\d+)").search(text)
    took = _compile(r"elapsed time per iteration \(ms\):\s*([\d.]+)").search(text)
    if batch is None or took is None or Metric.SAMPLES_PER_SECOND in texts:
        return
    milliseconds = parse_number(took[1])
    if milliseconds:
        texts[Metric.SAMPLES_PER_SECOND] = repr(int(batch[1][:15]) * 1000 / milliseconds)


def _parse_json(text: str) -> Reading | None:
    """Parse a line that is an object of JSON; None where it is none, or tells nothing."""
    try:
        # Python's own reader takes NaN, which Python's programs write.
        fields = json.loads(text)
    except (RecursionError, ValueError):
        return None
    if not isinstance(fields, dict):
        return None
    texts = {}
    for metric, keys in ALIASES.items():
        value = next((fields[key] for key in keys if key in fields), None)
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            texts[metric] = _format_value(value)
    return build_reading(JSON.name, texts) if texts else None


def _format_value(value: float | str) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)[:64]
