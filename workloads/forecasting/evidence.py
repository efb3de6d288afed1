"""How long the work of a cluster runs, by what ran before: out of rows, for the simulator.

Where its logs tell how far it is, a training ends as its pace lets expect. Else a workload's own
earlier attempts tell it best, then copies by the same person, then its project; else its time limit
alone. Seven queries, and three more where some gave way, whatever the cluster holds.
"""

import uuid
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import F, Q, QuerySet

from simulation import LengthSource, RunLengths
from simulation.run_lengths import FEWEST_RUNS, MOST_RUNS
from workloads.kube_objects import get_data_job_name
from workloads.models import Attempt, TrainingProgress, UsedAsset, Workload
from workloads.past_work import Period, load_running_periods
from workloads.runtime_limits import load_unbroken_starts
from workloads.states import TERMINAL, UP

MOST_WORKLOADS = 10_000
MOST_ATTEMPTS = 10_000
"""Unended workloads, and newest attempts, of one cluster that are read."""
HISTORY = timedelta(days=90)
"""How old runs may be that are learned from."""
READ_WITHIN = timedelta(minutes=10)
"""How old the last look at a training's logs may be for its pace to tell its end."""
PACE_ERRORS = (0.8, 0.9, 0.95, 1.0, 1.0, 1.05, 1.1, 1.25, 1.5)
"""How many times the time that is left by its pace a training takes: it may slow down."""
LEAST_DONE = 0.02
"""Which share of its time a training has run when its pace counts: first steps take longer."""
LEAST_LEFT = 60.0
LEAST_LEFT_SHARE = 0.02
"""The seconds, and the share of what it has run, that are left at least: it saves at its end."""
_ALIKE = (LengthSource.OWN_RUNS, LengthSource.COPIES)


class _Run(NamedTuple):
    """An attempt that ran, with what makes it alike others."""

    id: int
    workload_id: uuid.UUID
    status: str
    started_at: datetime
    ended_at: datetime | None
    workload__project_id: int
    workload__submitted_by_id: int | None
    workload__image: str


class _RunGroup:
    """The lengths of runs that are alike, the newest first."""

    def __init__(self) -> None:
        self.ended: list[float] = []
        self.unfinished: list[float] = []

    def add(self, run: _Run, seconds: float) -> None:
        """Take in a run of so many seconds; the oldest of many do not count."""
        if len(self.ended) + len(self.unfinished) < MOST_RUNS:
            # A run that somebody stopped would have gone on for longer.
            is_whole = run.ended_at is not None and run.status in TERMINAL
            (self.ended if is_whole else self.unfinished).append(seconds)

    @property
    def is_enough(self) -> bool:
        return len(self.ended) >= FEWEST_RUNS


def load_run_lengths(cluster_id: uuid.UUID, now: datetime) -> Mapping[str, RunLengths]:
    """Load how long each unended workload of a cluster runs, by the keys of its gangs."""
    workloads = Workload.objects.filter(cluster=cluster_id, ended_at=None, released_at=None)
    rows = workloads.order_by().values(
        *("id", "project_id", "submitted_by_id", "image", "time_limit_seconds", "ran_seconds"),
        "started_at",
    )[:MOST_WORKLOADS]
    ends = _load_ends_by_pace(cluster_id, now)
    unbroken_starts = load_unbroken_starts(cluster_id, now)
    groups = _RunGroups(_load_templates(cluster_id))
    for run, seconds in _load_runs(cluster_id, now):
        groups.add(run, seconds)
    templates = groups.templates
    lengths_by_key: dict[Hashable, RunLengths] = {}
    lengths: dict[str, RunLengths] = {}
    for row in rows:
        limit = _find_limit(row)
        source, key = groups.choose(row, templates.get(row["id"]))
        group = groups.find(key)
        alike = group.ended if source in _ALIKE else ()
        started_at = unbroken_starts.get(row["id"], row["started_at"])
        run_lengths = _find_by_pace(started_at, ends.get(row["id"]), alike, limit, now)
        if run_lengths is None:
            # Many workloads are alike, and a distribution takes its time to be made.
            if (key, limit) not in lengths_by_key:
                lengths_by_key[key, limit] = RunLengths(
                    group.ended, group.unfinished, limit, source
                )
            run_lengths = lengths_by_key[key, limit]
        lengths[str(row["id"])] = lengths[get_data_job_name(str(row["id"]))] = run_lengths
    return lengths


