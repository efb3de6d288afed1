"""Waiting times by project: as they were, and as two replays have them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from simulation.forecasts import find_quantile
from workloads.past_work import PastRun, PastWork

MOST_PROJECTS = 500
HIGH = 0.9


@dataclass(frozen=True, slots=True)
class Waits:
    """How long workloads waited, in seconds. Those that wait still count for as long as they did.

    All of it is 0 without workloads.
    """

    median: float = 0.0
    high: float = 0.0
    """What 9 of 10 stay below."""
    gpu_hours: float = 0.0
    """GPUs that were waited for, times hours."""
    unstarted: int = 0
    """How many had not started by the end."""


@dataclass(frozen=True, slots=True)
class ProjectWaits:
    """The waits of one project, or of all; `truth` is what was measured."""

    id: int
    name: str
    count: int
    truth: Waits
    before: Waits
    after: Waits


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What came out of a trial."""

    begin: datetime
    until: datetime
    """How far both replays came."""
    is_whole: bool
    """Whether that is all of the time."""
    total: ProjectWaits
    projects: Sequence[ProjectWaits]
    """Those with workloads of this time, those that waited longest first."""
    more_projects: int
    is_cut: bool
    never_started: int
    unreadable: int
    """All runs that are left out, of too many pods as well."""
    deleted: int
    seconds: Sequence[float]
    """How long each replay took."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Between which moments workloads came that are counted."""

    begin: datetime
    until: datetime
    is_whole: bool


@dataclass(frozen=True, slots=True)
class _Wait:
    seconds: float
    gpus: float
    has_started: bool


def summarize_trial(
    past: PastWork,
    names: Mapping[int, str],
    ends: Ends,
    before: Mapping[str, float],
    after: Mapping[str, float],
    seconds: Sequence[float],
) -> TrialResult:
    """Sum up the waits of all that came between the ends; starts are by the keys of runs."""
    truth = {run.key: run.started_at.timestamp() for run in past.runs if run.started_at is not None}
    by_project: dict[int, list[PastRun]] = defaultdict(list)
    for run in past.runs:
        if ends.begin <= run.came_at < ends.until:
            by_project[run.project].append(run)

    def sum_up(key: int, name: str, runs: Sequence[PastRun]) -> ProjectWaits:
        starts = (truth, before, after)
        return ProjectWaits(
            key, name, len(runs), *(_sum_waits(runs, each, ends.until) for each in starts)
        )

    projects = [sum_up(key, names[key], runs) for key, runs in by_project.items() if key in names]
    projects.sort(key=lambda each: (-each.before.gpu_hours, each.name))
    every = [run for key, runs in by_project.items() if key in names for run in runs]
    return TrialResult(
        ends.begin,
        ends.until,
        ends.is_whole,
        sum_up(0, "All projects", every),
        projects[:MOST_PROJECTS],
        max(0, len(projects) - MOST_PROJECTS),
        past.is_cut,
        past.never_started,
        past.left_out,
        past.deleted,
        [round(each, 1) for each in seconds],
    )


def _sum_waits(runs: Sequence[PastRun], starts: Mapping[str, float], until: datetime) -> Waits:
    end = until.timestamp()
    waits = []
    for run in runs:
        start = starts.get(run.key, end)
        seconds = max(0.0, min(start, end) - run.came_at.timestamp())
        waits.append(_Wait(seconds, float(run.gpus), start < end))
    lengths = [wait.seconds for wait in waits]
    return Waits(
        round(find_quantile(lengths, 0.5) or 0.0, 1),
        round(find_quantile(lengths, HIGH) or 0.0, 1),
        round(sum(wait.seconds * wait.gpus for wait in waits) / 3600, 2),
        sum(not wait.has_started for wait in waits),
    )


def encode_result(result: TrialResult) -> dict[str, Any]:
    """Return a result as JSON."""
    return asdict(result) | {
        "begin": result.begin.isoformat(),
        "until": result.until.isoformat(),
    }


def decode_result(data: Mapping[str, Any]) -> TrialResult:
    """Return the result that `encode_result` encoded."""
    return TrialResult(
        **dict(data)
        | {
            "begin": datetime.fromisoformat(data["begin"]),
            "until": datetime.fromisoformat(data["until"]),
            "total": _decode_waits(data["total"]),
            "projects": [_decode_waits(each) for each in data["projects"]],
        }
    )


def _decode_waits(data: Mapping[str, Any]) -> ProjectWaits:
    parts = {name: Waits(**data[name]) for name in ("truth", "before", "after")}
    return ProjectWaits(**dict(data) | parts)
