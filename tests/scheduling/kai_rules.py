"""KAI's published rules as small clusters, each with what has to come of it.

Sources name files of kai-scheduler/KAI-Scheduler v0.17.0 (f218c69): `docs/...` and, for its
scenarios, `tests/...` for `pkg/scheduler/actions/integration_tests/...` and `plugins/...` for
`pkg/scheduler/plugins/...`. The clusters are our own, as small as the rule allows. Where nothing
else is said a queue has no limit, weight 1, and enough of all but devices.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduling import ClusterState, Gang, Node, Queue
from tests.scheduling.builders import make_state


@dataclass(frozen=True)
class Rule:
    """A cluster, and which pods run in it when it has come to rest.

    `running` counts pods by gang; gangs that are not named have to run on as they did. `evicted`
    counts the pods evicted on the way, by action; `reason` is a word of the waiting gang's refusal.
    """

    name: str
    source: str
    nodes: Sequence[Node]
    queues: Sequence[Queue]
    gangs: Sequence[Gang]
    running: Mapping[str, int]
    evicted: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0
    """How long the cluster is watched after it has come to rest for the first time."""

    def build_state(self) -> ClusterState:
        return make_state(self.nodes, self.queues, self.gangs)

    def list_expected(self) -> dict[str, int]:
        """Return how many pods of each gang have to run in the end."""
        running = {gang.key: sum(1 for pod in gang.pods if pod.node) for gang in self.gangs}
        return running | dict(self.running)
