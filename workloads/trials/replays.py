"""The same past as two states of a cluster: as it is, and as a trial would have it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from clusters.models import Node
from projects.models import Project
from scheduling import ClusterState
from simulation.history import Replay
from workloads.elastic.cluster_state import build_capacities, build_node, build_queues
from workloads.elastic.pod_shapes import ShapeBuilder
from workloads.past_work import SHORTEST_RUN, PastRun, build_gang

HEAD_START = timedelta(minutes=2)
"""How much earlier than the window those come that ran at its begin: they have their nodes."""


class Replayer(Protocol):
    """Plays a past again, as `simulation.history.replay_history` does."""

    def __call__(
        self, state: ClusterState, lengths: Mapping[str, float], *, end: float
    ) -> Replay: ...


def build_state(
    runs: Sequence[PastRun], nodes: Sequence[Node], projects: Iterable[Project], begin: datetime
) -> ClusterState:
    """Build the state from which a past is played again: nodes, queues, and all that came."""
    shapes = ShapeBuilder(build_capacities(nodes))
    return ClusterState(
        now=(begin - HEAD_START).timestamp(),
        nodes=[build_node(node) for node in nodes],
        queues=build_queues(projects),
        gangs=[build_gang(run, shapes, _find_arrival(run, begin)) for run in runs],
    )


def measure_lengths(runs: Iterable[PastRun], begin: datetime) -> Mapping[str, float]:
    """Return for how many seconds each run ran in a replay; none where it goes on.

    Of what ran at the begin it is the rest, from when it comes.
    """
    seconds = {run.key: run.measure_running_time(begin - HEAD_START) for run in runs}
    return {key: max(SHORTEST_RUN, each) for key, each in seconds.items() if each is not None}


def _find_arrival(run: PastRun, begin: datetime) -> float:
    """Return when a run comes; of who waited at the begin, after those who ran, in their order."""
    came_at = run.came_at.timestamp()
    if came_at >= begin.timestamp() or run.is_running_at(begin):
        return came_at
    wait = (begin - run.came_at) / timedelta(days=365)
    return begin.timestamp() - min(wait, 1.0)
