"""Waiting times before and after, as dots on one line for each project. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workloads.templatetags.quota_trials import describe_wait
from workloads.trials.results import ProjectWaits, TrialResult, Waits

MOST_ROWS = 20
"""Projects in the picture; the table below it has all."""
TICKS = (
    (0, "0"),
    (60, "1 min"),
    (600, "10 min"),
    (3_600, "1 h"),
    (21_600, "6 h"),
    (86_400, "1 d"),
    (604_800, "7 d"),
    (2_592_000, "30 d"),
)
SHORT = 60.0
"""Seconds from which on the scale is one of ratios: minutes and days are seen beside each other."""
LEFT, WIDTH = 2.0, 96.0
"""Percent of the picture that the scale takes."""
SAME = 0.02
"""Share of a wait within which another one is the same."""
SAME_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of the scale; texts at its ends keep inside."""

    x: str
    text: str
    anchor: str
    is_minor: bool
    """Whether its text is left out where there is little room."""


@dataclass(frozen=True, slots=True)
class WaitMark:
    """The median of a wait, and what 9 of 10 stay below."""

    x: str
    high_x: str
    words: str


@dataclass(frozen=True, slots=True)
class TrialLine:
    """One project in the picture; `look` is shorter, longer or same."""

    name: str
    count: int
    look: str
    change: str
    """What becomes of the waits, in words: see `_describe_change`."""
    truth_x: str
    before: WaitMark
    after: WaitMark
    words: str


@dataclass(frozen=True, slots=True)
class TrialPicture:
    ticks: Sequence[Tick]
    lines: Sequence[TrialLine]
    more: int
    """How many projects are left out."""


def build_trial_picture(result: TrialResult) -> TrialPicture:
    """Build the picture of a trial, on a scale up to the longest wait."""
    projects = result.projects[:MOST_ROWS]
    rows = [result.total, *projects] if len(projects) > 1 else projects
    longest = max(
        (each.high for row in rows for each in (row.truth, row.before, row.after)), default=0.0
    )
    ends = [seconds for seconds, _ in TICKS if seconds >= longest]
    end = float(max(ends[0] if ends else longest, 600))
    shown_ticks = [each for each in TICKS if each[0] <= end]
    last = len(shown_ticks) - 1
    ticks = [
        Tick(
            _find_x(seconds, end),
            text,
            "start" if index == 0 else "end" if index == last else "middle",
            0 < index < last and (last - index) % 2 == 1,
        )
        for index, (seconds, text) in enumerate(shown_ticks)
    ]
    lines = [_build_line(row, end) for row in rows]
    return TrialPicture(ticks, lines, len(result.projects) - len(projects) + result.more_projects)


def compare_waits(before: float, after: float) -> str:
    """Return whether a wait gets shorter, longer, or stays the same."""
    if abs(after - before) <= max(SAME_SECONDS, SAME * before):
        return "same"
    return "shorter" if after < before else "longer"


def _describe_change(before: Waits, after: Waits) -> tuple[str, str]:
    """Return the look of a change and its words: of the median, else of the longest waits.

    Beside either it says how many more or fewer start: a median does not show one among many.
    """
    look = compare_waits(before.median, after.median)
    words = f"{describe_wait(before.median)} → {describe_wait(after.median)}"
    if look == "same":
        look = compare_waits(before.high, after.high)
        words = f"9 of 10: {describe_wait(before.high)} → {describe_wait(after.high)}"
    if look == "same":
        words = f"{describe_wait(after.median)}, as before"
    start_change = before.unstarted - after.unstarted
    if start_change:
        comparison = "more" if start_change > 0 else "fewer"
        words += (
            f"; {abs(start_change)} {comparison} {'starts' if abs(start_change) == 1 else 'start'}"
        )
        if look == "same":
            look = "shorter" if start_change > 0 else "longer"
    return look, words


def _build_line(row: ProjectWaits, end: float) -> TrialLine:
    before, after = describe_wait(row.before.median), describe_wait(row.after.median)
    look, change = _describe_change(row.before, row.after)
    high_before, high_after = describe_wait(row.before.high), describe_wait(row.after.high)
    return TrialLine(
        row.name,
        row.count,
        look,
        change,
        _find_x(row.truth.median, end),
        _build_mark("as it is", row.before, end),
        _build_mark("as tried", row.after, end),
        f"{row.name}: half of its workloads wait less than {before} as it is, and {after} as "
        f"tried; 9 of 10 less than {high_before}, and {high_after}; not started: "
        f"{row.before.unstarted}, and {row.after.unstarted}",
    )


def _build_mark(label: str, waits: Waits, end: float) -> WaitMark:
    words = (
        f"{label}: median {describe_wait(waits.median)}, 9 of 10 within {describe_wait(waits.high)}"
        f"{f', {waits.unstarted} not started' if waits.unstarted else ''}"
    )
    return WaitMark(_find_x(waits.median, end), _find_x(waits.high, end), words)


def _find_x(seconds: float, end: float) -> str:
    share = math.log1p(max(0.0, seconds) / SHORT) / math.log1p(end / SHORT)
    return f"{LEFT + WIDTH * min(1.0, share):.2f}%"
