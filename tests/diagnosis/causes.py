"""The catalogue of causes for which workloads wait or fail, each with the sentence about it."""

from collections.abc import Sequence

from tests.diagnosis.end_causes import BY_END
from tests.diagnosis.failing_causes import BY_LINE
from tests.diagnosis.injected import InjectedCause
from tests.diagnosis.node_causes import CLAIMS, NODES
from tests.diagnosis.queue_causes import KUEUE, QUEUES
from tests.diagnosis.runtime_causes import RUNTIMES
from tests.diagnosis.scheduler_causes import SCHEDULERS
from tests.diagnosis.start_causes import PODS, STARTS

WAITING: Sequence[InjectedCause] = (
    *QUEUES,
    *KUEUE,
    *NODES,
    *SCHEDULERS,
    *CLAIMS,
    *PODS,
    *STARTS,
    *RUNTIMES,
)
FAILING: Sequence[InjectedCause] = (*BY_LINE, *BY_END)
