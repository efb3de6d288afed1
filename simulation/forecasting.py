"""Forecasts for all that waits in a cluster, by as many draws as it takes."""

from collections.abc import Mapping

from scheduling import ClusterState
from simulation.forecasts import StartForecast
from simulation.run_lengths import RunLengths

HORIZON = 86_400.0
"""Seconds for which a cluster is played forward."""


def forecast_starts(
    state: ClusterState,
    lengths: Mapping[str, RunLengths],
    *,
    seed: int,
    horizon: float = HORIZON,
) -> Mapping[str, StartForecast]:
    """Return when each gang that waits will start, by its key.

    `lengths` are by the key of a gang, running or waiting; of one that has none nobody knows when
    it ends. The same seed gives the same answer.
    """
    raise NotImplementedError