def _find_by_pace(
    started_at: datetime | None,
    ends_at: datetime | None,
    alike: Sequence[float],
    limit: float | None,
    now: datetime,
) -> RunLengths | None:
    """Return how long a run takes that would be over at a time by its pace; None without one.

    Where copies of it ran, they count as much as its pace does: a bar may be that of one epoch.
    """
    if ends_at is None or started_at is None:
        return None
    elapsed = max(0.0, (now - started_at).total_seconds())
    remaining_seconds = max((ends_at - now).total_seconds(), LEAST_LEFT, LEAST_LEFT_SHARE * elapsed)
    if elapsed < LEAST_DONE * (elapsed + remaining_seconds):
        return None
    runs = [elapsed + remaining_seconds * error for error in PACE_ERRORS]
    longer = sorted(seconds for seconds in alike if seconds > elapsed)
    count = min(len(longer), len(runs))
    runs += [longer[index * len(longer) // count] for index in range(count)]
    return RunLengths(runs, (), limit, LengthSource.OWN_PACE)


def _load_ends_by_pace(cluster_id: uuid.UUID, now: datetime) -> Mapping[uuid.UUID, datetime]:
    """Load when trainings that run are over, as far as their logs tell it. One query.

    Those that have done all their steps are over now.
    """
    has_done_all = Q(step__gte=F("total")) & (Q(epochs=None) | Q(epoch__gte=F("epochs")))
    rows = TrainingProgress.objects.filter(
        Q(ends_at__isnull=False) | has_done_all,
        workload__cluster=cluster_id,
        workload__ended_at=None,
        workload__released_at=None,
        workload__status__in=UP,
        attempt=F("workload__attempt"),
        read_at__gte=now - READ_WITHIN,
        trouble="",
    )
    ends = rows.order_by().values_list("workload_id", "ends_at")[:MOST_WORKLOADS]
    return {workload_id: ends_at or now for workload_id, ends_at in ends}


def _find_limit(row: Mapping[str, Any]) -> float | None:
    """Return how long this attempt may run: the limit is over all attempts."""
    limit = row["time_limit_seconds"]
    return None if limit is None else max(0.0, float(limit) - row["ran_seconds"])


def _load_runs(cluster_id: uuid.UUID, now: datetime) -> Iterable[tuple[_Run, float]]:
    """Load the newest runs of a cluster, and those of its unended workloads, with their seconds.

    Three queries, and one where some waited again: that time does not count.
    """
    ran = Attempt.objects.filter(workload__cluster=cluster_id, started_at__isnull=False)
    is_new = Q(started_at__gte=now - HISTORY)
    is_unended = Q(workload__ended_at=None, workload__released_at=None)
    newest, own = _read_runs(ran.filter(is_new)), _read_runs(ran.filter(is_unended))
    runs = sorted({run.id: run for run in (*newest, *own)}.values(), reverse=True)
    broken = load_running_periods(ran.filter(is_new | is_unended))
    for run in runs:
        periods = broken.get(run.id) or (Period(run.started_at, run.ended_at),)
        yield run, sum(max(0.0, ((end or now) - begin).total_seconds()) for begin, end in periods)


def _read_runs(attempts: "QuerySet[Attempt]") -> Iterable[_Run]:
    rows = attempts.order_by("-pk").values_list(*_Run._fields)[:MOST_ATTEMPTS]
    return [_Run(*row) for row in rows]


def _load_templates(cluster_id: uuid.UUID) -> Mapping[uuid.UUID, uuid.UUID]:
    """Load the template that each of the newest workloads was made from. One query."""
    used = UsedAsset.objects.filter(kind="template", workload__cluster=cluster_id)
    return dict(used.order_by("-pk").values_list("workload_id", "asset")[:MOST_ATTEMPTS])


class _RunGroups:
    """All groups of a cluster's runs, by what their runs have in common."""

    def __init__(self, templates: Mapping[uuid.UUID, uuid.UUID]) -> None:
        self.templates = templates
        self._groups: dict[Hashable, _RunGroup] = defaultdict(_RunGroup)

    def add(self, run: _Run, seconds: float) -> None:
        """Add a run of so many seconds to each group that it belongs to."""
        keys: list[Hashable] = [("own", run.workload_id), ("project", run.workload__project_id)]
        person = run.workload__submitted_by_id
        template = self.templates.get(run.workload_id)
        if person is not None:
            keys.append(("image", person, run.workload__image))
        if person is not None and template is not None:
            keys.append(("template", person, template))
        for key in keys:
            self._groups[key].add(run, seconds)

    def find(self, key: Hashable) -> _RunGroup:
        """Return a group; an empty one where nothing like it ran."""
        return self._groups.get(key) or _RunGroup()

    def choose(
        self, row: Mapping[str, Any], template: uuid.UUID | None
    ) -> tuple[LengthSource, Hashable]:
        """Return the best group with enough runs for a workload, and what it is made of."""
        person = row["submitted_by_id"]
        candidates: list[tuple[LengthSource, Hashable]] = [
            (LengthSource.OWN_RUNS, ("own", row["id"])),
            (LengthSource.COPIES, ("template", person, template)),
            (LengthSource.COPIES, ("image", person, row["image"])),
            (LengthSource.PROJECT, ("project", row["project_id"])),
        ]
        for source, key in candidates:
            if self.find(key).is_enough:
                return source, key
        return LengthSource.TIME_LIMIT, ("project", row["project_id"])
