"""The state of a cluster as it is played forward: by the rules of the scheduler that it has."""

from dataclasses import replace
from datetime import datetime

from clusters.models import Cluster
from scheduling import Bound, Queue
from workloads.elastic.cluster_state import MOST_PODS, LoadedState, load_cluster_state
from workloads.forecasting.gang_sizes import require_whole_gangs

LEFT_OUT = (
    f"The cluster has more than {MOST_PODS:,} unended pods, and too many of its project wait: "
    "Muster plays the first in line of them forward, as far as those are not too many themselves, "
    "and this workload once fewer wait."
)


def load_played_state(cluster: Cluster, now: datetime) -> LoadedState:
    """Load the state of a cluster from which it is played forward. Raises TooLarge.

    Queries as in `load_cluster_state`, and one more without KAI.
    """
    loaded = load_cluster_state(cluster, now)
    state = require_whole_gangs(loaded.state, cluster)
    if not cluster.can.has_kai:
        # The scheduler of Kubernetes knows no queues: quotas and limits hold nobody back.
        state = replace(state, queues=[_lift_bounds(queue) for queue in state.queues])
    return loaded._replace(state=state)


def _lift_bounds(queue: Queue) -> Queue:
    bounds = {name: Bound(None, None, bound.weight) for name, bound in queue.bounds.items()}
    return replace(queue, bounds=bounds)
