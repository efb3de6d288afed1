"""How far a training was before and after a disruption, read from the lines of its log. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

Line = tuple[int | None, str]
"""A line's time in nanoseconds after 1970, where it is known, and its text."""

_RESUMED = re.compile(r"\bresumed (?:at|from) step (\d{1,12})\b", re.IGNORECASE)
_ANEW = re.compile(r"\bbegan anew\b", re.IGNORECASE)
_STEP = re.compile(r"\bstep[ :=]+(\d{1,12})\b", re.IGNORECASE)
_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Progress:
    """Where training went on after the last restart that its log tells, and what that cost.

    `lost_steps` are steps that were done and are done again; `seconds` lie between the last line
    of a step before and the first one after, None where the log does not tell.
    """

    resumed_step: int
    began_anew: bool = False
    lost_steps: int | None = None
    seconds: float | None = None


def parse_progress(lines: Iterable[Line], since: int) -> Progress | None:
    """Return how training went on after `since`; None while the log does not tell.

    The lines are those of rank 0 in their order; times are nanoseconds after 1970.
    """
    last: tuple[int, int | None] | None = None
    resumption: tuple[int, bool, tuple[int, int | None] | None] | None = None
    first_after: int | None = None
    for at, text in lines:
        if (resumed := _find_resumed(text)) is not None:
            if at is None or at >= since:
                # Of several restarts after one disruption, the first tells what was done before.
                before = resumption[2] if resumption is not None else last
                resumption, first_after = (*resumed, before), None
        elif (step := _STEP.search(text)) is not None:
            last = int(step[1]), at
            if resumption is not None and first_after is None:
                first_after = at
    if resumption is None:
        return None
    step_number, began_anew, before = resumption
    lost_steps = None if before is None else max(0, before[0] - step_number)
    seconds = None
    if before is not None and before[1] is not None and first_after is not None:
        seconds = max(0, first_after - before[1]) / _SECOND
    return Progress(step_number, began_anew, lost_steps, seconds)


def _find_resumed(text: str) -> tuple[int, bool] | None:
    if match := _RESUMED.search(text):
        return int(match[1]), False
    return (0, True) if _ANEW.search(text) else None
