"""What was submitted to a cluster before: forecasts take it that as much comes again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from clusters.models import Cluster
from simulation import Past, RunLengths
from simulation.arrivals import MOST_DAYS, PACE_SECONDS
from simulation.run_lengths import FEWEST_RUNS
from workloads.elastic import cluster_state
from workloads.elastic.pod_shapes import ShapeBuilder
from workloads.past_work import (
    SHORTEST_RUN,
    PastRun,
    add_periods,
    build_gang,
    load_past_runs,
)

WINDOW = timedelta(days=MOST_DAYS, seconds=PACE_SECONDS)
MOST_ATTEMPTS = 3_000
"""The newest attempts of a cluster that are taken to come again."""


@dataclass(frozen=True, slots=True)
class PastSubmissions:
    """What was submitted, and how long it runs, by the keys of its gangs."""

    past: Past
    lengths: Mapping[str, RunLengths] = field(default_factory=dict)


def load_past_submissions(
    cluster: Cluster, lengths: Mapping[str, RunLengths], now: datetime
) -> PastSubmissions:
    """Load what was submitted to a cluster in the last days.

    `lengths` are by workload, and hold for what has not ended. Four queries, and two for some
    hundreds of workloads; three where some waited again.
    """
    begin = max(cluster.created_at, now - WINDOW)
    past_work = load_past_runs(cluster, begin, now, MOST_ATTEMPTS)
    since = past_work.runs[0].came_at if past_work.is_cut and past_work.runs else begin
    runs = add_periods([run for run in past_work.runs if run.came_at >= since])
    shapes = ShapeBuilder(cluster_state.build_capacities(cluster_state.load_open_nodes(cluster)))
    has_kai = cluster.can.has_kai
    gangs = [build_gang(run, shapes, run.came_at.timestamp(), has_kai=has_kai) for run in runs]
    return PastSubmissions(Past(gangs, since.timestamp()), _find_lengths(runs, lengths))


def _find_lengths(
    runs: Sequence[PastRun], lengths: Mapping[str, RunLengths]
) -> Mapping[str, RunLengths]:
    """Return how long each runs that comes again: as before, or like others while it goes on."""
    run_lengths = {}
    for run in runs:
        seconds = None
        if run.started_at is not None and run.ended_at is not None:
            seconds = run.measure_running_time(run.started_at)
        if seconds is not None:
            run_lengths[run.key] = RunLengths([max(SHORTEST_RUN, seconds)] * FEWEST_RUNS)
        elif (workload_lengths := lengths.get(str(run.workload))) is not None:
            run_lengths[run.key] = workload_lengths
    return run_lengths
