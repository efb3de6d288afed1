"""The state of a cluster as it is played forward: by the rules of the scheduler that it has."""

from dataclasses import replace
from datetime import datetime

from clusters.models import Cluster
from scheduling import Bound, ClusterState, Queue
from workloads.elastic.cluster_state import load_cluster_state
from workloads.forecasting.gang_sizes import require_whole_gangs


def load_played_state(cluster: Cluster, now: datetime) -> ClusterState:
    """Load the state of a cluster from which it is played forward. Raises TooLarge.

    Queries as in `load_cluster_state`, and one more without KAI.
    """
    state = require_whole_gangs(load_cluster_state(cluster, now), cluster)
    if cluster.can.has_kai:
        return state
    # The scheduler of Kubernetes knows no queues: quotas and limits hold nobody back.
    return replace(state, queues=[_lift_bounds(queue) for queue in state.queues])


def _lift_bounds(queue: Queue) -> Queue:
    bounds = {name: Bound(None, None, bound.weight) for name, bound in queue.bounds.items()}
    return replace(queue, bounds=bounds)
